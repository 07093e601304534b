"""Who runs where: one row a pod, from its creation until Prometheus has forgotten it.

A pod's life is a handful of times: created, bound, running (and Ready), deleted (terminating from then on), gone. All but the first are
infinity until they are known, so who is Ready, or uses its node, at a moment is a comparison of columns. Rows are used again.
"""

from __future__ import annotations

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

_GROWTH = 1.5


class PodRows:
    def __init__(self, capacity: int) -> None:
        size = max(capacity, 16)
        self.slot: IntArray = np.full(size, -1, dtype=np.int64)
        self.node: IntArray = np.full(size, -1, dtype=np.int64)
        """-1 while pending."""
        self.controller: IntArray = np.full(size, -1, dtype=np.int64)
        self.created_at: FloatArray = np.full(size, np.inf)
        self.bound_at: FloatArray = np.full(size, np.inf)
        self.running_at: FloatArray = np.full(size, np.inf)
        self.deleted_at: FloatArray = np.full(size, np.inf)
        self.gone_at: FloatArray = np.full(size, np.inf)
        self.first: BoolArray = np.zeros(size, dtype=np.bool_)
        """The pod was there at the start: its requests are those of the state, not those of the template."""
        self.uids: list[str] = [""] * size
        self.names: list[str] = [""] * size
        self.edition = 0
        """Changes whenever a pod appears or is gone."""
        self._free = list(range(size - 1, -1, -1))
        self._living: BoolArray = np.zeros(size, dtype=np.bool_)
        self._serial = 0
        self._rows: tuple[int, IntArray] = (-1, np.empty(0, dtype=np.int64))

    @property
    def capacity(self) -> int:
        return len(self.slot)

    def add(self, *, slot: int, controller: int, name: str, created_at: float, uid: str = "", first: bool = False) -> int:
        """A pending pod; returns its row."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        self._serial += 1
        self.slot[row], self.node[row], self.controller[row] = slot, -1, controller
        self.created_at[row] = created_at
        for column in (self.bound_at, self.running_at, self.deleted_at, self.gone_at):
            column[row] = np.inf
        self.first[row] = first
        self.names[row], self.uids[row] = name, uid or f"pod-{self._serial:08d}"
        self._living[row] = True
        self.edition += 1
        return row

    @property
    def serial(self) -> int:
        """How many pods there ever were."""
        return self._serial

    def bind(self, row: int, node: int, *, at: float, running_at: float) -> None:
        self.node[row], self.bound_at[row], self.running_at[row] = node, at, running_at

    def bury(self, rows: IntArray) -> None:
        """The pods' objects are gone. Their rows stay until `release`, since means of the last minutes still hold them."""
        if len(rows):
            self._living[rows] = False
            self.edition += 1

    def release(self, rows: IntArray) -> None:
        """The rows may be used again."""
        self.slot[rows] = -1
        self._free.extend(rows[::-1].tolist())

    def living(self) -> IntArray:
        """Rows of the pods that the API server knows, ascending; terminating ones are among them."""
        if self._rows[0] != self.edition:
            self._rows = (self.edition, np.flatnonzero(self._living))
        return self._rows[1]

    def departed(self) -> IntArray:
        """Rows of pods that are gone but not released."""
        return np.flatnonzero(~self._living & (self.slot >= 0))

    def _grow(self) -> None:
        old = self.capacity
        size = int(old * _GROWTH) + 16
        more = size - old
        for name in ("slot", "node", "controller"):
            setattr(self, name, np.concatenate((getattr(self, name), np.full(more, -1, dtype=np.int64))))
        for name in ("created_at", "bound_at", "running_at", "deleted_at", "gone_at"):
            setattr(self, name, np.concatenate((getattr(self, name), np.full(more, np.inf))))
        self.first = np.concatenate((self.first, np.zeros(more, dtype=np.bool_)))
        self._living = np.concatenate((self._living, np.zeros(more, dtype=np.bool_)))
        self.uids += [""] * more
        self.names += [""] * more
        self._free = list(range(size - 1, old - 1, -1))
