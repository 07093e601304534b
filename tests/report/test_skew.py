"""Skew: sums by workload and namespace, with the unmeasured counted and never assumed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.report.skew import PodsSkew, SkewReport, skew_report
from rebalancer.state.tables import Signal
from tests.report import cases
from tests.support.builder import CPU, MEMORY, cluster, node, pod


@pytest.fixture
def report() -> SkewReport:
    state = cases.state()
    return skew_report(state=state, findings=cases.findings(state))


def _named(groups: tuple[PodsSkew, ...], name: str) -> PodsSkew:
    return next(group for group in groups if group.name == name)


def test_an_unmeasured_pod_counts_on_neither_side(report: SkewReport) -> None:
    """Two of three web pods are measured: their usage is compared with their request, the young one's estimate is left out."""
    web = _named(report.workloads, "web")
    cpu = web.signals["cpu"]
    assert (web.pods, cpu.measured, cpu.unmeasured) == (3, 2, 1)
    assert (cpu.request, cpu.measured_request, cpu.usage, cpu.skew, cpu.ratio) == (3.0, 2.0, 7.0, 5.0, 3.5)


def test_a_workload_without_a_measurement_is_unknown_and_not_idle(report: SkewReport) -> None:
    """Usage, skew and ratio are null; the request is known."""
    cpu = _named(report.workloads, "silent").signals["cpu"]
    assert (cpu.request, cpu.usage, cpu.skew, cpu.ratio, cpu.unmeasured) == (2.0, None, None, None, 1)


def test_bare_and_pending_pods(report: SkewReport) -> None:
    """A bare pod is in its namespace only; a pending pod uses nothing and is in neither."""
    assert report.bare_pods == 1
    assert _named(report.namespaces, "quiet").pods == 2
    assert sum(group.pods for group in report.workloads) == 7
    assert sum(group.pods for group in report.namespaces) == 8


def test_the_worst_comes_first_and_the_unknown_last(report: SkewReport) -> None:
    """By the share of the cluster that requests and usage differ by."""
    assert [group.name for group in report.workloads][:2] == ["web", "cart"]
    assert report.workloads[-1].name == "silent"
    assert report.workloads[-1].worst is None
    assert report.nodes[0].name == cases.HOT


def test_a_node_has_its_skew_by_signal(report: SkewReport) -> None:
    """Load - packing; an unknown load has no skew."""
    nodes = {entry.name: entry for entry in report.nodes}
    hot = nodes[cases.HOT].signals["cpu"]
    assert hot.skew == pytest.approx(0.91 - 7 / 16)
    assert (nodes[cases.LOST].signals["cpu"].load, nodes[cases.LOST].signals["cpu"].skew) == (None, None)
    assert nodes[cases.HOT].quadrant == "low-packing/high-load"


def test_a_signal_that_nobody_requests_has_usage_without_skew() -> None:
    """Network has no request to differ from."""
    network = Signal("network", "bytes/s", None)
    state = cluster(
        nodes=[node("one", load={"network": 0.5})],
        pods=[pod("a", on="one", uses={"network": 5.0})],
        signals=(CPU, MEMORY, network),
    )
    signal = skew_report(state=state, findings=cases.findings(state)).workloads[0].signals["network"]
    assert (signal.request, signal.usage, signal.skew) == (None, 5.0, None)


def test_an_empty_cluster_has_an_empty_report() -> None:
    """Nothing to say is no failure."""
    state = cluster(nodes=[node("one")])
    report = skew_report(state=state, findings=cases.findings(state))
    assert (report.workloads, report.namespaces, len(report.nodes)) == ((), (), 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, 0.25, 1.0, 4.0])), max_size=12))
def test_sums_are_what_adding_by_hand_gives(pods: list[tuple[int, float | None]]) -> None:
    """For any mix of measured and unmeasured pods of three workloads."""
    state = cluster(
        nodes=[node("one")],
        pods=[
            pod(f"p{number}", on="one", workload=f"w{group}", cpu=1, uses={} if usage is None else {"cpu": usage})
            for number, (group, usage) in enumerate(pods)
        ],
    )
    report = skew_report(state=state, findings=cases.findings(state))
    for entry in report.workloads:
        known = [usage for group, usage in pods if f"w{group}" == entry.name and usage is not None]
        cpu = entry.signals["cpu"]
        assert cpu.measured == len(known)
        assert cpu.usage == (None if not known else pytest.approx(np.sum(known)))
        assert cpu.measured_request == (None if not known else len(known))
