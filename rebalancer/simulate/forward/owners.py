"""The owners of pods: a replacement for each one that leaves, rollouts pod by pod, arrivals and departures of whole workloads.

A ReplicaSet makes the replacement as soon as a pod is terminating, a StatefulSet or a Job when it is gone, and a bare pod has nobody. A
rollout gives every slot a pod of a new controller: one more pod first, then the old one goes (maxSurge 1, maxUnavailable 0).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rebalancer.simulate.forward.ground import Ground, Renewal
from rebalancer.simulate.forward.pods import PodRows
from rebalancer.state.arrays import IntArray

ROLLOUT_WORDS = "a new revision is being rolled out"


@dataclass(slots=True)
class _Rollout:
    """``left``: slots still to be renewed; ``slot``: the one whose new pod is awaited, -1 none; ``fresh``: that pod's row and serial."""

    left: list[int]
    slot: int = -1
    old: int = -1
    fresh: int = -1
    fresh_uid: str = ""


@dataclass(slots=True)
class Owners:
    ground: Ground
    pods: PodRows
    slots_of: dict[int, IntArray]
    """owner row -> its slots."""
    moved_from: dict[int, int] = field(default_factory=dict)
    """Row of a replacement that is not bound yet -> the node that a strategy evicted its predecessor from."""
    news: bool = True
    """There is a pending pod that nobody has tried to place yet."""
    _holders: IntArray = field(init=False)
    _controllers: list[str] = field(init=False)
    _current: dict[int, int] = field(default_factory=dict)
    _left: set[int] = field(default_factory=set)
    _rollouts: dict[int, _Rollout] = field(default_factory=dict)
    _evicted: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._holders = np.zeros(len(self.ground.slots.owner), dtype=np.int64)
        self._controllers = list(self.ground.controllers)

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(self._controllers)

    @property
    def rolling(self) -> dict[int, str]:
        """owner row -> why a rollout is in progress, in words."""
        return dict.fromkeys(self._rollouts, ROLLOUT_WORDS)

    def create(self, slot: int, *, at: float, uid: str = "", name: str = "", first: bool = False) -> int:
        """A pending pod in the slot; returns its row."""
        slots = self.ground.slots
        owner = int(slots.owner[slot])
        keeps_name = first or (owner >= 0 and bool(self.ground.owners.ordered[owner]))
        name = name or (slots.names[slot] if keeps_name else f"{slots.names[slot]}-{self.pods.serial + 1:x}")
        controller = self._current.get(owner, int(slots.controller[slot]))
        row = self.pods.add(slot=slot, controller=controller, name=name, created_at=at, uid=uid, first=first)
        self._holders[slot] += 1
        self.news = True
        return row

    def delete(self, row: int, *, at: float, confirmed: bool, evicted_from: int = -1) -> None:
        """The pod is terminating from now on. ``confirmed`` False: its node does not answer, so it stays terminating until that is back."""
        pods, slot = self.pods, int(self.pods.slot[row])
        if np.isfinite(pods.deleted_at[row]):
            return
        pods.deleted_at[row] = at
        if pods.node[row] < 0:
            pods.gone_at[row] = at
        elif confirmed:
            pods.gone_at[row] = at + self.ground.slots.shutdown_s[slot]
        if evicted_from >= 0:
            self._evicted[row] = evicted_from
        self.moved_from.pop(row, None)
        self._holders[slot] -= 1
        if self._renewal(slot) is Renewal.AT_ONCE:
            self._renew(row, at=at)

    def gone(self, row: int, *, at: float) -> None:
        """The pod's object has disappeared."""
        if self._renewal(int(self.pods.slot[row])) is Renewal.WHEN_GONE:
            self._renew(row, at=at)
        self._evicted.pop(row, None)

    def arrive(self, owner: int, *, at: float) -> None:
        for slot in self.slots_of.get(owner, ()):
            self.create(int(slot), at=at)

    def leave(self, owner: int, *, at: float) -> None:
        """The owner is deleted, and its pods with it."""
        self._left.add(owner)
        self._rollouts.pop(owner, None)
        for row in self._pods_of(owner):
            self.delete(row, at=at, confirmed=True)

    def roll_out(self, owner: int) -> None:
        """Begin to renew every pod of the owner; a rollout that is under way goes on."""
        if owner in self._rollouts or owner in self._left or owner not in self.slots_of:
            return
        self._controllers.append(f"{self.ground.owners.uids[owner]}-revision-{len(self._controllers)}")
        self._current[owner] = len(self._controllers) - 1
        self._rollouts[owner] = _Rollout([int(slot) for slot in self.slots_of[owner][::-1]])

    def step_rollouts(self, *, at: float) -> None:
        for owner, rollout in list(self._rollouts.items()):
            if self._waits(rollout, at=at):
                continue
            if not rollout.left:
                del self._rollouts[owner]
                continue
            rollout.slot = rollout.left.pop()
            rollout.old = next((row for row in self._pods_of(owner) if self.pods.slot[row] == rollout.slot), -1)
            rollout.fresh = self.create(rollout.slot, at=at)
            rollout.fresh_uid = self.pods.uids[rollout.fresh]

    def _waits(self, rollout: _Rollout, *, at: float) -> bool:
        """Whether the new pod of the current slot is still awaited; when it runs, the old one is deleted."""
        if rollout.slot < 0:
            return False
        fresh = rollout.fresh
        alive = self.pods.uids[fresh] == rollout.fresh_uid and not np.isfinite(self.pods.deleted_at[fresh])
        if alive and self.pods.running_at[fresh] > at:
            return True
        if alive and rollout.old >= 0 and self.pods.slot[rollout.old] == rollout.slot:
            self.delete(rollout.old, at=at, confirmed=True)
        rollout.slot = -1
        return False

    def _pods_of(self, owner: int) -> list[int]:
        """Rows of the owner's pods that are not terminating."""
        rows = self.pods.living()
        mine = (self.ground.slots.owner[self.pods.slot[rows]] == owner) & ~np.isfinite(self.pods.deleted_at[rows])
        found: list[int] = rows[mine].tolist()
        return found

    def _renewal(self, slot: int) -> Renewal:
        owner = int(self.ground.slots.owner[slot])
        if owner < 0 or owner in self._left:
            return Renewal.NEVER
        return Renewal(int(self.ground.owners.renewal[owner]))

    def _renew(self, row: int, *, at: float) -> None:
        """A replacement, unless another pod of the slot is there (a rollout's)."""
        slot = int(self.pods.slot[row])
        if self._holders[slot] > 0:
            return
        source = self._evicted.pop(row, -1)
        fresh = self.create(slot, at=at)
        if source >= 0:
            self.moved_from[fresh] = source
