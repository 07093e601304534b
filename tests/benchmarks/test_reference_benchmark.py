"""How the reference scenario is measured, without a control plane: who holds which slot, what is counted, what the page says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cycle import this_machine
from benchmarks.reference_page import COLUMNS, markdown, table
from rebalancer.policy.loader import load_policy
from tests.e2e.api import Json
from tests.e2e.load import Ledger
from tests.e2e.reference_course import Course
from tests.e2e.reference_run import NOTHING, REBALANCER, WITHOUT_TAINTS
from tests.e2e.reference_town import Town, build_town
from tests.e2e.reference_traffic import Traffic


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def pod(town: Town, slot: int, uid: str, node: int, **meta: str) -> Json:
    namespace, app = next(place for place, slots in town.slots.items() if slot in slots)
    labels = {"app": app}
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": namespace, "labels": labels, **meta},
        "spec": {"nodeName": town.nodes[node].name, "containers": [{"name": "main"}]},
    }


def filled(town: Town, clock: Clock) -> tuple[Traffic, Ledger]:
    """Every slot on the node of its number, in turn."""
    traffic = Traffic(town, begins_at=-30.0, clock=clock)
    ledger = Ledger([node.machine(number) for number, node in enumerate(town.nodes)], traffic, clock=clock)
    for slot in range(town.pods):
        ledger.starts(pod(town, slot, f"first-{slot}", slot % len(town.nodes)))
    return traffic, ledger


@pytest.fixture(scope="module")
def town() -> Town:
    return build_town(nodes=6, pods=110, seed=7)


def wanted(town: Town, ledger: Ledger) -> list[float]:
    reading = ledger.read()
    return [reading.node_wanted[node.name] / node.cpu for node in town.nodes]


def test_the_same_seed_makes_the_same_town_at_the_load_of_the_scenario(town: Town) -> None:
    """Two towns of one seed are alike, another seed makes another, and the mean load is the scenario's 48 percent."""
    again, other = build_town(nodes=6, pods=110, seed=7), build_town(nodes=6, pods=110, seed=8)
    assert np.array_equal(town.cores(33.0), again.cores(33.0))
    assert not np.array_equal(town.cores(33.0), other.cores(33.0))
    assert town.waves.base[:, 0].sum() == pytest.approx(0.48 * 6 * 32 - 6 * 0.05)
    assert np.abs(town.cores(100.0) / town.waves.base[:, 0] - 1).max() <= 0.25 + 1e-9


def test_time_stands_still_until_the_town_is_full(town: Town) -> None:
    """However long filling takes, the waves begin where they are to begin; then they follow the clock."""
    clock = Clock()
    traffic, ledger = filled(town, clock)
    placement = np.arange(town.pods) % len(town.nodes)
    clock.now += 500.0
    assert traffic.now == -30.0
    assert wanted(town, ledger) == pytest.approx(town.loads(placement, -30.0).tolist())
    traffic.begin()
    clock.now += 90.0
    assert wanted(town, ledger) == pytest.approx(town.loads(placement, 60.0).tolist())


def test_a_replacement_takes_over_the_slot_of_the_pod_that_leaves(town: Town) -> None:
    """The pod on its way out still uses its share until it ends; then demand is that of the town with the slot on another node."""
    clock = Clock()
    traffic, ledger = filled(town, clock)
    slot = 3
    assert slot not in (slots.start for slots in town.slots.values()), "the first slot would be found by accident"
    ledger.starts(pod(town, slot, f"first-{slot}", slot, deletionTimestamp="now"))
    ledger.starts(pod(town, slot, "second", 5))
    placement = np.arange(town.pods) % len(town.nodes)
    both = town.loads(placement, -30.0)
    both[5] += town.cores(-30.0)[slot] / town.nodes[5].cpu
    assert wanted(town, ledger) == pytest.approx(both.tolist())
    ledger.ends(f"first-{slot}")
    placement[slot] = 5
    assert wanted(town, ledger) == pytest.approx(town.loads(placement, -30.0).tolist())
    assert [(arrival.slot, arrival.uid) for arrival in traffic.arrivals[town.pods :]] == [(slot, "second")]


def test_a_course_tells_what_moves_did_from_what_would_have_been(town: Town) -> None:
    """Hot nodes, the worst load and nodes made hot, each beside the same start without moves."""
    times = np.array([0.0, 30.0, 60.0, 90.0])
    idle = np.array([[0.9, 0.5, 0.3]] * 4)
    loads = np.array([[0.9, 0.5, 0.3], [0.6, 0.5, 0.6], [0.6, 0.5, 0.6], [0.6, 0.5, 0.7]])
    moves = [{"pod": "shop/web-6d8675dc5c-gtvqx", "destination": "node-02"}]
    course = Course("one", times, loads, idle, landed=[("shop/web", "node-02")], moves=moves, settled={"as-planned": 1, "elsewhere": 0})
    assert (course.hot(), course.hot(after=60), course.hot_idle(after=60)) == (0.5, 0.5, 1.0)
    assert (course.worst, course.worst_idle, course.above_idle) == (0.9, 0.9, 0.0)
    assert course.made_hot == (2,)
    assert (course.evictions, course.on_named, course.as_planned) == (1, 1, 1)
    page = markdown([course], town=town, machine=this_machine(), kubernetes="v1", seconds=240, command="x")
    assert all(f"| {title} |" in page for title, _ in COLUMNS if title)
    assert all(part in page for part in ("machine: ", "seed 7", "1 of 1", "minRelative"))
    assert len(table([course])) == 2


def test_the_policies_of_the_contenders_are_policies(tmp_path: Path) -> None:
    """Each is read as `rebalancer run` reads it, and they differ in the soft taint alone."""
    found = []
    for contender in (REBALANCER, WITHOUT_TAINTS):
        file = tmp_path / "policy.yaml"
        file.write_text(f"apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nspec:\n{contender.spec}")
        found.append(load_policy(file).spec)
    assert NOTHING.spec is None
    assert [spec.steering.soft_taint for spec in found] == [True, False]
    assert found[0].model_copy(update={"steering": found[1].steering}) == found[1]
