"""Traces: holes are unknown, everything else that is no number is told with its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from rebalancer.errors import ScenarioError
from rebalancer.runtime.own_strategy import REBALANCER
from rebalancer.runtime.simulating import scenario_setting
from rebalancer.simulate.forward.running import Contestant, compare
from rebalancer.simulate.forward.scenario import Trace
from rebalancer.simulate.forward.scenario_file import load_scenario
from rebalancer.simulate.forward.traces import read_requests, read_series
from tests.simulate_forward.kit import policy_of, population, scenario, world

SCENARIOS = Path(__file__).parents[2] / "config" / "scenarios"
CPU = Trace(path="cpu.csv", kind="planetlab-cpu")
PODS = Trace(path="pods.csv", kind="openb-requests")
WHOLE = "seconds,a,b\n0,10,20\n300,,40\n600,30,\n"


def written(folder: Path, text: str, *, name: str = "cpu.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_percentages_become_ratios_and_holes_become_unknown(tmp_path: Path) -> None:
    """An empty cell is NaN, never 0."""
    series = read_series(CPU, written(tmp_path, WHOLE))
    assert series.times.tolist() == [0.0, 300.0, 600.0]
    np.testing.assert_allclose(series.values, [[0.1, 0.2], [np.nan, 0.4], [0.3, np.nan]])


def test_a_hole_is_carried_for_the_pod_that_lives_through_it(tmp_path: Path) -> None:
    """What nobody saw is made to be the last value before; at the beginning the first one after."""
    series = read_series(CPU, written(tmp_path, "seconds,a\n0,\n300,20\n600,\n900,40\n"))
    assert series.carried[:, 0].tolist() == [0.2, 0.2, 0.2, 0.4]


def test_series_without_samples_are_left_out(tmp_path: Path) -> None:
    """A column that is always empty is no pod; so is one that is emptier than was asked for."""
    text = "seconds,a,b,c\n0,1,,\n300,1,,2\n"
    assert read_series(CPU, written(tmp_path, text)).values.shape == (2, 2)
    picky = Trace(path="cpu.csv", kind="planetlab-cpu", least_samples=90)
    assert read_series(picky, tmp_path).values.shape == (2, 1)


def test_a_gzipped_trace_is_read_alike(tmp_path: Path) -> None:
    """As the shared ones are."""
    (tmp_path / "cpu.csv.gz").write_bytes(gzip.compress(WHOLE.encode()))
    zipped = read_series(Trace(path="cpu.csv.gz", kind="planetlab-cpu"), tmp_path)
    np.testing.assert_array_equal(zipped.values, read_series(CPU, written(tmp_path, WHOLE)).values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seconds,a\n0,high\n", r"line 2, column a: 'high' is no number"),
        ("seconds,a\n0,1\n300\n", r"line 3: 1 cells where the header has 2"),
        ("seconds,a\n300,1\n0,1\n", r"line 3: its time 0 does not go forward"),
        ("seconds,a\n,1\n", r"line 2: its time is empty and does not go forward"),
        ("seconds,a\n0,400\n", r"sample 1 of series 1 is 4 times the whole"),
        ("seconds,a\n0,-3\n", r"sample 1 of series 1 is -0.03 times the whole"),
        ("seconds,a\n0,\n", r"the fullest series has a sample in no cell"),
        ("seconds,a\n", "has no samples"),
        ("time,a\n0,1\n", "has no columns seconds"),
        ("", "has no columns seconds"),
    ],
)
def test_what_is_no_trace_is_told_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """With the file and the line, and an exit status for configuration."""
    with pytest.raises(ScenarioError, match=sentence) as raised:
        read_series(CPU, written(tmp_path, text))
    assert raised.value.exit_status == 3
    assert "cpu.csv" in raised.value.message


def test_a_trace_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Without a directory, with a wrong one, and with a path that leads out of it."""
    with pytest.raises(ScenarioError, match="replays trace cpu") as raised:
        read_series(CPU, None)
    assert "--traces" in raised.value.remedy
    with pytest.raises(ScenarioError, match="there is no trace"):
        read_series(CPU, tmp_path)
    with pytest.raises(ScenarioError, match="is not under"):
        read_series(Trace(path="../cpu.csv", kind="planetlab-cpu"), tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b broken", gzip.compress(WHOLE.encode(), mtime=0)[:-9], gzip.compress(b"\xff\xfe\x00", mtime=0)],
    ids=["broken", "cut", "not text"],
)
def test_a_damaged_file_is_told(tmp_path: Path, data: bytes) -> None:
    """Cut short, no gzip, no text."""
    (tmp_path / "cpu.csv.gz").write_bytes(data)
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_series(Trace(path="cpu.csv.gz", kind="planetlab-cpu"), tmp_path)


def test_requests_are_read_and_pods_without_any_left_out(tmp_path: Path) -> None:
    """Milli-cores and MiB to cores and bytes."""
    asked = read_requests(PODS, written(tmp_path, "name,cpu_milli,memory_mib\nx,1500,1024\ny,0,1\nz,,5\n", name="pods.csv"))
    assert (asked.cores.tolist(), asked.memory.tolist()) == ([1.5], [2.0**30])
    with pytest.raises(ScenarioError, match="has no column memory_mib"):
        read_requests(PODS, written(tmp_path, "name,cpu_milli\nx,1\n", name="pods.csv"))
    with pytest.raises(ScenarioError, match="line 2, column cpu_milli"):
        read_requests(PODS, written(tmp_path, "name,cpu_milli,memory_mib\nx,many,1\n", name="pods.csv"))


def test_a_hole_makes_the_pod_unknown_and_its_node_stays_known(tmp_path: Path) -> None:
    """The node was measured with whatever the pod used, so nothing of it is lost or taken for 0."""
    rows = "\n".join(f"{300 * tick},{50 if tick else ''}" for tick in range(4))
    written(tmp_path, f"seconds,a\n{rows}\n")
    made = scenario(workloads=[population(pods=2, replicas={"from": 2, "to": 2}, traces=[{"path": "cpu.csv", "kind": "planetlab-cpu"}])])
    living = world(made, warm_up_ticks=200, traces=tmp_path)
    living.tick()
    state = living.look().state
    assert np.isfinite(state.nodes.usage).all()
    for _ in range(10):  # ten ticks of 15 s within the hole of 300 s
        living.tick()
    state = living.look().state
    assert np.isnan(state.pods.measured[:, 0]).all()
    assert np.isfinite(state.nodes.usage).all()
    assert np.isfinite(state.pods.measured[:, 1]).all()


TRACES = os.environ.get("REBALANCER_TEST_TRACES", "")


@pytest.mark.traces
@pytest.mark.skipif(not TRACES, reason="REBALANCER_TEST_TRACES names no directory of traces")
def test_the_shipped_scenario_of_real_load_runs_on_real_traces() -> None:
    """Every pod follows a series, decisions are made, and no budget is violated."""
    made = load_scenario(SCENARIOS / "planetlab.yaml")
    ground = scenario_setting(made, hours=0.5, traces=Path(TRACES))
    (result,) = compare(ground, (Contestant("own", REBALANCER, policy_of(made)),), hours=0.5)
    assert all((replay.series >= 0).all() for replay in ground.demand.replays)
    assert (result.undecided, result.tally.violations) == (0, 0)
    assert 0.2 < float(np.nanmean(result.tally.loads[:, 0])) < 0.6
