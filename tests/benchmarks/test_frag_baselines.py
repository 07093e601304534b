"""The baselines of the fragmentation benchmark do what is described of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.frag_baselines import frag_multi_pod, frag_one_pod
from benchmarks.fragmentation import main
from benchmarks.fragmented_fleet import Ask, Fleet, Machine, empty_fleet


def fleet(*placed: tuple[float, int], nodes: int = 2) -> Fleet:
    """Nodes with one GPU each, and pods of a share of it on them, beside a mix that asks for whole devices."""
    asks = [Ask(f"p{row}", 1.0, 1.0, 1, share, frozenset()) for row, (share, _) in enumerate(placed)]
    asks += [Ask(f"whole{row}", 1.0, 1.0, 1, 1.0, frozenset()) for row in range(40)]
    machines = [Machine(f"n{row}", 32.0, 1000.0, 1, "T4") for row in range(nodes)]
    empty = empty_fleet(machines, asks)
    for row, (_, at) in enumerate(placed):
        empty.put(row, at)
    return empty


def test_one_pod_a_node_the_most_fragmented_first() -> None:
    """n1 loses 0.9, n0 loses 0.5: their pods go in that order."""
    own = fleet((0.5, 0), (0.1, 1))
    assert frag_one_pod(own, own.measure(), ratio=1.0) == [1, 0]
    assert sorted(own.places) == [0, 1]


def test_the_cap_is_rounded_up() -> None:
    """A tenth of two pods is one."""
    own = fleet((0.5, 0), (0.1, 1))
    assert frag_one_pod(own, own.measure(), ratio=0.1) == [1]


def test_nobody_is_taken_whose_leaving_wins_nothing() -> None:
    """Of two halves of a device either alone leaves half of it, which is lost: more than before."""
    own = fleet((0.5, 0), (0.5, 0), nodes=1)
    assert frag_one_pod(own, own.measure(), ratio=1.0) == []
    assert frag_multi_pod(own, own.measure(), ratio=1.0) == []


def test_many_pods_takes_the_best_of_all_first() -> None:
    """Without the small one 0.9 is won, without the other 0.5."""
    own = fleet((0.5, 0), (0.1, 1))
    assert frag_multi_pod(own, own.measure(), ratio=1.0) == [1, 0]


def test_without_traces_the_benchmark_is_skipped(tmp_path: Path) -> None:
    """Nothing is written either."""
    page = tmp_path / "page.md"
    assert main(["--traces", str(tmp_path), "--write", str(page)]) == 0
    assert not page.exists()
