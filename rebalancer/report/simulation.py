"""What `simulate` found: the strategies side by side in one world."""

from __future__ import annotations

import msgspec

from rebalancer.plan.model import API_VERSION


class CoursePoint(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A stretch of time that ended ``hours`` after the start; loads are ratios of capacity."""

    hours: float
    hot_nodes: float
    worst_load: float | None
    spread: float | None
    evictions: int


class StrategyResult(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One strategy's life in the world. Loads are demand over capacity, so they may be above 1; counted by the truth, not by metrics."""

    name: str
    strategy: str
    policy: str
    describe: str = ""
    hot_node_minutes: float
    """Minutes that nodes were over a mark, summed over the nodes."""
    mean_hot_nodes: float
    worst_load: float | None
    mean_spread: float | None
    """Mean over time of the standard deviation of node loads."""
    throttled_core_hours: float
    """CPU that was wanted and not there."""
    evictions: int
    refused_by_api_server: int
    """Evictions that were tried and that a disruption budget, or a pod that was leaving already, prevented."""
    evictions_per_workload_day_mean: float
    evictions_per_workload_day_max: int
    made_hot: int
    """Evictions whose replacement made a node hot that was not."""
    landed_on_hot: int
    """Evictions whose replacement came to a node that was hot already."""
    returned: int
    """Evictions whose replacement came back to the node it had left."""
    budget_violations: int
    gangs_broken: int
    pending_pod_minutes: float
    """Minutes that pods waited for a node."""
    unready_pod_minutes: float
    """Minutes that pods, replacements and others, were not Ready yet."""
    cycles: int
    undecided_cycles: int = 0
    """Cycles in which the strategy could not decide, for want of metrics say."""
    undecided_why: str = ""
    wall_seconds: float
    deciding_seconds: float
    course: tuple[CoursePoint, ...] = ()


class SimulationReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "SimulationReport"
    scenario: str
    description: str = ""
    seed: int
    hours: float
    nodes: int
    pods: int
    workloads: int
    hot_above: dict[str, float]
    """signal -> the mark that a node is hot above, ratio; the lowest where nodes differ."""
    results: tuple[StrategyResult, ...]
