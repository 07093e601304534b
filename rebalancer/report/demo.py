"""What the demonstration shows at its end: the cluster before, the cluster after, and what it cost."""

from __future__ import annotations

import msgspec

from rebalancer.plan.model import API_VERSION


class DemoState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Loads are ratios of capacity; unknown is null."""

    hot_nodes: int
    max_load: float | None
    stddev: float | None


class Landing(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Where replacements went, by what the plan had predicted; ``pending`` ones have not landed yet."""

    as_planned: int
    elsewhere: int
    pending: int = 0


class DemoCycle(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The cluster after each cycle."""

    cycle: int
    state: DemoState
    moves: int
    outcome: str = ""


class DemoResult(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "DemoResult"
    seed: int
    cycles: int
    nodes: int = 0
    pods: int = 0
    soft_taints: bool = True
    before: DemoState
    after: DemoState
    worst_load_seen: float | None = None
    """The highest load of any node at any time after the start."""
    evictions: int
    refused: dict[str, int]
    """gate -> candidates that it refused."""
    examples: dict[str, str] = {}
    """gate -> one of its sentences."""
    landing: Landing
    course: tuple[DemoCycle, ...] = ()


class DemoComparison(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One cluster, two runs: what soft taints are worth."""

    api_version: str = API_VERSION
    kind: str = "DemoComparison"
    with_soft_taints: DemoResult
    without_soft_taints: DemoResult
