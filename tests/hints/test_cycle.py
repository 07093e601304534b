"""A cycle and its hints: it counts on them only where they are given, says whose replacements will come, and evicts nobody in vain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rebalancer.act.outcome import Result
from rebalancer.deadline import Deadline
from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL
from rebalancer.policy.model import Mode, Steering
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.memory import OpenMove
from rebalancer.runtime.session import actuators
from rebalancer.runtime.store import ConfigMapStore
from rebalancer.simulate.world import updated
from tests.runtime.village import HOT, NAMESPACE, Village, cycle, evicted, orders, serving


@dataclass
class Heard:
    """Stands in for those who give hints. ``why_unready``, ``why_not``: what it answers."""

    village: Village
    why_unready: str = ""
    why_not: str = ""
    told: list[str] = field(default_factory=list)
    hot: Collection[str] = ()

    def unready(self, *, deadline: Deadline) -> str:
        return self.why_unready

    def show(self, moves: Sequence[OpenMove], *, hot: Collection[str]) -> None:
        self.hot = hot

    def announce(self, moves: Sequence[OpenMove], *, deadline: Deadline) -> str:
        self.told.append(f"announced {[move.eviction.pod for move in moves]}, evicted {evictions(self.village)}")
        return self.why_not

    def expect(self, move: OpenMove) -> None:
        self.told.append(f"expected {move.eviction.pod}, evicted {evictions(self.village)}")

    def withdraw(self, move: OpenMove) -> None:
        self.told.append(f"withdrawn {move.eviction.pod}")

    def carried_out(self) -> None:
        self.told.append("carried out")


def evictions(village: Village) -> int:
    return sum(write.endswith("/eviction") for write in village.writes())


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Village]:
    """The village, whose shop asks for hints."""
    with serving(tmp_path) as village:
        world = village.world
        world.replace("namespaces", updated(world.get("namespaces", "shop"), "metadata", {"labels": {NAMESPACE_LABEL: ENABLED}}))
        yield village


def looked(village: Village, heard: Heard, *, mode: Mode = Mode.EVICT) -> CycleResult:
    given = orders(mode, steering=Steering(hints=True))
    controller = Controller(
        client=village.client,
        prometheus=village.prometheus,
        actuators=actuators(village.client, events=False, instance="test"),
        store=ConfigMapStore(village.client, namespace=NAMESPACE),
        clock=village,
        hints=heard,
    )
    return cycle(controller, Orders(given.policy, given.mode, given.mode_source, hints=True))


def test_the_replacement_is_announced_before_its_pod_is_evicted(here: Village) -> None:
    """First whose replacements come, then each right before its eviction; hot nodes are known to whoever gives hints."""
    heard = Heard(here)
    result = looked(here, heard)
    (pod,) = evicted(result)
    assert result.verdict.decision.plan.moves[0].steered_by == "hint"
    assert heard.told == [f"announced ['{pod}'], evicted 0", f"expected {pod}, evicted 0", "carried out"]
    assert heard.hot == {HOT}


def test_what_cannot_be_announced_is_not_evicted(here: Village) -> None:
    """A move that counts on a hint is not worth an eviction without; it is said why."""
    result = looked(here, Heard(here, why_not="the API server does not know the kind"))
    assert evictions(here) == 0
    (outcome,) = result.outcomes
    assert (outcome.result, outcome.reason) == (Result.ABANDONED, "not tried: the API server does not know the kind")


def test_without_an_admission_policy_the_plan_predicts_the_scheduler(here: Village) -> None:
    """Nothing is counted on that nobody does, and the cycle says so."""
    heard = Heard(here, why_unready="no admission policy goes by it")
    result = looked(here, heard)
    assert {move.steered_by for move in result.verdict.decision.plan.moves} <= {"taint", "none"}
    assert "no admission policy goes by it" in result.notes
    assert not any(told.startswith(("announced", "expected")) for told in heard.told)


def test_a_dry_run_plans_with_hints_and_tells_nobody(here: Village) -> None:
    """It shows what evict mode would do."""
    heard = Heard(here, why_unready="dry run switches nothing on")
    result = looked(here, heard, mode=Mode.DRY_RUN)
    assert [move.steered_by for move in result.verdict.decision.plan.moves] == ["hint"]
    assert heard.told == ["carried out"]
    assert here.writes() == []


def test_an_eviction_that_is_refused_is_withdrawn(here: Village) -> None:
    """Nobody waits for the replacement of a pod that stayed."""
    here.cluster.api.rights.deny("create", "pods/eviction")
    heard = Heard(here)
    looked(here, heard)
    assert [told for told in heard.told if told.startswith("withdrawn")]
