"""The benchmark of one cycle, run at the size of a toy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.cycle import main, measure
from benchmarks.scene import Report, Scene
from benchmarks.tables import text

STAGES = ("kubernetes", "prometheus", "assemble", "detect", "plan", "write")


def test_a_tiny_run_measures_every_stage_of_a_cycle_that_plans_moves() -> None:
    """Every stage has a CPU time, a wall time and a peak, and the cycle found the nodes that were made hot."""
    run = measure(Scene(nodes=12, pods=240, hot_nodes=2))
    assert tuple(stage.name for stage in run.measured.stages) == STAGES
    assert all(stage.wall_seconds >= 0 and stage.cpu_seconds >= 0 for stage in run.measured.stages)
    assert run.measured.peak_bytes >= run.measured.stages[0].peak_bytes >= run.measured.baseline_bytes > 0
    assert (run.served.nodes, run.measured.hot_nodes) == (12, 2)
    assert run.measured.moves > 0
    assert run.kubernetes.requests > 10
    assert run.kubernetes.json_bytes >= run.kubernetes.wire_bytes > 0


def test_the_command_prints_json_and_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed decodes as a report, which also fills the table and the page."""
    page = tmp_path / "results.md"
    assert main(["--nodes", "6", "--pods", "90", "--hot-nodes", "1", "--seed", "3", "--json", "--write", str(page)]) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert report.runs[0].scene == Scene(nodes=6, pods=90, hot_nodes=1, seed=3)
    assert report.machine.python in page.read_text()
    for stage in STAGES:
        assert f"{stage}: CPU / wall" in text(report)
        assert f"{stage}: CPU / wall" in page.read_text()
