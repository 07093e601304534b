"""What a plan says of GPUs, and what becomes of it on a page and in the metrics."""

from __future__ import annotations

from rebalancer.detect.classify import detect
from rebalancer.plan.gpu_report import gpu_report
from rebalancer.plan.planner import decide
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.runtime.metric_snapshot import families_of
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.tables import PodClass
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, memory_of, part, whole


def world() -> ClusterState:
    """An idle notebook on a device of its own, and two pods that share one, of which one takes too much."""
    idle = pod("lab", on="n1", workload="lab", gpu=whole(), holds={0: 1.0}, pod_class=PodClass.EXPERIMENT, uses={"cpu": 0.01})
    sharers = [pod(name, on="n1", workload=name, gpu=memory_of("2Gi"), holds={1: part(memory="2Gi")}) for name in ("big", "small")]
    state = cluster(nodes=[node("n1", gpus=[gpu("40Gi"), gpu("16Gi"), gpu("16Gi")])], pods=[idle, *sharers])
    devices = {("n1", 0): used(busy=0.0, busiest=0.01, memory="20Gi"), ("n1", 1): used(busy=0.9, busiest=0.95, memory="14Gi", total="16Gi")}
    pods = {"lab": taken(busy=0.0, memory="20Gi"), "big": taken(busy=0.6, memory="11Gi"), "small": taken(busy=0.3, memory="2Gi")}
    return measured(state, devices, pods)


def test_idle_holders_and_over_users_are_in_the_report() -> None:
    """With what they hold, and why they are named."""
    report = gpu_report(world(), Gpu())
    assert report is not None
    assert (report.devices, report.measured) == (3, 2)
    assert [(one.pod.name, one.gpus, one.pod.pod_class) for one in report.idle] == [("lab", 1.0, "experiment")]
    assert report.idle[0].reason == "its devices were never busier than 1 % for 30 minutes, and it holds 20.0 GiB of their memory"
    assert [one.pod.name for one in report.over_users] == ["big"]
    assert report.over_users[0].reason == (
        "it asked for 2.0 GiB of the device and uses 11.0 GiB; 14.0 of 16.0 GiB are taken, with 1 other pod on it"
    )


def test_a_cluster_without_gpus_has_no_report() -> None:
    """Its plans say nothing of them."""
    assert gpu_report(cluster(nodes=[node("n1")], pods=[pod("p", on="n1")]), Gpu()) is None


def test_a_plan_shows_them_on_its_page() -> None:
    """Under headings of their own, with what is not measured."""
    state, policy = world(), built_in_policy()
    plan = decide(state=state, findings=detect(state, policy.spec), policy=policy, history=History(), mode=Mode.DRY_RUN).plan
    text = render(plan, Format.TABLE, Page(width=160, color=False))
    assert "GPUs held idle (1 by 1 pod)" in text
    assert "More GPU memory than asked for (1 pod)" in text
    assert "1 of 3 GPUs are not measured" in text


def test_gauges_count_what_is_held_idle_and_what_is_known() -> None:
    """By namespace and class, and only measured shares for an autoscaler."""
    state, policy = world(), built_in_policy()
    families = families_of(state, detect(state, policy.spec), gpu_report(state, policy.spec.gpu))
    samples = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert samples["rebalancer_gpu_devices", "measured"] == 2
    assert samples["rebalancer_gpu_devices", "unmeasured"] == 1
    assert samples["rebalancer_gpu_idle_devices", "default", "experiment"] == 1
    assert samples["rebalancer_gpu_overuse_bytes", "default"] == 9 * 2.0**30
    assert samples["rebalancer_workload_gpu_busy_ratio", "default", "Deployment", "big"] == 0.6
    assert samples["rebalancer_workload_gpu_memory_bytes", "default", "Deployment", "lab"] == 20 * 2.0**30


def test_an_autoscaler_is_told_nothing_of_estimates() -> None:
    """A part of a device's value is nobody's measurement."""
    state = measured(world(), {("n1", 1): used(busy=0.9)}, {"big": taken(busy=0.6, memory="11Gi", estimated=True)})
    families = families_of(state, detect(state, built_in_policy().spec), gpu_report(state, Gpu()))
    names = {sample.labels.get("workload") for family in families for sample in family.samples if "workload_gpu" in sample.name}
    assert "big" not in names


def test_what_is_lost_to_fragmentation_is_in_the_report_on_the_page_and_in_the_metrics() -> None:
    """The notebook, one of three that ask, wants a whole device and cannot use the 12 GiB that are free beside the two sharers."""
    state, policy = world(), built_in_policy()
    plan = decide(state=state, findings=detect(state, policy.spec), policy=policy, history=History(), mode=Mode.DRY_RUN).plan
    assert plan.gpus is not None
    found = plan.gpus.fragmentation
    assert found is not None
    assert [(one.node, one.free, one.lost) for one in found.nodes] == [("n1", 1.75, 0.25)]
    assert "Free GPUs that typical pods cannot use (0.25 of 1.75)" in render(plan, Format.TABLE, Page(width=160, color=False))
    families = families_of(state, detect(state, policy.spec), plan.gpus)
    samples = {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}
    assert (samples["rebalancer_gpu_free_devices"], samples["rebalancer_gpu_fragmentation_devices"]) == (1.75, 0.25)
