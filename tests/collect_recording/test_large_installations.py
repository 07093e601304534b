"""What Thanos, Mimir and VictoriaMetrics do otherwise than Prometheus: parameters, tenants, partial answers without a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebalancer.collect.prometheus_wire import PARTIAL
from rebalancer.deadline import Deadline
from rebalancer.errors import SettingsError
from rebalancer.settings import load_settings
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import AT
from tests.support.scripted_prometheus import Reply, ScriptedPrometheus, matrix, vector


def test_parameters_are_sent_with_each_query(server: ScriptedPrometheus, connect: Connect) -> None:
    """With instant ones and with ranges, beside the query's own."""
    server.on("up", vector(({}, 1.0)))
    server.on("load", matrix(({}, [1.0, 2.0])))
    prometheus = connect(server, parameters={"partial_response": "false", "dedup": "true"}, headers={"X-Scope-OrgID": "a"})
    prometheus.instant("up", at=AT, deadline=Deadline.after(20))
    prometheus.range("load", start=AT - 60, end=AT, step_s=60, deadline=Deadline.after(20))
    for asked in server.asked:
        assert (asked.form["partial_response"], asked.form["dedup"]) == ("false", "true")
        assert asked.headers["X-Scope-OrgID"] == "a"
        assert "timeout" in asked.form


def test_kp6_the_partial_answer_of_a_victoriametrics_cluster_is_a_warning(server: ScriptedPrometheus, connect: Connect) -> None:
    """It carries a flag where others carry a sentence."""
    body = {"status": "success", "isPartial": True, "data": {"resultType": "vector", "result": []}}
    server.on("up", Reply(body=json.dumps(body).encode()))
    assert connect(server).instant("up", at=AT, deadline=Deadline.after(20)).warnings == (PARTIAL,)
    server.on("up", Reply(body=json.dumps({**body, "isPartial": False}).encode()))
    assert connect(server).instant("up", at=AT, deadline=Deadline.after(20)).warnings == ()


def settings(tmp_path: Path, text: str):
    path = tmp_path / "settings.yaml"
    path.write_text(f"prometheus:\n  url: http://p:9090\n{text}", encoding="utf-8")
    return load_settings(settings_file=path, flags={}, environ={}).prometheus


def test_the_settings_name_parameters_and_rules(tmp_path: Path) -> None:
    """Off, and none, unless somebody says so."""
    given = settings(tmp_path, '  parameters: {partial_response: "false"}\n  recording_rules: true\n')
    assert (given.parameters, given.recording_rules) == ({"partial_response": "false"}, True)
    assert (settings(tmp_path, "").parameters, settings(tmp_path, "").recording_rules) == ({}, False)


@pytest.mark.parametrize("name", ["query", "time", "start", "end", "step", "timeout"])
def test_a_parameter_that_each_query_says_for_itself_is_refused(tmp_path: Path, name: str) -> None:
    """It would be overruled, or overrule the question."""
    with pytest.raises(SettingsError, match=f"{name}"):
        settings(tmp_path, f'  parameters: {{{name}: "1"}}\n')
