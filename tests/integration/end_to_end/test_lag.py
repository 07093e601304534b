"""After an eviction the node's five-minute mean stays high for minutes: the ledger of those who left keeps the controller from going on.

The series are those of a node that a pod leaves at a known moment; the eviction in between is a real one, by the controller, at the API.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rebalancer.act.evicting import EvictActuator
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Cooldown, Mode, RebalancePolicy, Spec
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.store import ProcessStore
from tests.integration.end_to_end.conftest import StartTown, Town
from tests.integration.end_to_end.town import (
    HOT,
    NODE_LABEL,
    NODES,
    PODS,
    VICTIM,
    cores_of,
    instants,
    memory_of,
    node_series,
    pod_series,
)
from tests.support.prometheus_server import Samples, StartPrometheus, openmetrics

pytestmark = pytest.mark.prometheus

LEFT_S = 30.0
"""When the victim stops, in seconds after the first cycle."""
SECOND_S = 120.0
NO_COOLDOWN = Cooldown(workload=0, node=0, max=0)


def leaving(now: float) -> Iterator[Samples]:
    """The town's series; the victim uses its three cores until it leaves, and its node as many less from then on."""
    times = instants(now, until=900.0)
    victim = next(one for one in PODS if one.name == VICTIM)
    for name in NODES:
        yield from node_series(NODE_LABEL, name, cores=cores_of(name), memory=memory_of(name), times=times)
    for one in PODS:
        yield from pod_series(NODE_LABEL, one, times=[at for at in times if one is not victim or at <= now + LEFT_S])


def bent(samples: Samples, now: float) -> Samples:
    """The hot node's counters of work, which grow slower after the victim has left."""
    if samples.name != "node_cpu_seconds_total" or samples.labels["node"] != HOT or samples.labels["mode"] == "idle":
        return samples
    victim = next(one for one in PODS if one.name == VICTIM)
    share = 0.8 if samples.labels["mode"] == "user" else 0.2
    return replace(samples, points=[(at, value - share * victim.cores * max(0.0, at - now - LEFT_S)) for at, value in samples.points])


class Clock:
    def __init__(self, town: Town) -> None:
        self._town = town

    def now(self) -> float:
        return self._town.cluster.world.now


@pytest.fixture
def town(start_town: StartTown) -> Town:
    return start_town()


@pytest.fixture
def controller(town: Town, start_prometheus: StartPrometheus, now: float) -> Iterator[Controller]:
    server = start_prometheus(blocks=openmetrics(bent(one, now) for one in leaving(now)))
    prometheus = Prometheus(PrometheusAccess(url=server.url))
    actuators = {Mode.EVICT: EvictActuator(town.client, events=None)}
    yield Controller(client=town.client, prometheus=prometheus, actuators=actuators, store=ProcessStore(), clock=Clock(town))
    prometheus.close()
    server.stop()


def cycle(controller: Controller, spec: Spec) -> CycleResult:
    return controller.cycle(Orders(RebalancePolicy(spec=spec), Mode.EVICT, "a test"), deadline=Deadline.after(60))


def of_hot(plan: Plan):
    return next(node for node in plan.nodes if node.name == HOT)


def test_m2_the_node_is_cool_by_the_ledger_while_its_mean_is_still_hot(town: Town, controller: Controller, now: float) -> None:
    """One eviction; ninety seconds after the pod left, the mean of five minutes says 77 % and the ledger 50 %: nothing is planned."""
    spec = Spec(cooldown=NO_COOLDOWN)
    first = cycle(controller, spec)
    assert [path.rsplit("/", 2)[1] for path in town.evictions] == [VICTIM]
    assert [outcome.move.pod.name for outcome in first.outcomes] == [VICTIM]
    town.cluster.advance(SECOND_S)
    second = cycle(controller, spec)
    state, plan = second.verdict.state, second.verdict.decision.plan
    mean = state.nodes.usage[state.node_index[HOT], 0] / 8
    assert mean == pytest.approx((7.04 - 3 * 90 / 300) / 8, abs=0.02)
    assert mean > 0.70
    assert state.nodes.departed[state.node_index[HOT], 0] == pytest.approx(3 * 210 / 300, abs=0.1)
    assert of_hot(plan).signals["cpu"].load == pytest.approx(4.04 / 8, abs=0.02)
    assert of_hot(plan).node_class == "normal"
    assert plan.moves == ()
    assert plan.outcome == "nothing to do: none of 12 nodes with a known load is hot"
    assert len(town.evictions) == 1


def test_t3_with_the_usual_cooldowns_the_answer_is_the_same(town: Town, controller: Controller) -> None:
    """Every two minutes for ten: one eviction in all, and the taint is gone when the node is cool."""
    for _ in range(5):
        cycle(controller, Spec())
        town.cluster.advance(SECOND_S)
    assert len(town.evictions) == 1
    assert town.cluster.world.get("nodes", HOT)["spec"].get("taints") in (None, [])


def test_t7_the_replacement_weighs_before_it_is_measured(town: Town, controller: Controller) -> None:
    """Nobody has measured it yet; its node carries what its siblings use, marked as an estimate."""
    cycle(controller, Spec())
    town.cluster.advance(SECOND_S)
    state = cycle(controller, Spec()).verdict.state
    old = {one.name for one in PODS}
    born = [row for row, name in enumerate(state.pods.names) if name not in old]
    assert len(born) == 1
    assert state.pods.names[born[0]].startswith("web-")
    assert bool(state.pods.estimated[born[0], 0])
    assert state.pods.usage[born[0], 0] == pytest.approx(0.4, abs=0.01)
