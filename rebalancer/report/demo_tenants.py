"""What the demonstration of tenants shows at its end: who held what before and after, who ran, who had to leave."""

from __future__ import annotations

import msgspec

from rebalancer.plan.model import API_VERSION


class TenantState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Of CPU, in cores."""

    name: str
    guaranteed: float
    held: float
    waiting: float
    pending_pods: int


class TenantsDemoCycle(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    cycle: int
    method: str
    evicted: int
    pending_pods: int
    """Of tenants within their guarantee, after the cycle."""
    outcome: str


class TenantsDemoResult(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "TenantsDemoResult"
    seed: int
    cycles: int
    nodes: int
    pods: int
    starved: str
    """The tenant that came back."""
    before: tuple[TenantState, ...]
    after: tuple[TenantState, ...]
    evictions: dict[str, int]
    """By tenant."""
    under_guarantee: tuple[str, ...]
    """Tenants that were at any time under their guarantee and had not been before; none, it is hoped."""
    named_nodes: int
    """Pods that waited and came to run on the node that the plan had made room on."""
    refused: dict[str, int]
    course: tuple[TenantsDemoCycle, ...] = ()
