"""What tenants hold, use, borrow, waste and wait for; and how it is shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rebalancer.detect.classify import detect
from rebalancer.detect.tenants.membership import with_tenants
from rebalancer.plan.gpu_report import GpuPod, GpuReport, IdleReport
from rebalancer.policy.model import built_in_policy
from rebalancer.policy.tenants import Members, Tenant, TenantMetadata, TenantQuotas, TenantSpec
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.report.tenants import TenantsReport, accounts_at, idle_gpus, tenants_report
from rebalancer.report.writers.tenants_table import explained
from rebalancer.runtime.metric_snapshot import families_of
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, whole

GIB = 2.0**30


def leaf(name: str, **more: object) -> Tenant:
    return Tenant(name=name, members=(Members(namespaces=(name,)),), **more)  # type: ignore[arg-type]


QUOTAS = TenantQuotas(
    metadata=TenantMetadata(name="lab"),
    spec=TenantSpec(
        tenants=(
            Tenant(
                name="research",
                guaranteed={"cpu": 10, "gpu": "50%"},
                tenants=(leaf("vision", guaranteed={"cpu": 6, "gpu": 1}, weight=2), leaf("speech", guaranteed={"cpu": 4})),
            ),
            leaf("sales", guaranteed={"cpu": "25%"}),
        )
    ),
)


def lab() -> ClusterState:
    """Sixteen cores and two GPUs. Vision borrows, speech waits, sales wastes."""
    nodes = [node("n1", cpu=8, gpus=[gpu("40Gi", model="A100"), gpu("40Gi", model="A100")]), node("n2", cpu=8)]
    pods = [
        pod("v1", on="n1", namespace="vision", cpu=6, uses={"cpu": 5.0}, gpu=whole(2), holds={0: 1.0, 1: 1.0}),
        pod("v2", on="n2", namespace="vision", cpu=2),
        pod("s1", namespace="speech", cpu=3, phase=Phase.PENDING, age_s=600.0),
        pod("x1", on="n2", namespace="sales", cpu=4, uses={"cpu": 1.0}),
        pod("z1", on="n2", namespace="nobody", cpu=1),
    ]
    state = cluster(nodes=nodes, pods=pods)
    state = measured(state, {("n1", 0): used(busy=0.5, busiest=0.6), ("n1", 1): used(busy=0.0, busiest=0.0)}, {"v1": taken(busy=0.25)})
    return with_tenants(state, QUOTAS.spec)


def shown() -> TenantsReport:
    return tenants_report(state=lab(), quotas=QUOTAS)


def of(tenant: str, resource: str, field: str) -> float | None:
    report = shown()
    value: float | None = getattr(next(one for one in report.tenants if one.name == tenant).resources[resource], field)
    return value


def test_what_is_held_and_waited_for_goes_up_the_tree() -> None:
    """A department holds what its teams hold."""
    assert [of(name, "cpu", "requested") for name in ("vision", "speech", "research", "sales")] == [8, 0, 8, 4]
    assert [of(name, "cpu", "pending") for name in ("speech", "research")] == [3, 3]
    report = shown()
    waits = {one.name: (one.pods, one.pending_pods, one.oldest_pending_seconds) for one in report.tenants}
    assert waits["research"] == (2, 1, 600.0)
    assert report.unclaimed_pods == 1


def test_borrowed_is_what_is_held_beyond_the_guarantee() -> None:
    """Two cores of vision; a share of the cluster is a guarantee too."""
    assert [of(name, "cpu", "borrowed") for name in ("vision", "sales")] == [2, 0]
    assert of("sales", "cpu", "guaranteed") == 4


def test_waste_compares_measured_pods_alone() -> None:
    """An unmeasured pod wastes nothing that anybody knows of."""
    assert of("vision", "cpu", "used") == 5.0
    assert of("vision", "cpu", "wasted") == 1.0
    assert of("vision", "cpu", "measured") == pytest.approx(0.75)
    assert of("sales", "cpu", "wasted") == 3.0
    assert of("speech", "cpu", "used") is None


def test_gpus_are_counted_in_devices_and_by_model() -> None:
    """Held, and kept busy by measurement of the pod itself."""
    assert of("vision", "gpu", "requested") == of("vision", "gpu/A100", "requested") == 2
    assert of("vision", "gpu", "used") == 0.5
    assert of("research", "gpu", "guaranteed") == 1


def test_entitlement_is_bounded_by_what_is_asked_for() -> None:
    """Speech gets the three cores that it waits for; vision keeps what it holds, as nobody is short."""
    assert of("speech", "cpu", "entitled") == 3
    assert of("vision", "cpu", "entitled") == 8


def test_an_unknown_request_is_no_request_of_nothing() -> None:
    """The sums that it belongs to are unknown."""
    state = lab()
    request = state.pods.request.copy()
    request[state.pods.names.index("v2"), state.resource_index["cpu"]] = math.nan
    broken = replace(state, pods=replace(state.pods, request=request))
    accounts = accounts_at(broken, QUOTAS)
    rows = [accounts.tree.names.index(name) for name in ("vision", "research", "sales")]
    assert np.isnan(accounts.requested[rows, accounts.resources.index("cpu")]).tolist() == [True, True, False]


def _idle(tenant: str, gpus: float | None) -> IdleReport:
    holder = GpuPod(namespace=tenant, name="p", uid="p", workload="", tenant=tenant, pod_class="batch", node="n1", devices=())
    return IdleReport(pod=holder, gpus=gpus, busiest=0.0, idle_seconds=1800.0, memory_bytes=None, reason="idle")


def test_a_tenant_of_which_something_is_not_known_has_no_dominant_share() -> None:
    """It may hold the most of all; and what a node does not tell makes the capacity, and the shares of it, unknown."""
    state = lab()
    request, allocatable = state.pods.request.copy(), state.nodes.allocatable.copy()
    request[state.pods.names.index("v2"), state.resource_index["cpu"]] = math.nan
    of_all = accounts_at(replace(state, pods=replace(state.pods, request=request)), QUOTAS)
    rows = [of_all.tree.names.index(name) for name in ("vision", "sales")]
    assert np.isnan(of_all.dominant[rows]).tolist() == [True, False]
    allocatable[0, state.resource_index["cpu"]] = math.nan
    blind = replace(state, nodes=replace(state.nodes, allocatable=allocatable))
    assert np.isnan(accounts_at(blind, QUOTAS).dominant).all()
    report = tenants_report(state=blind, quotas=QUOTAS)
    assert report.capacity["cpu"] is None
    assert "cpu (? in the cluster)" in render(report, Format.TABLE, Page(width=140))


def test_idle_gpus_are_not_known_where_one_holder_s_number_is_not() -> None:
    """Nor of those above its tenant; others are not touched."""
    of_all = accounts_at(lab(), QUOTAS)
    idle = tuple(_idle(tenant, gpus) for tenant, gpus in (("vision", 1.0), ("vision", None), ("sales", 1.0)))
    found = dict(zip(of_all.tree.names, idle_gpus(of_all, GpuReport(devices=2, measured=2, idle=idle)), strict=True))
    assert (found["vision"], found["research"], found["sales"]) == (None, None, 1.0)


def test_the_table_is_for_people() -> None:
    """Bars, amounts in units, who waits and for how long."""
    text = render(shown(), Format.TABLE, Page(width=140))
    assert "cpu (16.00 in the cluster)" in text
    assert "  vision" in text
    assert "10m" in text
    assert "1 pod of nobody" in text
    assert "█" in text
    assert "█" not in render(shown(), Format.TABLE, Page(width=140, ascii=True))


def test_every_format_is_written() -> None:
    """JSON, YAML, CSV and a page."""
    for fmt in (Format.JSON, Format.YAML, Format.CSV, Format.HTML):
        assert "vision" in render(shown(), fmt, Page())


def test_a_tenant_is_explained_in_sentences() -> None:
    """With its numbers."""
    lines = explained(shown(), "vision")
    assert lines[0] == "Tenant vision: 2 pods on nodes, 0 pending."
    assert any(line.startswith("cpu: holds 8.00 of 6.00 guaranteed and 8.00 that it is entitled to, borrows 2.00") for line in lines)


def test_without_tenants_the_table_says_so() -> None:
    """Nobody is evicted for a quota."""
    empty = TenantQuotas()
    assert "no tenants" in render(tenants_report(state=lab(), quotas=empty), Format.TABLE, Page())


def test_gauges_say_the_same_as_the_table() -> None:
    """By tenant and resource; what is not known has no sample."""
    state = lab()
    families = families_of(state, detect(state, built_in_policy().spec), None, accounts_at(state, QUOTAS))
    samples = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert samples["rebalancer_tenant_requested", "research", "cpu"] == 8
    assert samples["rebalancer_tenant_guaranteed", "vision", "cpu"] == 6
    assert samples["rebalancer_tenant_entitled", "speech", "cpu"] == 3
    assert samples["rebalancer_tenant_borrowed", "vision", "cpu"] == 2
    assert samples["rebalancer_tenant_wasted", "sales", "cpu"] == 3
    assert samples["rebalancer_tenant_pending_pods", "speech"] == 1
    assert samples["rebalancer_tenant_oldest_pending_seconds", "research"] == 600
    assert ("rebalancer_tenant_used", "speech", "cpu") not in samples
