"""Equal parts of pods are kept once: a list of a hundred thousand pods is a few thousand specs, each told over and over.

Pods of one owner have the same labels, containers, tolerations and conditions, word for word. The decoder makes each of them anew; here the
copies are exchanged for those of the first pod of the owner while the page is still at hand, and a fifth of the memory is left. Nobody
changes a wire struct, so nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from rebalancer.kube.wire import OwnerWire
from rebalancer.kube.wire_pod_meta import NO_ANNOTATIONS, PodMetaWire
from rebalancer.kube.wire_pods import PodSpecWire, PodStatusWire, PodWire

_put: Final = msgspec.structs.force_setattr
"""Past `frozen`: the struct was made a moment ago, and means the same afterwards."""


def share_pod_parts() -> Callable[[PodWire], None]:
    """A function for the pods of one list, to be called once for each. It keeps the first pod of every owner."""
    first_of: dict[tuple[OwnerWire, ...] | None, PodWire] = {}
    nodes: dict[str, str] = {}

    def share(pod: PodWire) -> None:
        if pod.metadata.annotations == NO_ANNOTATIONS:
            _put(pod.metadata, "annotations", None)  # of many annotations none that is read
        first = first_of.setdefault(pod.metadata.owner_references, pod)
        if pod.spec.node_name is not None:
            _put(pod.spec, "node_name", nodes.setdefault(pod.spec.node_name, pod.spec.node_name))
        if first is not pod:
            _share_metadata(first.metadata, pod.metadata)
            _share_spec(first.spec, pod.spec)
            _share_status(first.status, pod.status)

    return share


def _share_metadata(first: PodMetaWire, own: PodMetaWire) -> None:
    _put(own, "owner_references", first.owner_references)
    if own.namespace == first.namespace:
        _put(own, "namespace", first.namespace)
    if own.labels == first.labels:
        _put(own, "labels", first.labels)
    if own.annotations is not None and own.annotations == first.annotations:
        _put(own, "annotations", first.annotations)


def _share_spec(first: PodSpecWire, own: PodSpecWire) -> None:
    if own.containers == first.containers:
        _put(own, "containers", first.containers)
    if own.tolerations == first.tolerations:
        _put(own, "tolerations", first.tolerations)
    if own.scheduler_name == first.scheduler_name:
        _put(own, "scheduler_name", first.scheduler_name)
    if own.restart_policy == first.restart_policy:
        _put(own, "restart_policy", first.restart_policy)
    if own.init_containers is not None and own.init_containers == first.init_containers:
        _put(own, "init_containers", first.init_containers)
    if own.affinity is not None and own.affinity == first.affinity:
        _put(own, "affinity", first.affinity)
    if own.node_selector is not None and own.node_selector == first.node_selector:
        _put(own, "node_selector", first.node_selector)
    spread = own.topology_spread_constraints
    if spread is not None and spread == first.topology_spread_constraints:
        _put(own, "topology_spread_constraints", first.topology_spread_constraints)


def _share_status(first: PodStatusWire, own: PodStatusWire) -> None:
    if own.conditions == first.conditions:
        _put(own, "conditions", first.conditions)
    if own.container_statuses == first.container_statuses:
        _put(own, "container_statuses", first.container_statuses)
    if own.init_container_statuses is not None and own.init_container_statuses == first.init_container_statuses:
        _put(own, "init_container_statuses", first.init_container_statuses)
    if own.phase == first.phase:
        _put(own, "phase", first.phase)
    if own.qos_class == first.qos_class:
        _put(own, "qos_class", first.qos_class)
