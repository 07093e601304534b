"""`explain`, `skew`, `snapshot`, `version`: looking at a cluster and at a file of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.commands.test_plan import schema
from tests.support.embedded import Json, Stage


@pytest.fixture
def plan(looked_at: Stage) -> Json:
    return looked_at.run("plan", "-o", "json").ended(0).document


@pytest.fixture
def snapshot(looked_at: Stage, tmp_path: Path) -> Path:
    path = tmp_path / "cluster.snapshot"
    looked_at.run("snapshot", path).ended(0)
    return path


def test_a_hot_node_is_explained(looked_at: Stage, plan: Json) -> None:
    """Why it is hot, with numbers, and what becomes of each of its pods."""
    source = plan["moves"][0]["source"]
    ran = looked_at.run("explain", "node", source, "-o", "json").ended(0)
    jsonschema.validate(ran.document, schema("explanation"))
    assert ran.document["conclusion"].startswith("hot: cpu load ")
    on_it = [pod for pod in looked_at.cluster.world.objects("pods") if pod["spec"].get("nodeName") == source]
    assert len(ran.document["verdicts"]) == len(on_it)


def test_a_moving_pod_is_explained(looked_at: Stage, plan: Json) -> None:
    """It says where it goes and why, and every gate has its word."""
    move = plan["moves"][0]
    ran = looked_at.run("explain", "pod", move["pod"]["name"], "-n", move["pod"]["namespace"], "-o", "json").ended(0)
    jsonschema.validate(ran.document, schema("explanation"))
    assert ran.document["conclusion"].startswith(f"moves to {move['destination']}: ")
    assert {verdict["ruling"] for verdict in ran.document["verdicts"]} == {"allowed"}


def test_a_refused_pod_is_explained_with_its_gate(looked_at: Stage, plan: Json) -> None:
    """The sentence is the one of the plan."""
    refused = next(each for each in plan["refused"] if each["gate"] == "several-budgets")
    out = looked_at.run("explain", "pod", f"{refused['pod']['namespace']}/{refused['pod']['name']}").ended(0).out
    assert "refused by several-budgets: 2 PDBs select it" in out


def test_a_workload_is_explained_with_each_of_its_pods(looked_at: Stage, plan: Json) -> None:
    """By name alone where it is unique, by kind and namespace where it is not."""
    ref = plan["moves"][0]["workload"]
    for arguments in ((ref["name"],), (f"{ref['namespace']}/{ref['name']}",), (ref["name"], "-n", ref["namespace"], "--kind", ref["kind"])):
        explained = looked_at.run("explain", "workload", *arguments, "-o", "json").ended(0).document
        assert explained["subject"] == f"{ref['namespace']}/{ref['name']}"
        assert "moves" in {verdict["ruling"] for verdict in explained["verdicts"]}


@pytest.mark.parametrize("kind", ["node", "pod", "workload"])
def test_explanations_read_well_in_a_hundred_columns(looked_at: Stage, plan: Json, kind: str) -> None:
    """The conclusion is the second line; queries are left to who asks for them."""
    move = plan["moves"][0]
    name = {"node": move["source"], "pod": move["pod"]["name"], "workload": move["workload"]["name"]}[kind]
    out = looked_at.run("explain", kind, name).ended(0).out
    assert max(map(len, out.splitlines())) <= 100
    assert "rate(" not in out
    assert "rate(" in looked_at.run("explain", kind, name, "-o", "wide").ended(0).out


def test_skew_shows_packing_beside_load(looked_at: Stage) -> None:
    """For nodes, workloads and namespaces, as JSON by its schema and as a table."""
    ran = looked_at.run("skew", "-o", "json").ended(0)
    jsonschema.validate(ran.document, schema("skew-report"))
    worst = ran.document["nodes"][0]
    assert worst["quadrant"] == "low-packing/high-load"
    assert worst["signals"]["cpu"]["skew"] > 0.3
    assert ran.document["workloads"]
    assert ran.document["namespaces"]


def test_a_snapshot_plans_as_the_cluster_did(cluster: Stage) -> None:
    """All numbers, all refusals: a replay is the same decision."""
    cluster.cluster.advance(300.0)  # ahead of the real time, so that both look at the same moment
    path = cluster.folder / "cluster.snapshot"
    cluster.run("snapshot", path).ended(0)
    live, replayed = (cluster.run("plan", "-o", "json", *more).ended(0).document for more in ((), ("--snapshot", path)))
    assert without(live, "coverage") == without(replayed, "coverage")


def without(document: Json, *keys: str) -> Json:
    return {key: value for key, value in document.items() if key not in keys}


def test_an_anonymous_snapshot_decides_the_same_under_other_names(looked_at: Stage, snapshot: Path, tmp_path: Path) -> None:
    """As many moves with the same gains, the same refusals by gate, and not one name of the cluster."""
    hidden = tmp_path / "hidden.snapshot"
    out = looked_at.run("snapshot", hidden, "--anonymize", "--snapshot", snapshot).ended(0).out
    assert out.endswith(", anonymous\n")
    plain, other = (looked_at.run("plan", "--snapshot", path, "-o", "json").ended(0).document for path in (snapshot, hidden))
    assert numbers(plain) == numbers(other)
    text = json.dumps(other)
    own = {pod["metadata"]["name"] for pod in looked_at.cluster.world.objects("pods")}
    own |= {node["metadata"]["name"] for node in looked_at.cluster.world.objects("nodes")}
    assert not [name for name in own if name in text]


def numbers(plan: Json) -> Any:
    gates = sorted(refused["gate"] for refused in plan["refused"])
    return plan["summary"], sorted(move["gain"] for move in plan["moves"]), gates


@pytest.mark.parametrize("command", [("plan",), ("skew",), ("explain", "node", "node-0001")])
def test_a_snapshot_needs_no_cluster(looked_at: Stage, snapshot: Path, command: tuple[str, ...]) -> None:
    """Neither a kubeconfig nor an address of Prometheus, and nobody is asked."""
    looked_at.forget()
    looked_at.run(*command, "--snapshot", snapshot, env={"KUBECONFIG": None, "REBALANCER_PROMETHEUS__URL": None}).ended(0)
    assert looked_at.cluster.api.requests.all() == []
    assert looked_at.cluster.prometheus.requests.all() == []


def test_version_names_what_it_stands_on(looked_at: Stage) -> None:
    """For reports; nothing is asked."""
    lines = looked_at.run("version").ended(0).out.splitlines()
    assert lines[0].startswith("rebalancer ")
    assert "kubernetes 37." in lines[1]
