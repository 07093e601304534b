"""The memory as bytes and back: versioned, bounded, and never trusted blindly.

Written into the ConfigMap ``rebalancer-state``. A record that cannot be read is an error that says so, not an empty memory: forgetting
cooldowns silently would move the same pods again. A ConfigMap holds 1 MiB at most, so a record that would come near gives up what is needed
least: the oldest landings first, then the oldest evictions.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import msgspec

from rebalancer.errors import ConfigurationError
from rebalancer.runtime.memory import Landing, LandingResult, Memory, OpenMove
from rebalancer.state.history import PastEviction, Quarantine
from rebalancer.state.tables import WorkloadRef

R = TypeVar("R", "_Record", "_OpenRecord")

VERSION = 1
MOST_BYTES = 900 * 1024


class _Quarantined(msgspec.Struct, frozen=True):
    workload: WorkloadRef
    rules: Quarantine


class _Landed(msgspec.Struct, frozen=True):
    move: OpenMove
    result: LandingResult
    at: float
    node: str
    seconds: float | None
    realised: float | None


class _Record(msgspec.Struct, frozen=True):
    version: int
    evictions: tuple[PastEviction, ...] = ()
    open_moves: tuple[OpenMove, ...] = ()
    quarantine: tuple[_Quarantined, ...] = ()
    landings: tuple[_Landed, ...] = ()


class _OpenRecord(msgspec.Struct, frozen=True):
    """What a reader of the open moves alone needs; the rest is skipped."""

    version: int
    open_moves: tuple[OpenMove, ...] = ()


def dump_memory(memory: Memory) -> bytes:
    """At most `MOST_BYTES`, as long as the open moves and the quarantine alone are not larger."""
    data = _encode(memory)
    while len(data) > MOST_BYTES and (memory.landings or memory.evictions):
        if memory.landings:
            memory = replace(memory, landings=memory.landings[len(memory.landings) // 4 + 1 :])
        else:
            memory = replace(memory, evictions=memory.evictions[len(memory.evictions) // 8 + 1 :])
        data = _encode(memory)
    return data


def _encode(memory: Memory) -> bytes:
    return msgspec.json.encode(
        _Record(
            version=VERSION,
            evictions=memory.evictions,
            open_moves=memory.open_moves,
            quarantine=tuple(_Quarantined(ref, rules) for ref, rules in memory.quarantine.items()),
            landings=tuple(
                _Landed(x.move, x.result, x.at, x.node, _or_none(x.seconds), _or_none(x.realised_share)) for x in memory.landings
            ),
        )
    )


def load_memory(data: bytes, *, origin: str) -> Memory:
    """Raises ConfigurationError when the record is damaged or of another version."""
    record = _decoded(data, _Record, origin=origin)
    return Memory(
        evictions=record.evictions,
        open_moves=record.open_moves,
        quarantine={entry.workload: entry.rules for entry in record.quarantine},
        landings=tuple(Landing(x.move, x.result, x.at, x.node, _or_nan(x.seconds), _or_nan(x.realised)) for x in record.landings),
    )


def load_open_moves(data: bytes, *, origin: str) -> tuple[OpenMove, ...]:
    """The moves whose replacement is awaited, and nothing else. Raises ConfigurationError as `load_memory`."""
    return _decoded(data, _OpenRecord, origin=origin).open_moves


def _decoded(data: bytes, kind: type[R], *, origin: str) -> R:
    try:
        record = msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            f"the remembered evictions in {origin} cannot be read ({error})",
            remedy=f"delete {origin} if its cooldowns may be forgotten, then start again",
        ) from None
    if record.version != VERSION:
        raise ConfigurationError(
            f"the remembered evictions in {origin} are of version {record.version}, this program knows version {VERSION}",
            remedy=f"run the program that wrote them, or delete {origin} if its cooldowns may be forgotten",
        )
    return record


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
