"""The comparison with the peers, run at the size of a toy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.compare import SCENARIOS, main
from benchmarks.comparison import COLUMNS


def small(folder: Path) -> Path:
    """The reference scenario with a tenth of the nodes and pods."""
    text = (SCENARIOS / "skewed.yaml").read_text().replace("count: 60", "count: 6").replace("pods: 1100", "pods: 110")
    path = folder / "small.yaml"
    path.write_text(text.replace("namespaces: 12", "namespaces: 2"))
    return path


def test_everybody_is_in_the_table_and_the_page_says_how_it_was_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All strategies in one run, every column, the machine, the seed and the command."""
    page = tmp_path / "peers.md"
    assert main(["--hours", "0.2", "--scenarios", str(small(tmp_path)), "--write", str(page)]) == 0
    text = page.read_text()
    assert all(column.title in text for column in COLUMNS)
    for name in (
        "none",
        "rebalancer",
        "rebalancer, defaults",
        "low-node-utilization-1",
        "low-node-utilization-5",
        "low-node-load",
        "reduce-high-load-node",
    ):
        assert f"| {name} |" in text
    assert all(part in text for part in ("machine: ", "seed 7", "python -m benchmarks.compare --hours 0.2"))
    assert "| none |" in capsys.readouterr().out


def test_a_scenario_that_is_not_there_is_one_sentence_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The status of the error is the status of the command."""
    assert main(["--scenarios", "nowhere"]) == 2
    assert "nowhere.yaml does not exist" in capsys.readouterr().err


def test_where_nobody_was_hot_the_page_says_that_it_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quiet scenario is no victory."""
    text = small(tmp_path).read_text().replace("averageLoad: 48", "averageLoad: 10")
    path = tmp_path / "quiet.yaml"
    path.write_text(text)
    assert main(["--hours", "0.1", "--scenarios", str(path)]) == 0
    assert "tells the strategies apart in nothing" in capsys.readouterr().out
