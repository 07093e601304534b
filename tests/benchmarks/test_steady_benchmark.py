"""The benchmark of cycles that go on, run at the size of a toy; and what it says of growth."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.churn import Churn
from benchmarks.growth import exponent, rows, text
from benchmarks.scene import Cycle, Machine, Report, Scene, Served, SteadyRun, Traffic
from benchmarks.steady import main
from benchmarks.tables import markdown
from rebalancer.simulate.scenario import Scenario, build_world

STAGES = ("kubernetes", "prometheus", "assemble", "detect", "plan")


def test_the_command_measures_cycles_of_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    """The first cycle lists all, the second the small kinds alone; pods are changed in between, and both find the hot nodes."""
    assert main(["--nodes", "6", "--pods", "90", "--hot-nodes", "1", "--cycles", "2", "--json"]) == 0
    (run,) = msgspec.json.decode(capsys.readouterr().out, type=Report).steady
    first, second = run.cycles
    assert tuple(stage.name for stage in first.stages) == STAGES
    assert 0 < second.lists < first.lists
    assert (first.hot_nodes, second.hot_nodes) == (1, 1)
    assert first.pods == second.pods == run.served.pods
    assert run.kubernetes[0].json_bytes > run.kubernetes[1].json_bytes > 0
    assert run.prometheus[1].json_bytes > 0
    assert f"{run.served.pods:,} pods" in text((run,))


def test_a_step_changes_pods_replaces_some_and_lets_a_minute_pass() -> None:
    """As many pods as before, some of them others; equal seeds change equal pods."""
    found = []
    for _ in range(2):
        world = build_world(Scenario(nodes=6, pods=120, hot_nodes=0, scheduled=False))
        before = {pod["metadata"]["name"] for pod in world.objects("pods")}
        now = world.now
        assert Churn(world, seed=1).step(40) == 40
        after = {pod["metadata"]["name"] for pod in world.objects("pods")}
        assert world.now == now + 60
        assert len(before) == len(after)
        assert before != after
        found.append(sorted(after))
    assert found[0] == found[1]


def test_growth_is_the_slope_between_the_sizes() -> None:
    """What is proportional to the pods grows as their first power, what is constant as none; one size says nothing."""
    runs = [run(pods) for pods in (1_000, 3_000, 10_000)]
    assert exponent(runs, [1.0, 3.0, 10.0]) == pytest.approx(1.0)
    assert exponent(runs, [5.0, 5.0, 5.0]) == pytest.approx(0.0)
    assert exponent(runs[:1], [1.0]) != exponent(runs[:1], [1.0])
    table = {row[0]: row[1:] for row in rows(runs)}
    assert table["steady cycle: CPU"] == ("1.00 s", "3.00 s", "10.00 s", "1.00")


def test_the_page_holds_both_tables(tmp_path: Path) -> None:
    """One of single cycles, one of cycles that go on."""
    from benchmarks.cycle import measure

    single = measure(Scene(nodes=6, pods=90, hot_nodes=1))
    page = markdown(Report(machine=machine(), runs=(single,), steady=(run(1_000), run(2_000))))
    assert "| whole cycle: CPU / wall |" in page
    assert "| steady cycle: CPU | 1.00 s | 2.00 s | 1.00 |" in page
    assert "{" not in page


def machine() -> Machine:
    return Machine(processor="x", cores=1, system="x", python="3", numpy="2", msgspec="0", load_average=0.0)


def run(pods: int) -> SteadyRun:
    """Two cycles of which everything is proportional to the pods."""
    traffic = Traffic(requests=pods, json_bytes=pods, wire_bytes=pods)
    cycle = Cycle(
        stages=(),
        cpu_seconds=pods / 1000,
        between_cpu_seconds=pods / 1000,
        wall_seconds=1.0,
        lists=1,
        resident_bytes=pods,
        peak_bytes=pods,
        pods=pods,
        hot_nodes=1,
        moves=1,
    )
    served = Served(kubeconfig="", prometheus_url="", now=0.0, nodes=pods // 30, pods=pods, build_seconds=0.0)
    scene = Scene(nodes=pods // 30, pods=pods, hot_nodes=1)
    return SteadyRun(scene=scene, served=served, changes=1, cycles=(cycle, cycle), kubernetes=(traffic,) * 2, prometheus=(traffic,) * 2)
