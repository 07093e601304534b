"""What the demonstration shows at its end: the cluster before, the cluster after, and what it cost."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from rebalancer.plan.model import API_VERSION


class DemoState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Loads are ratios of capacity; unknown is null. What is said of GPUs is there only in a demonstration with GPUs."""

    hot_nodes: int
    max_load: float | None
    stddev: float | None
    gpu_hot_nodes: int | UnsetType = UNSET
    """Of the hot nodes those that are hot by ``gpu`` or ``gpu_memory``."""
    overfull_devices: int | UnsetType = UNSET
    """GPUs of which more memory is wanted than they have: programs fail there."""
    worst_device_memory: float | UnsetType = UNSET
    """The largest share of a GPU's memory that is wanted."""
    gangs_broken: int | UnsetType = UNSET
    """Training gangs that are short of members."""


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
    gpus: int | UnsetType = UNSET
    soft_taints: bool = True
    before: DemoState
    after: DemoState
    worst_load_seen: float | None = None
    """The highest load of any node at any time after the start."""
    devices_overfilled: int | UnsetType = UNSET
    """GPUs that became over-full at any time after the start."""
    gangs_broken: int | UnsetType = UNSET
    """Training gangs that were short of members at any time."""
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
