"""The rule file: in step with the queries, accepted by promtool, and of another name for another window."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.cli.main import run
from rebalancer.collect.recording import rules_text
from rebalancer.collect.signal_plan import describe_queries
from rebalancer.policy.model import Confirm, Metrics, SignalQueries, Spec
from rebalancer.simulate.promql.parser import parse

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "rules"
NAME = re.compile(r"rebalancer:[a-z0-9_:]+")
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus")


def written(spec: Spec) -> dict[str, Any]:
    return yaml.safe_load(rules_text(spec, node_label=None))


def recorded(spec: Spec) -> dict[str, str]:
    """record -> expression."""
    return {rule["record"]: rule["expr"] for group in written(spec)["groups"] for rule in group["rules"]}


def asked(spec: Spec) -> set[str]:
    """Every recorded series that a cycle of this policy looks up."""
    return {name for query in describe_queries(spec, recorded=True) if query.recorded for name in NAME.findall(query.text)}


def test_the_committed_rules_are_those_of_the_built_in_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """`make rules` writes them."""
    assert run(["policy", "rules", str(ROOT / "config" / "policy.yaml")]) == 0
    assert capsys.readouterr().out == (RULES / "rebalancer.rules.yaml").read_text(encoding="utf-8")


@pytest.mark.prometheus
@needs_promtool
@pytest.mark.parametrize("arguments", [("check", "rules", "rebalancer.rules.yaml"), ("test", "rules", "rebalancer.rules.test.yaml")])
def test_promtool_accepts_the_rules_and_their_tests(arguments: tuple[str, ...]) -> None:
    """In which each recorded series has its value."""
    done = subprocess.run(["promtool", *arguments], cwd=RULES, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_recorded_series_has_a_case_in_the_tests_of_promtool() -> None:
    """A new rule brings one along."""
    cases = yaml.safe_load((RULES / "rebalancer.rules.test.yaml").read_text(encoding="utf-8"))["tests"]
    tested = {name for case in cases for one in case["promql_expr_test"] for name in NAME.findall(one["expr"])}
    assert tested == set(recorded(Spec()))


@pytest.mark.parametrize(
    "metrics", [Metrics(), Metrics(window=600), Metrics(statistic="p95"), Metrics(statistic="max", window=90), Metrics(node_label="host")]
)
def test_what_is_looked_up_is_what_is_recorded(metrics: Metrics) -> None:
    """And each rule evaluates the very query that is asked without it."""
    spec = Spec(metrics=metrics)
    rules = yaml.safe_load(rules_text(spec, node_label=None if metrics.node_label == "auto" else metrics.node_label))
    rules = {rule["record"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    assert set(rules) == asked(spec)
    direct = {query.text for query in describe_queries(spec)}
    assert set(rules.values()) <= direct


@pytest.mark.parametrize("metrics", [Metrics(window=120), Metrics(statistic="max"), Metrics(node_label="host")])
def test_a_policy_with_another_window_statistic_or_label_asks_for_other_names(metrics: Metrics) -> None:
    """A value over five minutes is never taken for one over two."""
    usages = {name for name in recorded(Spec()) if "stamp" not in name}
    other = asked(Spec(metrics=metrics))
    if metrics.node_label == "auto":
        assert not usages & other
    assert not {name for name in usages if ":pod_" in name} & other


def test_windows_of_one_length_have_one_name() -> None:
    """Whole minutes in minutes, else seconds or milliseconds."""
    names = {
        window: next(iter(recorded(Spec(metrics=Metrics(window=window), confirm=Confirm(step=30))))) for window in (90, 300, 3600, 30.5)
    }
    assert {window: name.rsplit("mean", 1)[1] for window, name in names.items()} == {90: "90s", 300: "5m", 3600: "60m", 30.5: "30500ms"}


def test_a_signal_that_the_policy_replaces_is_not_recorded() -> None:
    """Its queries are the operator's, and so are rules for them."""
    own = SignalQueries.model_validate({"name": "cpu", "unit": "cores", "nodeQuery": "a", "podQuery": "b", "capacity": {"resource": "cpu"}})
    spec = Spec(signals=(own,))
    assert [group["name"] for group in written(spec)["groups"]] == ["rebalancer-memory"]
    assert not any("cpu" in name for name in asked(spec))


def test_node_and_pods_of_a_signal_are_evaluated_for_one_moment() -> None:
    """One group a signal: what a pod took with it is subtracted from a mean over the same window."""
    for group in written(Spec())["groups"]:
        kinds = {rule["record"].split(":")[1].split("_")[0] for rule in group["rules"]}
        assert kinds == {"node", "pod"}


@pytest.mark.parametrize(
    ("spec", "interval"),
    [
        (Spec(), "30s"),
        (Spec(metrics=Metrics(window=60), confirm=Confirm(step=20)), "10s"),
        (Spec(metrics=Metrics(max_age=40)), "10s"),
        (Spec(metrics=Metrics(window=30), confirm=Confirm(step=10)), "5s"),
    ],
)
def test_rules_are_evaluated_often_against_step_window_and_age(spec: Spec, interval: str) -> None:
    """The wait for the next evaluation must not be what makes a sample old."""
    assert {group["interval"] for group in written(spec)["groups"]} == {interval}


def test_no_rule_reads_the_result_of_another() -> None:
    """A ruler that writes elsewhere does not promise it in time."""
    assert not [expr for expr in recorded(Spec()).values() if "rebalancer:" in expr]


def test_every_look_up_is_promql() -> None:
    """By the embedded parser, with and without a shard."""
    for query in describe_queries(replace_risk(Spec()), recorded=True):
        parse(query.text)


def replace_risk(spec: Spec) -> Spec:
    return spec.model_copy(update={"risk": spec.risk.model_copy(update={"deviations": 1.0})})
