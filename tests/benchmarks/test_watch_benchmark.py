"""The benchmark of reading by watch, run at the size of a toy."""

from __future__ import annotations

import pytest

from benchmarks.scene import Scene
from benchmarks.watch import main, measure, text


def test_both_ways_see_every_pod_and_the_second_look_by_watch_asks_for_less() -> None:
    """The first look of both lists everything; later ones by watch list the small kinds alone."""
    found = measure(Scene(nodes=6, pods=90, hot_nodes=1), changes=5, looks=2)
    assert set(found) == {"lists", "watch"}
    assert {look.pods for looks in found.values() for look in looks} == {found["lists"][0].pods}
    assert found["lists"][0].lists == found["lists"][1].lists == found["watch"][0].lists
    assert 0 < found["watch"][1].lists < found["lists"][1].lists
    assert text(found).count("MiB") == 8


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a look, and a head."""
    assert main(["--nodes", "6", "--pods", "90", "--changes", "2", "--looks", "1"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [["lists", "1"], ["watch", "1"]]
