"""A scene and one gate to ask in it: what every test of a gate begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalancer.guard.gate import Booked, Candidate, Gate, Refusal, Scene, all_gates, book
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED, History, PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, NodeSpec, PodSpec, cluster, node, pod

USES: Mapping[str, float] = {"cpu": 1.0, "memory": 2.0**30}
WEB = WorkloadRef("Deployment", "default", "web")


def measured(name: str, **fields: Any) -> PodSpec:
    """A pod of Deployment default/web on node hot that no gate objects to, except for what ``fields`` change."""
    return pod(name, **{"on": "hot", "workload": "web", "uses": USES, **fields})


def state_with(*pods: PodSpec, nodes: tuple[NodeSpec, ...] = (node("hot"), node("cool")), **tables: Any) -> ClusterState:
    return cluster(nodes=nodes, pods=pods, **tables)


def scene_of(state: ClusterState, *, history: History = NOTHING_HAPPENED, mode: Mode = Mode.EVICT, **spec: Any) -> Scene:
    return Scene(state=state, spec=built_in_policy(**spec).spec, history=history, booked=Booked(), mode=mode)


def gate(name: str) -> Gate:
    return next(gate for gate in all_gates() if gate.name == name)


def candidate(scene: Scene, row: int = 0) -> Candidate:
    return Candidate(pod=row, source=int(scene.state.pods.node[row]))


def ask(name: str, scene: Scene, row: int = 0) -> Refusal | None:
    """What one gate says about one pod; its refusal carries its own name."""
    refusal = gate(name).check(candidate(scene, row), scene)
    assert refusal is None or refusal.gate == name
    return refusal


def reason(name: str, scene: Scene, row: int = 0) -> str:
    """The sentence of a refusal that must come."""
    refusal = ask(name, scene, row)
    assert refusal is not None, f"{name} allows pod {row}"
    return refusal.reason


def take(scene: Scene, row: int) -> None:
    """Accept a pod into the plan."""
    book(candidate(scene, row), scene)


def evicted(
    ago: float, *, workload: WorkloadRef | None = WEB, source: str = "hot", pod: str = "web-0", tenant: str | None = None
) -> PastEviction:
    return PastEviction(
        at=NOW - ago,
        pod_uid=f"uid-{pod}",
        namespace=workload.namespace if workload is not None else "default",
        pod=pod,
        workload=workload,
        controller_uid="",
        tenant=tenant,
        source=source,
        destination="cool",
    )
