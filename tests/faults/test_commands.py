"""Faults that an operator meets at the command line: a failure that ends with 0, a missing right that shows too late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded import Stage, stage


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("cluster")) as one:
        yield one


@pytest.fixture
def running(shared: Stage) -> Iterator[Stage]:
    shared.forget()
    yield shared
    written = shared.written
    shared.forget()
    assert written == []


@pytest.mark.parametrize("code", [400, 401, 422, 503])
@pytest.mark.parametrize("command", [("plan",), ("run", "--once", "--mode", "evict")], ids=["plan", "run"])
def test_e6_every_query_fails_and_the_status_says_so(code: int, command: tuple[str, ...], running: Stage) -> None:
    """Status 5, one sentence with what to do, no plan on stdout, nothing written."""
    running.cluster.prometheus.faults.status(code)
    ran = running.run(*command).ended(5)
    assert ran.out == ""
    assert str(code) in ran.error
    assert "query 'cpu of nodes (node_exporter)'" in ran.error
    assert ran.error.count(". ") >= 1, "the remedy is missing"


def test_e6_empty_answers_fail_alike(running: Stage) -> None:
    """A Prometheus that knows nothing is no balanced cluster."""
    silent = running.cluster.sample_faults
    silent.missing_nodes.update(node["metadata"]["name"] for node in running.cluster.world.objects("nodes"))
    try:
        ran = running.run("plan").ended(5)
    finally:
        silent.missing_nodes.clear()
    assert ran.out == ""
    assert "found no series" in ran.error


@pytest.mark.parametrize(
    ("verb", "resource", "words", "rule"),
    [
        ("list", "nodes", "may not list nodes", '{apiGroups: [""], resources: ["nodes"], verbs: ["list"]}'),
        (
            "list",
            "poddisruptionbudgets",
            "may not list poddisruptionbudgets.policy",
            '{apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"]}',
        ),
        (
            "create",
            "pods/eviction",
            "mode evict may not create pods/eviction",
            '{apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}',
        ),
        ("patch", "nodes", "mode evict may not patch nodes", '{apiGroups: [""], resources: ["nodes"], verbs: ["patch"]}'),
    ],
)
def test_c7_check_lists_each_missing_right_with_the_rule_to_add(verb: str, resource: str, words: str, rule: str, running: Stage) -> None:
    """Before the first cycle, in the mode that is in force; nothing is tried that would fail."""
    running.cluster.api.rights.deny(verb, resource)
    ran = running.run("check", "--mode", "evict", "-o", "json").ended(4)
    failed = [check for check in ran.document["checks"] if check["name"] == "rights" and check["status"] == "fail"]
    assert [(check["sentence"], check["remedy"]) for check in failed] == [(words, f"add the rule {rule}")]


def test_c7_several_missing_rights_are_all_listed(running: Stage) -> None:
    """Nobody wants to find them one by one."""
    for resource in ("nodes", "jobs", "persistentvolumes"):
        running.cluster.api.rights.deny("list", resource)
    ran = running.run("check", "-o", "json").ended(4)
    failed = [check["sentence"] for check in ran.document["checks"] if check["name"] == "rights" and check["status"] == "fail"]
    assert len(failed) == 3
    assert all(any(resource in found for found in failed) for resource in ("nodes", "jobs", "persistentvolumes"))


def test_c7_dry_run_needs_no_right_to_write(running: Stage) -> None:
    """The role of a reader is enough for the default mode; what evict mode would lack is told and is no failure."""
    for verb in ("create", "patch", "update"):
        running.cluster.api.rights.deny(verb, "[!s]*")  # reviews of one's own rights are open to everybody
    ran = running.run("check", "-o", "json").ended(0)
    told = [check["sentence"] for check in ran.document["checks"] if check["name"] == "rights"]
    assert any(found.startswith("mode evict is not in force, and would lack: ") and "pods/eviction" in found for found in told)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--context", "nowhere"), "nowhere"), (("--kubeconfig", "/nonexistent/kubeconfig"), "/nonexistent/kubeconfig")],
    ids=["context", "file"],
)
def test_kl9_a_wrong_configuration_ends_the_command_with_3(arguments: tuple[str, ...], words: str, running: Stage) -> None:
    """The client raises, and only the command line ends the process; with one sentence."""
    ran = running.run("plan", *arguments).ended(3)
    assert ran.out == ""
    assert words in ran.error


def test_c1_a_command_without_an_address_of_prometheus_asks_for_it(running: Stage, tmp_path: Path) -> None:
    """Used but not configured: status 3, and the sentence names the setting, the flag or the variable."""
    ran = running.run("plan", env={"REBALANCER_PROMETHEUS__URL": None}).ended(3)
    assert "REBALANCER_PROMETHEUS__URL" in ran.error
    assert "--prometheus-url" in ran.error
