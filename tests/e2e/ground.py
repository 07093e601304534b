"""The ground of one scenario: hollow nodes on the control plane, their exporters, a real Prometheus, and the command under test.

Each ground begins empty and leaves nothing: its namespaces and nodes go with it, so scenarios do not see each other although they share
the control plane.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.e2e.api import Api, Json, path, until
from tests.e2e.exporters import cadvisor, kube_state_metrics, node_exporter
from tests.e2e.hollow import HOLLOW, HollowNode, HollowNodes
from tests.e2e.load import LoadModel
from tests.e2e.plane import ControlPlane
from tests.support.embedded import Process, Ran, run_command, spawned
from tests.support.prometheus_server import PrometheusServer, TestExporter

SETTLE_S = 120.0
PLURALS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
OWN = "e2e.rebalancer.dev/ground"
"""Label of the namespaces that a ground made."""


@dataclass
class Ground:
    plane: ControlPlane
    hollow: HollowNodes
    folder: Path
    load: LoadModel
    prometheus: PrometheusServer | None = None
    namespaces: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def api(self) -> Api:
        return self.plane.api

    def namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> str:
        """Made and ready for pods."""
        self.api.create("namespaces", {"kind": "Namespace", "metadata": {"name": name, "labels": {OWN: "true", **(labels or {})}}})
        self.namespaces.append(name)
        until(lambda: self.api.find("serviceaccounts", "default", name), f"the default account of {name}")
        return name

    def apply(self, *manifests: Json) -> None:
        for manifest in manifests:
            self.api.create(PLURALS[manifest["kind"]], manifest)

    def pods(self, namespace: str = "", **labels: str) -> list[Json]:
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())} if labels else {}
        return self.api.list("pods", namespace, **query)

    def settled(self, namespace: str, count: int, *, seconds: float = SETTLE_S, **labels: str) -> list[Json]:
        """The pods, once there are exactly ``count``, all ready and none on its way out."""

        def pods() -> list[Json]:
            found = self.pods(namespace, **labels)
            return found if len(found) == count and all(is_ready(pod) for pod in found) else []

        found: list[Json] = until(pods, f"{count} ready pods in {namespace}", seconds=seconds, step=0.3)
        return found

    @contextlib.contextmanager
    def only(self, *nodes: str) -> Iterator[None]:
        """Cordon every other hollow node meanwhile, so that new pods land on these."""
        others = [node.name for node in self.hollow.nodes if node.name not in nodes]
        for name in others:
            self.api.patch("nodes", name, {"spec": {"unschedulable": True}})
        try:
            yield
        finally:
            for name in others:
                self.api.patch("nodes", name, {"spec": {"unschedulable": None}})

    def loads(self) -> dict[str, float]:
        """The true CPU load of each hollow node, now."""
        cores = self.hollow.ledger.read().node_cores
        return {machine.name: cores[machine.name] / machine.cores for machine in self.hollow.ledger.machines.values()}

    # ---- the command under test -----------------------------------------------------------------------------------------

    def policy(self, spec: str, *, name: str = "policy.yaml") -> Path:
        """A policy file with this ``spec`` (YAML, indented by two) over the hollow nodes."""
        file = self.folder / name
        head = "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {name: e2e}\nspec:\n"
        file.write_text(head + spec, encoding="utf-8")
        return file

    @property
    def env(self) -> dict[str, str]:
        assert self.prometheus is not None, "this ground has no Prometheus"
        return {
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.plane.kubeconfig),
            "REBALANCER_PROMETHEUS__URL": self.prometheus.url,
            "REBALANCER_LOG__FORMAT": "json",
        }

    def run(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
        """A command, in this process."""
        return run_command(*arguments, env={**self.env, **(env or {})})

    @contextlib.contextmanager
    def process(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Iterator[Process]:
        """A command as a process of its own; killed at the end if it still runs. Its output is in a folder of its own."""
        folder = self.folder / f"process-{next(self._numbers)}"
        folder.mkdir()
        with spawned(*arguments, env={**self.env, **(env or {})}, folder=folder) as process:
            yield process


def is_ready(pod: Json) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions") or ())


@contextlib.contextmanager
def ground(
    plane: ControlPlane,
    folder: Path,
    nodes: Sequence[HollowNode],
    *,
    monitored: bool = True,
    start_s: float = 1.0,
    load: LoadModel | None = None,
) -> Iterator[Ground]:
    """``monitored``: with exporters and a Prometheus; scenarios about scheduling alone need none."""
    load = load or LoadModel()
    with ExitStack() as stack:
        clear(plane.api)
        hollow = stack.enter_context(HollowNodes(plane.api, nodes, load=load, start_s=start_s, heartbeats=not plane.own))
        made = Ground(plane=plane, hollow=hollow, folder=folder, load=load)
        stack.callback(clear_namespaces, plane.api)
        if monitored:
            jobs = {"node": node_exporter, "cadvisor": cadvisor, "kube-state-metrics": kube_state_metrics}
            exporters = {job: stack.enter_context(TestExporter(partial(text, hollow.ledger))) for job, text in jobs.items()}
            targets = {job: [exporter.address] for job, exporter in exporters.items()}
            made.prometheus = stack.enter_context(PrometheusServer(folder / "prometheus", targets=targets))
        yield made


def clear(api: Api) -> None:
    """What an earlier run left behind when it was killed: its namespaces and its hollow nodes."""
    clear_namespaces(api)
    for node in api.list("nodes", labelSelector=f"{HOLLOW}=true"):
        api.delete("nodes", node["metadata"]["name"])


def clear_namespaces(api: Api) -> None:
    """Delete the namespaces of all grounds and wait for their end. Owners go before their pods, which then need no kubelet to end."""
    names = [each["metadata"]["name"] for each in api.list("namespaces", labelSelector=f"{OWN}=true")]
    for name in names:
        api.delete("namespaces", name)
        for resource in ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs"):
            api.request("DELETE", path(resource, name), {"propagationPolicy": "Background"})
        api.request("DELETE", path("pods", name), {"gracePeriodSeconds": 0})
    until(lambda: not api.list("namespaces", labelSelector=f"{OWN}=true"), f"the end of {', '.join(names)}", seconds=SETTLE_S)
