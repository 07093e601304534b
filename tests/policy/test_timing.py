"""The first possible action of a policy, and what its times rule out."""

from __future__ import annotations

import pytest

from rebalancer.policy.model import built_in_policy
from rebalancer.policy.timing import judge_timing
from tests.policy.writing import policy, policy_text, refusal


def warnings(spec: str) -> str:
    return "\n".join(str(fault) for fault in judge_timing(policy(spec).spec).warnings)


def test_the_built_in_policy_has_no_fault() -> None:
    """The defaults can act, and nothing about them surprises."""
    timing = judge_timing(built_in_policy().spec)
    assert (timing.errors, timing.warnings) == ((), ())


def test_t1_the_first_possible_action_is_computed() -> None:
    """Eight windows a minute apart, a mean over five minutes, a cycle every two: between 7 and 14 minutes."""
    timing = judge_timing(built_in_policy().spec)
    assert (timing.earliest_action_s, timing.latest_action_s) == (420, 840)


@pytest.mark.parametrize("interval", ["10s", "61s", "5m", "6h"])
def test_t1_any_interval_can_act_since_the_windows_are_read_from_prometheus(interval: str) -> None:
    """No interval outlives a memory of the detector, for it has none."""
    assert judge_timing(policy(f"interval: {interval}").spec).errors == ()


def test_t1_a_confirmation_longer_than_any_retention_is_refused() -> None:
    """Windows that Prometheus has forgotten can never confirm."""
    message = str(refusal(policy_text("confirm: {windows: 3, atLeast: 3, step: 10d}")))
    assert "spec.confirm.step: no node can be confirmed hot sooner than after 20d5m" in message


def test_t1_a_freshness_that_no_sample_can_have_is_refused() -> None:
    """Every node would be unknown for ever."""
    assert "spec.metrics.maxAge: every sample is older than 2s" in str(refusal(policy_text("metrics: {maxAge: 2s}")))


def test_excluding_every_namespace_is_refused() -> None:
    """Nothing could ever be moved."""
    assert "spec.victims.namespaces.exclude: * excludes every namespace" in str(
        refusal(policy_text('victims: {namespaces: {exclude: ["*"]}}'))
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("budgets: {total: 0}", "spec.budgets.total: the budget is 0, so nothing will ever be evicted"),
        ("budgets: {total: 0%}", "spec.budgets.total: the budget is 0%, so nothing will ever be evicted"),
        ("budgets: {perWorkload: 0}", "spec.budgets.perWorkload: the budget is 0"),
        ("budgets: {window: 1m}", "spec.budgets.window: 1m is over before the next cycle"),
        ("metrics: {maxAge: 20s}", "spec.metrics.maxAge: 20s is shorter than a usual scrape interval of 1m"),
        ("metrics: {window: 30s}", "spec.metrics.window: a rate needs two samples"),
        ("metrics: {minCoverage: 100}", "spec.metrics.minCoverage: a single node"),
        ("metrics: {statistic: max}\nconfirm: {atLeast: 5}", "spec.confirm.atLeast: one spike shows in 5 windows"),
        ("confirm: {step: 6m}", "spec.confirm.step: windows of 5m every 6m leave gaps"),
        ("confirm: {windows: 100, atLeast: 90}", "spec.confirm.step: a hot node is left alone for 1h29m"),
        ("cooldown: {workload: 1m}", "spec.cooldown.workload: 1m is over before the next cycle in 2m"),
        ("cooldown: {node: 1m}", "spec.cooldown.node: 1m is over before the next cycle in 2m, so it has no effect"),
        ("breaker: {pendingAfter: 1h}", "spec.breaker.pendingAfter: moves are forgotten after 30m"),
        ("quarantine: {hold: 1m}", "spec.quarantine.hold: 1m is shorter than cooldown.workload"),
        ("interval: 5m\nsteering: {annotateNodes: crane}", "spec.interval: crane annotations of the last five minutes are good for 8m"),
        ("steering: {annotateNodes: own, loadExpiry: 3m}", "spec.steering.loadExpiry: 3m is less than two cycles of 2m"),
        (
            "pools:\n- name: a\n  signals: {cpu: {low: 10, target: 50, high: 100}}",
            "spec.pools.0.signals.cpu.high: no node of pool a is hot by cpu before 100 percent",
        ),
        (
            "victims: {classes: {serving: refuse, batch: refuse, experiment: refuse, training: refuse, unknown: refuse}}",
            "spec.victims.classes: every class is refused",
        ),
        (
            "mode: evict\nvictims: {classes: {serving: annotate, batch: annotate, experiment: annotate, unknown: annotate}}",
            "spec.victims.classes: no class is allowed, so nothing will ever be evicted",
        ),
    ],
)
def test_t1_what_will_surprise_is_warned_of(spec: str, sentence: str) -> None:
    """A number that is fine by itself and useless beside the others is told when the file is read."""
    assert sentence in warnings(spec)
