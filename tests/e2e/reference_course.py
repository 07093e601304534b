"""What one contender's minutes came to, counted by the truth of the load model and never by what Prometheus or the controller believes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from tests.e2e.api import Json

HOT = 0.65
SETTLED_S = 60.0
"""What counts as the first minute."""
NEARLY = 0.005
"""Time passes between the look at a load and the moment that is noted for it."""


@dataclass(frozen=True)
class Course:
    """``times`` (samples,) seconds; ``loads`` (samples, nodes) CPU wanted as a share of the node, above 1 where it is throttled."""

    name: str
    times: FloatArray
    loads: FloatArray
    idle: FloatArray
    """(samples, nodes): what the same start would have come to if nobody had moved anything."""
    landed: Sequence[tuple[str, str]]
    """namespace/Deployment and node of each pod that replaced an evicted one."""
    moves: Sequence[Json] = ()
    """What the controller logged of each eviction."""
    cycles: Sequence[Json] = ()
    trouble: Sequence[str] = ()
    """Its warnings and errors."""
    settled: Mapping[str, int] = field(default_factory=dict)
    """What the controller counted of its moves: landed as planned, elsewhere, back at the source, lost."""

    @property
    def evictions(self) -> int:
        return len(self.landed)

    def hot(self, *, after: float = 0.0) -> float:
        """Hot nodes, on average over the minutes after ``after`` seconds."""
        return _hot(self.loads, self.times >= after)

    def hot_idle(self, *, after: float = 0.0) -> float:
        """The same if nobody had moved anything."""
        return _hot(self.idle, self.times >= after)

    @property
    def worst(self) -> float:
        return float(self.loads.max())

    @property
    def worst_idle(self) -> float:
        return float(self.idle.max())

    @property
    def above_idle(self) -> float:
        """By how much the worst node of a moment was ever above the worst node of that moment without moves; 0 for never."""
        return float(np.maximum(self.loads.max(axis=1) - self.idle.max(axis=1), 0.0).max())

    @property
    def made_hot(self) -> tuple[int, ...]:
        """Nodes that were hot and would not have been at that moment without moves, nor nearly."""
        return tuple(np.flatnonzero(((self.loads > HOT) & (self.idle <= HOT - NEARLY)).any(axis=0)).tolist())

    @property
    def on_named(self) -> int:
        """Replacements on the node that the plan named first. Where nodes tie in the scheduler's scores it takes any of them."""
        planned = Counter((_workload(move["pod"]), str(move["destination"])) for move in self.moves)
        return (planned & Counter(self.landed)).total()

    @property
    def again(self) -> tuple[str, ...]:
        """Workloads that lost a pod more than once."""
        return tuple(sorted(name for name, count in Counter(name for name, _ in self.landed).items() if count > 1))

    @property
    def as_planned(self) -> int:
        """Replacements that the controller found on the node it named or on one that it said may be as well."""
        return self.settled.get("as-planned", 0)


def _hot(loads: FloatArray, when: BoolArray) -> float:
    return float((loads[when] > HOT).sum(axis=1).mean())


def _workload(pod: str) -> str:
    """namespace/Deployment of a pod that is named after its ReplicaSet."""
    return pod.rsplit("-", 2)[0]
