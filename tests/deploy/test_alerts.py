"""The alerts fire when they should, and each has its paragraph in the runbook and metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
import yaml

from rebalancer.runtime.metric_snapshot import GAUGES, PREFIX
from rebalancer.runtime.metrics import Metrics
from tests.deploy.charts import ROOT

ALERTS = ROOT / "deploy" / "alerts"
RULES = yaml.safe_load((ALERTS / "rebalancer.yaml").read_text())["groups"][0]["rules"]
NAMES = re.compile(r"rebalancer_[a-z_]+")
KNOWN = set(NAMES.findall(Metrics().exposition().decode())) | {PREFIX + name for name in GAUGES}
"""Those about nodes, pools and tenants appear with the first cycle."""


@pytest.mark.prometheus
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus")
def test_promtool_accepts_the_rules_and_their_tests() -> None:
    """Every alert has a case in which it fires."""
    done = subprocess.run(
        ["promtool", "test", "rules", "rebalancer.test.yaml"], cwd=ALERTS, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fired = {
        case["alertname"]
        for test in yaml.safe_load((ALERTS / "rebalancer.test.yaml").read_text())["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_a_paragraph_in_the_runbook(rule: dict[str, dict[str, str]]) -> None:
    """And its link points there."""
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), flags=re.MULTILINE)
    assert rule["alert"] in headings
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{str(rule['alert']).lower()}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_asks_for_metrics_that_exist(rule: dict[str, str]) -> None:
    """A renamed metric must not silence an alert."""
    assert set(NAMES.findall(rule["expr"])) <= KNOWN


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    """Every panel, through a data source that can be chosen."""
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "rebalancer.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len(panels) > 10
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert set(NAMES.findall(target["expr"])) <= KNOWN
