"""The tenants as a document: shares of each, resource by resource, null where nothing is known."""

from __future__ import annotations

import math

import msgspec

from rebalancer.detect.tenants.accounts import Accounts, accounts_of, in_force
from rebalancer.plan.document import known
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.plan.model import API_VERSION
from rebalancer.policy.tenants import TenantQuotas
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_time


class TenantResource(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """In base units: cores, bytes, devices."""

    requested: float | None
    pending: float | None
    used: float | None
    measured: float | None
    """Share of what is requested whose use is known."""
    guaranteed: float | None
    limit: float | None
    """Null: none."""
    entitled: float | None
    borrowed: float | None
    wasted: float | None


class TenantRow(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    name: str
    parent: str | None
    level: int
    weight: float
    priority: int
    dominant_share: float | None
    pods: int
    pending_pods: int
    oldest_pending_seconds: float | None
    idle_gpus: float | None
    """GPUs that its pods hold and do not use; null where no GPU is measured."""
    resources: dict[str, TenantResource]


class TenantsReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Each tenant stands above those below it, in the order of the file."""

    api_version: str = API_VERSION
    kind: str = "TenantsReport"
    cluster: str
    created_at: str
    file: str
    capacity: dict[str, float | None]
    tenants: tuple[TenantRow, ...]
    unclaimed_pods: int
    """Pods on nodes that belong to nobody."""
    notes: tuple[str, ...] = ()


def accounts_at(state: ClusterState, quotas: TenantQuotas) -> Accounts:
    """The accounts of the tenants of a file, by the quotas in force at the moment of the state. Shares are of what the cluster has."""
    return accounts_of(state, in_force(state, quotas.spec))


def tenants_report(*, state: ClusterState, quotas: TenantQuotas, gpus: GpuReport | None = None) -> TenantsReport:
    """``state``: with the tenants of the same file."""
    accounts = accounts_at(state, quotas)
    tree = accounts.tree
    levels: list[int] = []
    for row in range(len(tree.names)):
        levels.append(0 if tree.parent[row] < 0 else levels[int(tree.parent[row])] + 1)
    idle = idle_gpus(accounts, gpus)
    rows = tuple(
        TenantRow(
            name=name,
            parent=None if tree.parent[row] < 0 else tree.names[int(tree.parent[row])],
            level=levels[row],
            weight=float(tree.weight[row]),
            priority=int(tree.priority[row]),
            dominant_share=known(accounts.dominant[row]),
            pods=int(accounts.pods[row]),
            pending_pods=int(accounts.pending_pods[row]),
            oldest_pending_seconds=known(accounts.oldest_pending_s[row]),
            idle_gpus=idle[row],
            resources={resource: _resource(accounts, row, column) for column, resource in enumerate(accounts.resources)},
        )
        for row, name in enumerate(tree.names)
    )
    return TenantsReport(
        cluster=state.cluster,
        created_at=format_time(state.at),
        file=quotas.metadata.name,
        capacity={name: known(accounts.capacity[column]) for column, name in enumerate(accounts.resources)},
        tenants=rows,
        unclaimed_pods=int(((state.pods.tenant < 0) & (state.pods.node >= 0)).sum()),
        notes=tuple(note for note in state.coverage.notes if "claimed by more than one tenant" in note),
    )


def idle_gpus(accounts: Accounts, gpus: GpuReport | None) -> list[float | None]:
    """GPUs that the pods of each tenant, and of those below it, hold and do not use; None where that is not known."""
    if gpus is None or not gpus.measured:
        return [None] * len(accounts.tree.names)
    held = dict.fromkeys(accounts.tree.names, 0.0)
    for one in gpus.idle:
        if one.pod.tenant in held:
            held[one.pod.tenant] += math.nan if one.gpus is None else one.gpus
    found = list(held.values())
    for row in range(len(found) - 1, -1, -1):
        if accounts.tree.parent[row] >= 0:
            found[int(accounts.tree.parent[row])] += found[row]
    return [known(round(value, 6)) for value in found]


def _resource(accounts: Accounts, row: int, column: int) -> TenantResource:
    limit = float(accounts.tree.limit[row, column])
    return TenantResource(
        requested=known(accounts.requested[row, column]),
        pending=known(accounts.pending[row, column]),
        used=known(accounts.used[row, column]),
        measured=known(accounts.measured[row, column]),
        guaranteed=known(accounts.tree.guaranteed[row, column]),
        limit=None if math.isinf(limit) else known(limit),
        entitled=known(accounts.entitled[row, column]),
        borrowed=known(accounts.borrowed[row, column]),
        wasted=known(accounts.wasted[row, column]),
    )
