"""The node annotation of this project: one JSON value with the loads of CPU, memory, GPU and GPU memory, in UTC, with its own expiry.

    rebalancer.dev/load: {"time":"2026-01-02T03:04:05Z","expires":"2026-01-02T03:12:05Z",
                          "cpu":{"avg5m":0.0271,"maxAvg1h":0.31,"maxAvg1d":null,"deviation":0.04},"memory":{...},"gpu":{...},"gpuMemory":{...}}

The numbers are those of the crane-compatible annotations: fractions of the node with five decimals. ``deviation`` is the standard deviation
of the load, for readers that keep room for swings. What is unknown is null, and a signal of which nothing is known is null as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.state.arrays import FloatArray, by_column
from rebalancer.units import format_time, parse_time

LOAD = "rebalancer.dev/load"
SIGNALS = ("cpu", "memory", "gpu", "gpu_memory")
_DECIMALS = 5
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class SignalLoad:
    """Fractions of the node; NaN unknown."""

    avg_5m: float = math.nan
    max_avg_1h: float = math.nan
    max_avg_1d: float = math.nan
    deviation: float = math.nan


class _SignalWire(msgspec.Struct, frozen=True):
    avg_5m: float | None = msgspec.field(default=None, name="avg5m")
    max_avg_1h: float | None = msgspec.field(default=None, name="maxAvg1h")
    max_avg_1d: float | None = msgspec.field(default=None, name="maxAvg1d")
    deviation: float | None = None


class _LoadWire(msgspec.Struct, frozen=True, rename="camel"):
    time: str
    expires: str
    cpu: _SignalWire | None = None
    memory: _SignalWire | None = None
    gpu: _SignalWire | None = None
    gpu_memory: _SignalWire | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_LoadWire).decode


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """``signals``: by the names in `SIGNALS`; times in Unix seconds."""

    written_at: float
    expires_at: float
    signals: Mapping[str, SignalLoad]


def format_node_load(load: NodeLoad) -> str:
    """The value of the annotation. Signals that are not in `SIGNALS` are left out; a number that is not finite or negative is null."""
    written = {name: _signal_wire(load.signals[name]) for name in SIGNALS if name in load.signals}
    wire = _LoadWire(time=format_time(math.floor(load.written_at)), expires=format_time(math.floor(load.expires_at)), **written)
    return _encode(wire).decode()


def _signal_wire(load: SignalLoad) -> _SignalWire | None:
    numbers = [_number(value) for value in (load.avg_5m, load.max_avg_1h, load.max_avg_1d, load.deviation)]
    return None if all(number is None for number in numbers) else _SignalWire(*numbers)


def _number(value: float | None) -> float | None:
    return round(value, _DECIMALS) + 0.0 if value is not None and math.isfinite(value) and value >= 0 else None


def parse_node_load(text: str) -> NodeLoad | None:
    """None for what is not such a value: somebody else's, or one that was cut short."""
    if len(text) > _LONGEST:
        return None
    try:
        wire = _decode(text)
        written_at, expires_at = parse_time(wire.time), parse_time(wire.expires)
    except (ValueError, OverflowError, RecursionError):  # what msgspec raises is a ValueError
        return None
    return NodeLoad(written_at, expires_at, {name: _signal(getattr(wire, name)) for name in SIGNALS})


def _signal(wire: _SignalWire | None) -> SignalLoad:
    if wire is None:
        return SignalLoad()
    return SignalLoad(
        *(math.nan if _number(v) is None else float(v or 0.0) for v in (wire.avg_5m, wire.max_avg_1h, wire.max_avg_1d, wire.deviation))
    )


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """What the annotation says on each node. ``load`` (the 5-minute mean) and ``deviation`` (nodes, `SIGNALS`), ``written_at`` and
    ``expires_at`` (nodes,) in Unix seconds; all float64, NaN unknown."""

    load: FloatArray
    deviation: FloatArray
    written_at: FloatArray
    expires_at: FloatArray
    odd: int = 0
    """Nodes whose annotation is no such value."""


def read_node_loads(nodes: Sequence[Mapping[str, str]]) -> OwnColumns:
    """The annotation of each node as columns, whatever its age."""
    load, deviation = by_column((len(nodes), len(SIGNALS))), by_column((len(nodes), len(SIGNALS)))
    written_at, expires_at = np.full(len(nodes), np.nan), np.full(len(nodes), np.nan)
    odd = 0
    for row, written in enumerate(nodes):
        text = written.get(LOAD)
        if text is None:
            continue
        found = parse_node_load(text)
        if found is None:
            odd += 1
            continue
        written_at[row], expires_at[row] = found.written_at, found.expires_at
        load[row] = [found.signals[name].avg_5m for name in SIGNALS]
        deviation[row] = [found.signals[name].deviation for name in SIGNALS]
    return OwnColumns(load, deviation, written_at, expires_at, odd)
