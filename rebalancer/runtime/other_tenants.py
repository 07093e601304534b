"""The first cycle as it would be under another tenants file: the same calls as in a cycle, on the same state."""

from __future__ import annotations

from dataclasses import replace

from rebalancer.detect.tenants.membership import with_tenants
from rebalancer.policy.tenants import TenantQuotas
from rebalancer.report.tenants import tenants_report
from rebalancer.report.tenants_change import TenantsChangeReport, tenants_change
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Memory
from rebalancer.state.cluster import ClusterState


def under_other_tenants(
    state: ClusterState, memory: Memory, orders: Orders, *, present: TenantQuotas, other: TenantQuotas
) -> TenantsChangeReport:
    """Shares under both files, and the plan under the other one with a policy that reclaims. Raises PolicyError, as `consider`."""
    policy = orders.policy
    reclaims = policy.spec.model_copy(update={"reclaim": policy.spec.reclaim.model_copy(update={"enabled": True})})
    would = replace(orders, policy=policy.model_copy(update={"spec": reclaims}), tenants=other.spec)
    verdict = consider(state, memory, would)
    before = tenants_report(state=with_tenants(state, present.spec), quotas=present)
    return tenants_change(before, tenants_report(state=verdict.state, quotas=other), verdict.decision.plan)
