"""Loops are visible: a workload that is moved again is counted apart, for whoever watches."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Mode, RebalancePolicy, Spec
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.controller import CycleResult
from rebalancer.runtime.health import Health
from rebalancer.runtime.load_watching import LoadWatch
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.metrics import Metrics
from rebalancer.runtime.service import Parts, Service
from rebalancer.runtime.session import open_session
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, cluster, node, pod

WEB = WorkloadRef("Deployment", "default", "web")
ORDERS = Orders(policy=RebalancePolicy(spec=Spec()), mode=Mode.EVICT, mode_source="a test")


def before(workload: WorkloadRef, *, ago_s: float) -> PastEviction:
    return PastEviction(
        at=NOW - ago_s,
        pod_uid="old",
        namespace=workload.namespace,
        pod="old",
        workload=workload,
        controller_uid="rs",
        tenant=None,
        source="elsewhere",
        destination="hot",
    )


@dataclass
class Carrying:
    """A controller that carries out whatever is planned for one hot node, with what it remembers."""

    memory: Memory

    def cycle(self, orders: Orders, *, deadline: Deadline) -> CycleResult:
        pods = [pod("web-1", on="hot", workload="web", cpu=0.5, uses={"cpu": 3.0, "memory": 0.0})]
        nodes = [node("hot", load={"cpu": 0.9, "memory": 0.1}), node("cool", load={"cpu": 0.1, "memory": 0.1})]
        verdict = consider(cluster(nodes=nodes, pods=pods), self.memory, ORDERS)
        outcomes = tuple(Outcome(move, Result.EVICTED, "") for move in verdict.decision.plan.moves)
        return CycleResult(verdict=verdict, outcomes=outcomes, memory=verdict.memory, seconds={}, notes=())


class Clock:
    def now(self) -> float:
        return NOW


def exposed(memory: Memory) -> dict[str, float]:
    """The counters after one cycle of the service."""
    metrics = Metrics()
    session = open_session(settings_file=None, flags={}, environ={})
    health = Health(interval_s=120, patience_s=60)
    controller, clock = Carrying(memory), Clock()
    parts = Parts(session=session, controller=controller, actuators={}, metrics=metrics, health=health, loads=LoadWatch(clock), clock=clock)  # type: ignore[arg-type]
    assert Service(parts, stop=threading.Event()).tick() is not None
    text = metrics.exposition()
    lines = (line for line in (text.decode() if isinstance(text, bytes) else text).splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_e3_a_repeated_eviction_is_counted_as_one() -> None:
    """The workload was moved an hour ago and is moved again: a move, and a repeat."""
    found = exposed(Memory(evictions=(before(WEB, ago_s=3600),)))
    assert found["rebalancer_repeat_moves_total"] == 1
    assert sum(value for name, value in found.items() if name.startswith("rebalancer_moves_total") and 'outcome="evicted"' in name) == 1


def test_e3_the_first_move_of_a_workload_is_no_repeat() -> None:
    """Nor is it one that another workload was moved before."""
    found = exposed(Memory(evictions=(before(WorkloadRef("Deployment", "default", "api"), ago_s=3600),)))
    assert found["rebalancer_repeat_moves_total"] == 0
    assert sum(value for name, value in found.items() if name.startswith("rebalancer_moves_total") and 'outcome="evicted"' in name) == 1
