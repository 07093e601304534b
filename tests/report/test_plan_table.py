"""The plan as people read it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from rebalancer.plan.model import Plan
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.report.writers.plan_table import conclusion
from tests.report import samples


def _table(plan: Plan, fmt: Format = Format.TABLE) -> str:
    return render(plan, fmt, Page())


def test_e5_each_move_prints_pod_both_ends_and_gain() -> None:
    """Pod, source -> destination, loads of both ends before and after, and the gain."""
    text = _table(samples.plan())
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "checkout-service-canary" in line)
    assert lines[start].split() == ["1", "0.0484", "payments-production/checkout-service-canary-europe-7d9c8b6f5-x2x4z"]
    assert lines[start + 1].endswith(" 91 % -> 69 %  44 % -> 41 %")
    assert samples.HOT_GKE in lines[start + 1]
    assert f"-> {samples.COOL_GKE}" in lines[start + 2]
    assert "31 % -> 52 %" in lines[start + 2]
    assert lines[start + 3].strip() == "cpu load 91 % > high 70 %; this pod alone brings it under target"


def test_e2_refusals_are_counted_by_gate_with_an_example() -> None:
    """A number alone explains nothing: the gate's sentence with its numbers is beside it."""
    text = " ".join(_table(samples.plan()).split())
    assert "disruption-budget 12 payments-production/ledger-writer-0: PDB payments-production/ledger-writer allows 0" in text


def test_wide_shows_every_refusal_and_every_node() -> None:
    """Nothing is summed up and no name is cut."""
    text = _table(samples.plan(), Format.WIDE)
    assert text.count("ledger-writer allows 0 disruptions") == 12
    assert all(node.name in text for node in samples.plan().nodes)
    assert "alternatives gke-prod" in text
    assert "…" not in text


def test_the_mode_and_its_source_come_first() -> None:
    """Nobody has to guess whether pods will be evicted."""
    assert _table(samples.plan()).startswith("Mode     dry-run (source: default), nothing in the cluster is changed\n")


def test_soft_taints_are_announced() -> None:
    """Nodes are written to as well, so the plan says which."""
    text = " ".join(_table(samples.plan()).split())
    assert f"2 nodes to carry the soft taint meanwhile: {samples.HOT_GKE}, {samples.HOT_EC2}." in text


def test_hot_nodes_that_carry_both_grades_are_named() -> None:
    """They repel more than the warm ones beside them."""
    plan = samples.plan()
    both = ("rebalancer.dev/hot", "rebalancer.dev/warm")
    nodes = [msgspec.structs.replace(node, soft_taints=both if node.name == samples.HOT_GKE else both[1:]) for node in plan.nodes]
    text = " ".join(_table(msgspec.structs.replace(plan, nodes=tuple(nodes))).split())
    assert f"{samples.HOT_GKE}, {samples.HOT_EC2}; both grades, as they are hot: {samples.HOT_GKE}." in text


def test_before_and_after_are_side_by_side() -> None:
    """Hot nodes, worst load, spread."""
    words = [line.split() for line in _table(samples.plan()).splitlines()]
    assert ["hot", "nodes", "3", "0"] in words
    assert ["worst", "load", "102", "%", "69", "%"] in words
    assert ["spread", "12.3", "%", "9.8", "%"] in words


def test_an_unknown_node_is_shown_as_unknown() -> None:
    """With a question mark and the reason, not with zero."""
    text = _table(samples.plan())
    line = next(line for line in text.splitlines() if line.startswith(samples.LOST))
    assert line.split()[1:3] == ["unknown", "?"]
    assert "cpu load unknown: no series for the node" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hot_nodes": 0, "max_load": 0.62, "unknown_nodes": 0}, "Nothing to do: no node is hot, the worst load is 62 %."),
        ({"hot_nodes": 0, "max_load": None, "unknown_nodes": 0}, "Nothing to do: no node is hot, the worst load is ?."),
        ({"hot_nodes": 3, "unknown_nodes": 0}, "Nothing is moved: 3 hot nodes, and all 17 candidates are refused."),
    ],
)
def test_a_sentence_says_why_nothing_is_done(changes: dict[str, float | None], expected: str) -> None:
    """An empty plan explains itself."""
    plan = samples.plan()
    assert conclusion(replace(plan, moves=(), summary=replace(plan.summary, **changes))) == expected


def test_hot_nodes_without_any_candidate_are_told() -> None:
    """No refusal either: the sentence says that no pod could leave, and that a node is unknown."""
    plan = replace(samples.plan(), moves=(), refused=())
    assert conclusion(plan) == ("Nothing is moved: 3 hot nodes, and no pod that could leave. 1 node of unknown load judged neither way.")


def test_the_planners_own_sentence_wins() -> None:
    """What the method says of its outcome is what is shown."""
    plan = replace(samples.plan(), outcome="3 moves cool 3 hot nodes")
    assert "3 moves cool 3 hot nodes" in _table(plan)


def test_many_signals_still_fit() -> None:
    """Four signals shorten the names of nodes, not the numbers."""
    plan = samples.plan()
    cpu = plan.moves[0].signals["cpu"]
    names = ("cpu", "memory", "gpu", "network")
    moves = tuple(replace(move, signals=dict.fromkeys(names, cpu)) for move in plan.moves)
    text = _table(replace(plan, moves=moves, nodes=()))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("91 % -> 69 %") == 12
