"""What another tenants file would change: shares before and after, and what would be reclaimed at once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rebalancer.plan.model import API_VERSION, Move, Plan
from rebalancer.report.tenants import TenantResource, TenantsReport

FIELDS = ("guaranteed", "limit", "entitled", "borrowed")


class Change(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """In base units. Null: not known, no limit, or the tenant is in the other file alone."""

    before: float | None
    after: float | None


class TenantChange(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant and resource of which something changes."""

    tenant: str
    resource: str
    requested: Change
    guaranteed: Change
    limit: Change
    entitled: Change
    borrowed: Change


class TenantsChangeReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``moves``: what the first cycle under the new file would give back, if the policy reclaims; ``outcome`` says why not more."""

    api_version: str = API_VERSION
    kind: str = "TenantsChangeReport"
    cluster: str
    created_at: str
    before: str
    """Name of the file in force; empty where it has no tenants."""
    after: str
    come: tuple[str, ...]
    """Tenants of the new file alone."""
    gone: tuple[str, ...]
    """Tenants of the present file alone."""
    unclaimed_pods: Change
    changes: tuple[TenantChange, ...]
    moves: tuple[Move, ...]
    outcome: str


def tenants_change(before: TenantsReport, after: TenantsReport, plan: Plan) -> TenantsChangeReport:
    """``plan``: of the first cycle under the new file, with a policy that reclaims."""
    was, will = [one.name for one in before.tenants], [one.name for one in after.tenants]
    reclaims = plan.method == "reclaim"
    return TenantsChangeReport(
        cluster=after.cluster,
        created_at=after.created_at,
        before=before.file if was else "",
        after=after.file if will else "",
        come=tuple(name for name in will if name not in was),
        gone=tuple(name for name in was if name not in will),
        unclaimed_pods=Change(before=before.unclaimed_pods, after=after.unclaimed_pods),
        changes=tuple(_changes(before, after)),
        moves=plan.moves if reclaims else (),
        outcome=plan.outcome,
    )


def _changes(before: TenantsReport, after: TenantsReport) -> Iterator[TenantChange]:
    was, will = ({one.name: one.resources for one in report.tenants} for report in (before, after))
    for name in dict.fromkeys((*will, *was)):
        old, new = was.get(name, {}), will.get(name, {})
        for resource in dict.fromkeys((*new, *old)):
            changes = {field: _change(old.get(resource), new.get(resource), field) for field in ("requested", *FIELDS)}
            if any(_differs(change) for change in changes.values()):
                yield TenantChange(tenant=name, resource=resource, **changes)


def _change(old: TenantResource | None, new: TenantResource | None, field: str) -> Change:
    return Change(before=None if old is None else getattr(old, field), after=None if new is None else getattr(new, field))


def _differs(change: Change) -> bool:
    before, after = change.before, change.after
    if before is None or after is None:
        return before is not after
    return abs(after - before) > 1e-9 * max(1.0, abs(before), abs(after))
