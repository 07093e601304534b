"""`plan`: every format, the file, the exit status, and that it writes nothing to the cluster."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.support.embedded import Json, Stage

SCHEMAS = Path(__file__).parents[2] / "config" / "schema"


def schema(name: str) -> Json:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def test_json_is_a_plan_by_its_schema(looked_at: Stage) -> None:
    """Programs get what the schema promises, and stderr stays empty."""
    ran = looked_at.run("plan", "-o", "json").ended(0)
    jsonschema.validate(ran.document, schema("plan"))
    assert ran.err == ""
    assert (ran.document["kind"], ran.document["mode"], ran.document["method"]) == ("Plan", "dry-run", "balance")


def test_the_plan_cures_the_hot_nodes(looked_at: Stage) -> None:
    """Two hot nodes before, none after, by moves that leave a hot node and name where they land."""
    plan = looked_at.run("plan", "-o", "json").ended(0).document
    assert (plan["summary"]["hotNodes"], plan["summary"]["hotNodesAfter"]) == (2, 0)
    hot = {node["name"] for node in plan["nodes"] if node["class"] == "hot"}
    assert plan["moves"]
    for move in plan["moves"]:
        assert move["source"] in hot
        assert move["destination"] not in {*hot, ""}
        assert move["reason"]


def test_every_candidate_on_a_hot_node_moves_or_is_refused_with_a_sentence(looked_at: Stage) -> None:
    """Nobody has to ask why a pod stays."""
    plan = looked_at.run("plan", "-o", "json").ended(0).document
    hot = {node["name"] for node in plan["nodes"] if node["class"] == "hot"}
    spoken_of = {each["pod"]["uid"] for each in (*plan["moves"], *plan["refused"])}
    on_hot = {pod["metadata"]["uid"] for pod in looked_at.cluster.world.objects("pods") if pod["spec"].get("nodeName") in hot}
    assert on_hot <= spoken_of
    assert all(refused["gate"] and refused["reason"] for refused in plan["refused"])


def test_yaml_says_what_json_says(looked_at: Stage) -> None:
    """Two spellings of one document."""
    assert yaml.safe_load(looked_at.run("plan", "-o", "yaml").ended(0).out)["kind"] == "Plan"


def test_csv_has_one_row_a_decision(looked_at: Stage) -> None:
    """Moves and refusals alike, for a spreadsheet."""
    rows = list(csv.DictReader(io.StringIO(looked_at.run("plan", "-o", "csv").ended(0).out)))
    plan = looked_at.run("plan", "-o", "json").document
    assert {row["decision"] for row in rows} == {"move", "refused"}
    assert sum(row["decision"] == "move" for row in rows) == len(plan["moves"])


@pytest.mark.parametrize("arguments", [("plan",), ("skew",), ("check",)])
def test_tables_fit_a_hundred_columns(looked_at: Stage, arguments: tuple[str, ...]) -> None:
    """And carry no colour when piped."""
    out = looked_at.run(*arguments).ended(0).out
    assert max(map(len, out.splitlines())) <= 100
    assert "\x1b" not in out


def test_the_table_names_each_move_with_both_ends_and_its_reason(looked_at: Stage) -> None:
    """What a reviewer needs before saying yes."""
    plan = looked_at.run("plan", "-o", "json").document
    out = looked_at.run("plan").ended(0).out
    assert "nothing in the cluster is changed" in out
    for move in plan["moves"]:
        assert f"{move['pod']['namespace']}/{move['pod']['name']}" in out
        assert f"-> {move['destination']}" in out
    for refused in plan["refused"]:
        assert refused["gate"] in out


def test_wide_shortens_nothing(looked_at: Stage) -> None:
    """Every node is in it, and no name is cut."""
    out = looked_at.run("plan", "-o", "wide").ended(0).out
    assert "…" not in out
    assert all(node["metadata"]["name"] in out for node in looked_at.cluster.world.objects("nodes"))


def test_the_exit_status_tells_of_moves_only_when_asked(looked_at: Stage, tmp_path: Path) -> None:
    """0 by default, 1 with --exit-code, and the file holds the same plan."""
    looked_at.run("plan").ended(0)
    ran = looked_at.run("plan", "--exit-code", "--out", tmp_path / "plan.json", "-o", "json").ended(1)
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == ran.document


def test_a_balanced_cluster_gives_an_empty_plan_and_status_0(looked_at: Stage) -> None:
    """Nothing to do is said in a sentence, and is no error even with --exit-code."""
    calm = looked_at.policy("  pools:\n  - name: default\n    signals:\n      cpu: {low: 20, target: 97, high: 99}\n")
    ran = looked_at.run("plan", "--policy", calm, "--exit-code", "-o", "json").ended(0)
    assert ran.document["moves"] == []
    assert "nothing to do: none of 12 nodes with a known load is hot" in looked_at.run("plan", "--policy", calm).ended(0).out


def test_the_same_moment_gives_the_same_bytes(cluster: Stage) -> None:
    """Planning is a function of what is seen."""
    cluster.cluster.advance(120.0)  # ahead of the real time, so that the clock stands still between the two
    first, second = (cluster.run("plan", "-o", "json").ended(0).out for _ in range(2))
    assert first == second


def test_planning_reads_and_writes_nothing(looked_at: Stage) -> None:
    """In every mode: the mode is what the plan is made for."""
    for mode in ("dry-run", "annotate", "evict"):
        looked_at.run("plan", "--mode", mode).ended(0)
    assert looked_at.written == []
