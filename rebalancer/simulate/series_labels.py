"""The labels of the simulated series, in the variants that clusters have.

Word lists of nodes and pods are built once and kept, since 150,000 label sets are only cheap as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.load import Floats, LoadModel, Tenures
from rebalancer.simulate.pods import controller_of
from rebalancer.simulate.promql.labels import Column, Labels, Rows
from rebalancer.simulate.world import World

EXPORTER_NAMESPACE = "monitoring"
_PORTS = {"node": "9100", "kubelet": "10250"}
_JOBS = {"node": "node-exporter", "kubelet": "kubelet"}


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """How series name their node.

    ``node_label``: the label that holds the node's name, empty for none. ``instance``: ``address`` (IP:port), ``ip``, ``name`` or
    ``name-port``. ``exporter_pod``: node_exporter series carry the namespace and name of the exporter's pod. ``sources``: what is scraped
    at all, of ``node_exporter``, ``cadvisor``, ``kubelet`` (its resource metrics), ``kube_state`` and ``dcgm``.
    """

    node_label: str = "node"
    instance: str = "address"
    exporter_pod: bool = True
    sources: tuple[str, ...] = ("node_exporter", "cadvisor", "kube_state", "dcgm")


def node_address(node: Json) -> str:
    return next((a["address"] for a in node.get("status", {}).get("addresses") or () if a["type"] == "InternalIP"), "")


class Directory:
    """Names, addresses and sizes of nodes and pods, in the row order of the load model."""

    def __init__(self, world: World, load: LoadModel) -> None:
        self._world, self._load = world, load
        self._pods: tuple[int, Column, Column, Column, Column, Column] | None = None

    def node_names(self) -> list[str]:
        return self._load.node_names

    def node_cores(self) -> Floats:
        return np.array(self._load.node_cores)

    def node_bytes(self) -> Floats:
        return np.array(self._load.node_bytes)

    def _addresses(self) -> list[str]:
        found = []
        for name in self._load.node_names:
            node = self._world.find("nodes", name)
            found.append(node_address(node) if node is not None else "")
        return found

    def _instances(self, exporter: str, options: SeriesOptions) -> list[str]:
        port = _PORTS[exporter]
        if options.instance == "name":
            return list(self._load.node_names)
        if options.instance == "name-port":
            return [f"{name}:{port}" for name in self._load.node_names]
        if options.instance == "ip":
            return self._addresses()
        if options.instance == "address":
            return [f"{address}:{port}" for address in self._addresses()]
        raise ValueError(f"{options.instance!r} is not a way to write instance; use address, ip, name or name-port")

    def node_labels(self, exporter: str, options: SeriesOptions) -> Labels:
        """Labels of one series a node of ``node`` (node_exporter) or ``kubelet``."""
        names = self._load.node_names
        columns = {
            "instance": Column.of(self._instances(exporter, options)),
            "job": Column.constant(_JOBS[exporter], len(names)),
        }
        if options.node_label:
            columns[options.node_label] = Column.of(names)
        if exporter == "node" and options.exporter_pod:
            columns["namespace"] = Column.constant(EXPORTER_NAMESPACE, len(names))
            exporters = self._exporter_pods()
            columns["pod"] = Column.of([exporters.get(name, f"node-exporter-{name}") for name in names])
        return Labels(len(names), columns)

    def _exporter_pods(self) -> dict[str, str]:
        """node -> name of the node_exporter pod on it."""
        return {
            pod["spec"]["nodeName"]: pod["metadata"]["name"]
            for pod in self._world.objects("pods", EXPORTER_NAMESPACE)
            if (controller_of(pod) or {}).get("name") == "node-exporter" and pod["spec"].get("nodeName")
        }

    def _pod_columns(self, tenures: Tenures) -> tuple[Column, Column, Column, Column, Column]:
        if self._pods is None or self._pods[0] != self._load.edition:
            self._pods = (
                self._load.edition,
                Column.of(tenures.namespaces),
                Column.of(tenures.names),
                Column.of(tenures.containers),
                Column.of([f"/kubepods/pod{uid}" for uid in tenures.uids]),
                Column(tenures.node, tuple(self._load.node_names)),
            )
        return self._pods[1:]

    def pod_labels(self, tenures: Tenures, rows: Rows, options: SeriesOptions) -> Labels:
        """namespace, pod, instance, job and the node label of a series a tenure."""
        namespaces, names, _, _, node = self._pod_columns(tenures)
        columns = {
            "namespace": namespaces.take(rows),
            "pod": names.take(rows),
            "instance": node.take(rows).mapped(self._instances("kubelet", options)),
            "job": Column.constant("kubelet", len(rows)),
        }
        if options.node_label:
            columns[options.node_label] = node.take(rows)
        return Labels(len(rows), columns)

    def container_labels(self, pods: Labels, tenures: Tenures, rows: Rows) -> Labels:
        """The labels of each pod's (only measured) container."""
        _, _, containers, ids, _ = self._pod_columns(tenures)
        labels = pods.with_column("container", containers.take(rows)).with_column(
            "id", ids.take(rows).mapped(_suffixed(ids.words, "/main"))
        )
        return labels.with_column("image", Column.constant("registry.example/app:1", len(rows)))

    def cgroup_labels(self, pods: Labels, tenures: Tenures, rows: Rows) -> Labels:
        """The labels of each pod's own cgroup: no container, no image."""
        return pods.with_column("id", self._pod_columns(tenures)[3].take(rows))

    def pod_info(self) -> Labels:
        """``kube_pod_info`` of the pods that are bound now."""
        pods = [pod for pod in self._world.objects("pods") if pod["spec"].get("nodeName")]
        owners = [controller_of(pod) or {} for pod in pods]
        columns = {
            "namespace": Column.of([pod["metadata"]["namespace"] for pod in pods]),
            "pod": Column.of([pod["metadata"]["name"] for pod in pods]),
            "uid": Column.of([pod["metadata"]["uid"] for pod in pods]),
            "node": Column.of([pod["spec"]["nodeName"] for pod in pods]),
            "host_ip": Column.of([pod.get("status", {}).get("hostIP", "") for pod in pods]),
            "pod_ip": Column.of([pod.get("status", {}).get("podIP", "") for pod in pods]),
            "created_by_kind": Column.of([owner.get("kind", "") for owner in owners]),
            "created_by_name": Column.of([owner.get("name", "") for owner in owners]),
            "instance": Column.constant("10.255.0.9:8080", len(pods)),
            "job": Column.constant("kube-state-metrics", len(pods)),
        }
        return Labels(len(pods), columns)


def _suffixed(words: Sequence[str], ending: str) -> list[str]:
    return [word + ending for word in words]
