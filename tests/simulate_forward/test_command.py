"""`rebalancer simulate` as an operator meets it: formats, exit statuses, snapshots."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

from rebalancer.policy.model import built_in_policy
from rebalancer.report.registry import formats_of
from rebalancer.report.schema import document_schemas
from rebalancer.report.simulation import SimulationReport
from rebalancer.runtime.simulating import snapshot_setting
from rebalancer.simulate.forward.running import lens_of
from rebalancer.simulate.forward.tally import Tally
from rebalancer.simulate.forward.world import ForwardWorld
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_load
from rebalancer.state.snapshot import dump_snapshot
from tests.simulate_forward.kit import scenario
from tests.support.builder import budget, cluster, node, pod, workload
from tests.support.embedded import run_command

SMALL = """apiVersion: rebalancer.dev/v1alpha1
kind: SimulationScenario
metadata: {name: small, description: A few nodes.}
spec:
  fleet: [{count: 4, cores: 16, memory: 64Gi}]
  workloads:
    - pods: 40
      replicas: {from: 2, to: 4}
      requests: [{cpu: 1, memory: 2Gi}]
      use: {cpu: {median: 0.5, sigma: 0.9}}
  averageLoad: 45
"""
POLICY = "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {name: NAME}\nspec: {mode: evict}\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path / "small.yaml", SMALL)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def state() -> ClusterState:
    """A hot node, a cool one, one that nobody measures, and a workload that may lose one pod."""
    pods = [pod(f"web-{number}", on="hot", workload="web", cpu=1, uses={"cpu": 1.0, "memory": 1e9}, budgets=["web"]) for number in range(7)]
    pods += [pod(f"db-{number}", on="cool", workload="db", cpu=1, uses={"cpu": 0.5, "memory": 1e9}) for number in range(3)]
    pods += [pod("dark", on="unseen", workload="dark", cpu=1), pod("odd", on="cool", workload="odd", cpu=1)]
    return cluster(
        nodes=[node("hot"), node("cool"), node("unseen", cpu=1, unknown={"cpu": "no sample", "memory": "no sample"})],
        pods=pods,
        workloads=[workload("web", replicas=7), workload("db"), workload("dark", replicas=1), workload("odd", replicas=1)],
        budgets=[budget("web", allowed=1, healthy=7, desired=6, expected=7)],
    )


def test_strategies_stand_side_by_side_in_a_table(small: Path) -> None:
    """A column each, the scenario and the marks above them."""
    ran = run_command("simulate", small, "--hours", "0.1").ended(0)
    assert "small: 4 nodes, 40 pods" in ran.out
    assert "NONE  REBALANCER" in ran.out
    assert "hot node-minutes" in ran.out
    assert ran.err == ""


def test_json_keeps_to_its_schema(small: Path) -> None:
    """Names of fields are those of the committed schema, and the results come in the order of the flags."""
    ran = run_command("simulate", small, "--hours", "0.1", "--strategy", "rebalancer", "--strategy", "none", "-o", "json").ended(0)
    document = json.loads(ran.out)
    schema = document_schemas()["simulation-report.schema.json"]
    jsonschema.validate(document, schema)
    assert [result["name"] for result in document["results"]] == ["rebalancer", "none"]
    assert document["results"][1]["evictions"] == 0


def test_csv_has_one_row_a_strategy(small: Path) -> None:
    """With every number that is compared."""
    rows = list(csv.DictReader(io.StringIO(run_command("simulate", small, "--hours", "0.1", "-o", "csv").ended(0).out)))
    assert [row["name"] for row in rows] == ["none", "rebalancer"]
    assert rows[0]["budget_violations"] == "0"


def test_html_is_one_page_that_loads_nothing(small: Path) -> None:
    """With the curves as inline SVG, and what a scenario says about itself escaped."""
    sharp = written(small.parent / "sharp.yaml", SMALL.replace("A few nodes.", "'<script>alert(1)</script>'"))
    page = run_command("simulate", sharp, "--hours", "0.1", "-o", "html").ended(0).out
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_every_format_is_offered() -> None:
    """And YAML with them, by the writer of all documents."""
    assert [fmt.value for fmt in formats_of(SimulationReport)] == ["table", "wide", "json", "yaml", "csv", "html"]


def test_policies_are_compared_in_the_same_world(small: Path) -> None:
    """Each under its own name; a strategy that does not ask for a policy runs once."""
    files = [written(small.parent / f"{name}.yaml", POLICY.replace("NAME", name)) for name in ("first", "second")]
    ran = run_command("simulate", small, "--hours", "0.1", "--policy", files[0], "--policy", files[1], "-o", "json").ended(0)
    assert [result["name"] for result in json.loads(ran.out)["results"]] == ["none", "rebalancer (first)", "rebalancer (second)"]


def test_the_seed_can_be_chosen(small: Path) -> None:
    """And is told."""
    seeds = ["1", "2", "1"]
    found = [json.loads(run_command("simulate", small, "--hours", "0.1", "--seed", seed, "-o", "json").ended(0).out) for seed in seeds]
    spreads = [document["results"][0]["meanSpread"] for document in found]
    assert [document["seed"] for document in found] == [1, 2, 1]
    assert spreads[0] == spreads[2] != spreads[1]


# ---- snapshots ------------------------------------------------------------------------------------------------------------


def test_a_snapshot_becomes_a_world(tmp_path: Path) -> None:
    """Its hot node is hot, and its rules move pods off it."""
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(dump_snapshot(state()))
    policy = written(tmp_path / "policy.yaml", POLICY.replace("mode: evict", "mode: evict, metrics: {minCoverage: 50}"))
    document = json.loads(run_command("simulate", path, "--policy", policy, "--hours", "2", "-o", "json").ended(0).out)
    nothing, own = document["results"]
    assert document["scenario"] == "cluster.json.gz"
    assert nothing["hotNodeMinutes"] == 120
    assert own["evictions"] >= 1
    assert own["hotNodeMinutes"] < 60
    assert own["budgetViolations"] == 0


def test_what_a_snapshot_does_not_know_stays_unknown() -> None:
    """The node without a load has none in the world either, and the pod without a usage none; the known ones are as they were."""
    before = state()
    setting = snapshot_setting(before, name="x", seed=1, policies=[built_in_policy()])
    spec = built_in_policy().spec
    tally = Tally(setting.high, setting.ground.nodes.capacity, setting.ground.start, 3600)
    after = ForwardWorld(setting, metrics=spec.metrics, lens=lens_of(spec), warm_up_ticks=80, tally=tally).look().state
    assert np.isnan(after.nodes.usage[2]).all()
    row = after.pods.names.index("odd")
    assert np.isnan(after.pods.measured[row]).all()
    np.testing.assert_allclose(node_load(after)[:2], node_load(before)[:2])
    assert after.pods.uids == before.pods.uids
    assert after.budgets == before.budgets


def test_a_policy_that_judges_what_the_snapshot_lacks_is_refused(tmp_path: Path) -> None:
    """Else it would never decide anything, and nobody would know why."""
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(dump_snapshot(state()))
    signal = "{name: net, unit: b, nodeQuery: x, podQuery: y, capacity: {value: 1}}"
    pools = "[{name: default, signals: {net: {low: 1, target: 2, high: 3}}}]"
    policy = written(tmp_path / "p.yaml", POLICY.replace("mode: evict", f"mode: evict, signals: [{signal}], pools: {pools}"))
    assert "judges signal net, the snapshot holds cpu, memory" in run_command("simulate", path, "--policy", policy).ended(2).err
    small = written(tmp_path / "small.yaml", SMALL)
    assert "judges signal net, a scenario has cpu and memory" in run_command("simulate", small, "--policy", policy).ended(2).err


# ---- bad input ------------------------------------------------------------------------------------------------------------


def test_bad_input_is_one_sentence_and_a_status(tmp_path: Path, small: Path) -> None:
    """Usage is 2, a file's content 3; stdout stays empty."""
    other = json.loads(gzip.decompress(dump_snapshot(state())))
    other["apiVersion"] = "rebalancer.dev/v0"
    old = written(tmp_path / "old.json", json.dumps(other))
    traced = written(
        tmp_path / "traced.yaml", SMALL.replace("      use:", "      traces: [{path: x.csv, kind: planetlab-cpu}]\n      use:")
    )
    huge = written(tmp_path / "huge.yaml", SMALL.replace("count: 4", "count: 100000"))
    cases: list[tuple[list[str | Path], int, str]] = [
        ([tmp_path / "none.yaml"], 2, "none.yaml does not exist"),
        ([tmp_path], 2, "is a directory"),
        ([small, "--strategy", "magic"], 2, "there is no strategy magic"),
        ([small, "--hours", "0"], 2, "hours"),
        ([small, "--seed", "-1"], 2, "seed"),
        ([old], 2, "snapshot of version rebalancer.dev/v0"),
        ([written(tmp_path / "odd.json", "{}")], 2, "odd.json"),
        ([huge], 3, "huge.yaml, line 5, spec.fleet[0].count: must be at most 20000"),
        ([traced], 3, "the scenario replays trace x.csv"),
        ([traced, "--traces", tmp_path], 3, "there is no trace"),
        ([small, "--policy", tmp_path / "p.yaml"], 3, "p.yaml does not exist"),
        ([written(tmp_path / "policy.yaml", POLICY)], 3, "kind: must be SimulationScenario, not 'RebalancePolicy'"),
        ([written(tmp_path / "text.yaml", "hello")], 3, "text.yaml"),
        ([written(tmp_path / "empty.yaml", "")], 3, "the file is empty"),
    ]
    for words, status, sentence in cases:
        ran = run_command("simulate", *words).ended(status)
        assert sentence in ran.err
        assert (ran.out, ran.err.count("\n"), "Traceback" in ran.err) == ("", 1, False)


def test_the_kit_is_a_scenario_that_the_command_takes(tmp_path: Path) -> None:
    """What tests make in code survives being written to a file and read again."""
    made = scenario(hours=0.1)
    text = yaml.safe_dump(
        json.loads(made.model_dump_json(by_alias=True, exclude_unset=True)) | {"apiVersion": made.api_version, "kind": made.kind}
    )
    document = json.loads(run_command("simulate", written(tmp_path / "kit.yaml", text), "-o", "json").ended(0).out)
    assert (document["nodes"], document["pods"]) == (8, 80)
