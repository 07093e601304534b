"""The benchmark of node load annotations, run at the size of a toy."""

from __future__ import annotations

import pytest

from benchmarks.annotations import STOCK_PER_HOUR, an_hour, main


def test_an_hour_of_looks_leaves_nothing_stale_and_patches_far_less_than_the_stock_annotator() -> None:
    """One patch a node, at most one a period."""
    hour = an_hour(40)
    assert hour.stale == 0
    assert hour.patches[0] == 40
    assert hour.per_node < STOCK_PER_HOUR / 4


def test_the_command_prints_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """What is decided, and both ways of sending."""
    assert main(["--nodes", "6", "--seconds", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
