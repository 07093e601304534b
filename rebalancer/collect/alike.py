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
        a.containers == b.containers
        and x.container_statuses == y.container_statuses
        and a.init_containers == b.init_containers
        and x.init_container_statuses == y.init_container_statuses
        and a.overhead == b.overhead
        and a.resources == b.resources
        and x.resources == y.resources
        and x.allocated_resources == y.allocated_resources
        and resize_is_infeasible(one) == resize_is_infeasible(other)
    )


def same_labels(one: PodWire, other: PodWire) -> bool:
    return one.metadata.labels == other.metadata.labels and one.metadata.namespace == other.metadata.namespace


def same_constraints(one: PodWire, other: PodWire) -> bool:
    a, b = one.spec, other.spec
    return (
        a.affinity == b.affinity
        and a.tolerations == b.tolerations
        and a.topology_spread_constraints == b.topology_spread_constraints
        and a.node_selector == b.node_selector
        and a.scheduler_name == b.scheduler_name
        and host_ports(a) == host_ports(b)
    )
