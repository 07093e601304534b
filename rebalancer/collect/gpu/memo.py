"""What was read of nodes and pods in the cycle before, so that only what has changed is read again.

Answers are functions of the objects that stand beside them here; they are good as long as those are the same ones. What a cycle did not
use is let go with it. Whoever lists afresh each time begins with an empty memo, and gets the same tables.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class Kept(Generic[V]):
    """One value for each key, good while the objects it was made from are the very same."""

    _now: dict[Hashable, tuple[tuple[object, ...], V]] = field(default_factory=dict)
    _before: dict[Hashable, tuple[tuple[object, ...], V]] = field(default_factory=dict)

    def begin(self) -> None:
        """A cycle begins: what the last one did not use is let go."""
        self._before, self._now = self._now, {}

    def find(self, key: Hashable, made_from: tuple[object, ...]) -> V | None:
        entry = self._before.get(key)
        if entry is None:
            return None
        for one, other in zip(entry[0], made_from, strict=True):
            if one is not other:
                return None
        self._now[key] = entry
        return entry[1]

    def keep(self, key: Hashable, made_from: tuple[object, ...], value: V) -> V:
        self._now[key] = (made_from, value)
        return value
