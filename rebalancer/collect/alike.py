"""Pods of one controller are nearly always alike: comparing each with the last of its controller is cheaper than reading it again.

Only a short cut. A pod that differs (resized in place, changed by a webhook, recreated from a newer template) is read like the first one.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.collect.constraints import host_ports
from rebalancer.collect.pod_requests import resize_is_infeasible
from rebalancer.kube.wire_pods import PodWire


class Alike:
    """Remembers, for each controller, the last pod and its row."""

    def __init__(self, same: Callable[[PodWire, PodWire], bool]) -> None:
        self._same = same
        self._last: dict[str, tuple[PodWire, int]] = {}

    def row(self, pod: PodWire, read: Callable[[PodWire], int]) -> int:
        """The row of the last pod when this one is the same, else what ``read`` says."""
        owner = pod.metadata.controller
        if owner is None:
            return read(pod)
        last = self._last.get(owner.uid)
        if last is not None and self._same(last[0], pod):
            return last[1]
        row = read(pod)
        self._last[owner.uid] = (pod, row)
        return row


def same_requests(one: PodWire, other: PodWire) -> bool:
    a, b, x, y = one.spec, other.spec, one.status, other.status
    return (
        _same(a.containers, b.containers)
        and _same(x.container_statuses, y.container_statuses)
        and _same(a.init_containers, b.init_containers)
        and _same(x.init_container_statuses, y.init_container_statuses)
        and _same(a.overhead, b.overhead)
        and _same(a.resources, b.resources)
        and _same(x.resources, y.resources)
        and _same(x.allocated_resources, y.allocated_resources)
        and (x.conditions is y.conditions or resize_is_infeasible(one) == resize_is_infeasible(other))
    )


def same_labels(one: PodWire, other: PodWire) -> bool:
    return _same(one.metadata.labels, other.metadata.labels) and one.metadata.namespace == other.metadata.namespace


def same_constraints(one: PodWire, other: PodWire) -> bool:
    a, b = one.spec, other.spec
    return (
        _same(a.affinity, b.affinity)
        and _same(a.tolerations, b.tolerations)
        and _same(a.topology_spread_constraints, b.topology_spread_constraints)
        and _same(a.node_selector, b.node_selector)
        and a.scheduler_name == b.scheduler_name
        and ((a.containers is b.containers and a.init_containers is b.init_containers) or host_ports(a) == host_ports(b))
    )


def _same(one: object, other: object) -> bool:
    """Most parts are shared (`kube.sharing`), and a look at who they are is enough."""
    return one is other or one == other
