"""The town's plan from recorded series: the same as from the queries, and `check` says which of the two it was."""

from __future__ import annotations

import pytest

from rebalancer.collect.recording import rules_text
from rebalancer.policy.model import Spec
from tests.integration.end_to_end.conftest import Town
from tests.integration.end_to_end.town import HOT, VICTIM, series
from tests.support.prometheus_server import StartPrometheus, openmetrics

pytestmark = pytest.mark.prometheus
USE = {"REBALANCER_PROMETHEUS__RECORDING_RULES": "true"}


def test_the_plan_is_the_same_and_check_says_what_is_looked_up(shared_town: Town, now: float, start_prometheus: StartPrometheus) -> None:
    """One move of the same pod, by sources that are named as recorded."""
    server = start_prometheus(blocks=openmetrics(series(now)))
    server.backfill(rules_text(Spec(), node_label=None), since=now - 1400, until=now)
    plan = shared_town.command(server.url, "plan", "-o", "json", **USE).ended(0).document
    assert [(move["pod"]["name"], move["source"]) for move in plan["moves"]] == [(VICTIM, HOT)]
    assert plan["moves"][0]["signals"]["cpu"]["sourceBefore"] == pytest.approx(0.88, abs=1e-3)
    said = [check["sentence"] for check in shared_town.command(server.url, "check", "-o", "json", **USE).ended(0).document["checks"]]
    assert any("12 of 12 nodes by node_exporter, recorded" in sentence for sentence in said)
    assert any("pods by cAdvisor, recorded" in sentence for sentence in said)
    server.stop()


def test_check_warns_where_the_rules_are_those_of_another_window(shared_town: Town, now: float, start_prometheus: StartPrometheus) -> None:
    """With the rules to load; the plan is made by the queries themselves."""
    server = start_prometheus(blocks=openmetrics(series(now)))
    other = Spec.model_validate({"metrics": {"window": "10m"}})
    server.backfill(rules_text(other, node_label=None), since=now - 800, until=now)
    checks = shared_town.command(server.url, "check", "-o", "json", **USE).ended(0).document["checks"]
    warned = {check["name"]: check for check in checks if check["status"] == "warn"}
    assert {"cpu of nodes", "cpu of pods", "memory of nodes", "memory of pods"} <= warned.keys()
    assert warned["cpu of nodes"]["sentence"] == "node_exporter, recorded: no series, so the queries themselves are asked"
    assert "rebalancer policy rules" in warned["cpu of nodes"]["remedy"]
    plan = shared_town.command(server.url, "plan", "-o", "json", **USE).ended(0).document
    assert [move["pod"]["name"] for move in plan["moves"]] == [VICTIM]
    server.stop()
