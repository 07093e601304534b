"""What there is to say of each node's load: means, maxima, deviation and hot value, as columns over the nodes and the annotated signals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import FloatArray
from rebalancer.steer.own_annotation import SIGNALS

_SIGNAL_OF = {"cpu": SIGNALS.index("cpu"), "mem": SIGNALS.index("memory")}


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """(nodes, `own_annotation.SIGNALS`) each, as fractions of the machine; ``*_at``: when it was measured, Unix seconds. NaN unknown.

    ``hot`` (nodes,): the penalty of recent bindings, a whole number.
    """

    mean: FloatArray
    mean_at: FloatArray
    hour: FloatArray
    hour_at: FloatArray
    day: FloatArray
    day_at: FloatArray
    deviation: FloatArray
    hot: FloatArray

    @classmethod
    def unknown(cls, nodes: int) -> NodeLoads:
        mean, mean_at, hour, hour_at, day, day_at, deviation = (np.full((nodes, len(SIGNALS)), np.nan) for _ in range(7))
        return cls(mean, mean_at, hour, hour_at, day, day_at, deviation, hot=np.full(nodes, np.nan))

    def series(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Values and times of crane-scheduler's series: (nodes, names) each."""
        kinds = {"avg_5m": (self.mean, self.mean_at), "max_avg_1h": (self.hour, self.hour_at), "max_avg_1d": (self.day, self.day_at)}
        columns = [(_SIGNAL_OF[signal], kinds[kind]) for signal, _, kind in (name.partition("_usage_") for name in names)]
        return np.stack([v[:, c] for c, (v, _) in columns], axis=1), np.stack([t[:, c] for c, (_, t) in columns], axis=1)

    def of_node(self, row: int) -> Iterator[tuple[str, float, float, float, float]]:
        """(signal, mean, maximum of an hour, of a day, deviation) of one node."""
        columns = (self.mean[row].tolist(), self.hour[row].tolist(), self.day[row].tolist(), self.deviation[row].tolist())
        yield from zip(SIGNALS, *columns, strict=True)
