"""Which pod serves which slot: a replacement takes over the slot of the pod that leaves, with its level and its wave.

The time of the waves stands still until `Traffic.begin`, so that each contender lives through the same minutes, however long it took to
fill its cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.api import Json
from tests.e2e.load import LoadModel, Usage
from tests.e2e.reference_town import Town

NOBODY = ""
IDLE = Usage(0.0, 0.0)


@dataclass(frozen=True)
class Arrival:
    """A pod began to run: which slot it took over, where, and when in the town's time."""

    uid: str
    slot: int
    node: str
    at: float


class Traffic(LoadModel):
    """The load model of a town. The ledger's lock guards it."""

    def __init__(self, town: Town, *, begins_at: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``begins_at``: the town's time until `begin`; negative for minutes before the measured ones."""
        super().__init__()
        self.arrivals: list[Arrival] = []
        self._town = town
        self._memory = town.memory().tolist()
        self._stands_at = begins_at
        self._clock = clock
        self._began: float | None = None
        self._holder = [NOBODY] * town.pods
        self._slot: dict[str, int] = {}
        self._seen: set[str] = set()
        self._leaving: set[str] = set()
        self._cores_at = float("nan")
        self._cores: list[float] = []

    @property
    def now(self) -> float:
        """Seconds into the measured time."""
        return self._stands_at if self._began is None else self._stands_at + self._clock() - self._began

    def begin(self) -> None:
        """Let the time pass."""
        self._began = self._clock()

    def reserve(self, uid: str, slot: int) -> None:
        """A pod that has not started will take this slot."""
        self._slot[uid], self._holder[slot] = slot, uid

    def starts(self, pod: Json) -> None:
        meta = pod["metadata"]
        uid = meta["uid"]
        if meta.get("deletionTimestamp"):
            self._leaving.add(uid)
        elif uid not in self._seen:
            self._seen.add(uid)
            slot = self._slot[uid] if uid in self._slot else self._free(meta["namespace"], meta["labels"]["app"])
            self.reserve(uid, slot)
            self.arrivals.append(Arrival(uid=uid, slot=slot, node=pod["spec"]["nodeName"], at=self.now))

    def ends(self, uid: str) -> None:
        self._leaving.discard(uid)
        slot = self._slot.pop(uid, None)
        if slot is not None and self._holder[slot] == uid:
            self._holder[slot] = NOBODY

    def demand(self, pod: Json) -> Usage:
        slot = self._slot.get(pod["metadata"]["uid"])
        return IDLE if slot is None else Usage(self._wanted()[slot], self._memory[slot])

    def _wanted(self) -> list[float]:
        """Of all slots; the same for all pods that one look of the ledger asks for."""
        at = round(self.now, 1)
        if at != self._cores_at:
            self._cores_at, self._cores = at, self._town.cores(at).tolist()
        return self._cores

    def _free(self, namespace: str, app: str) -> int:
        """The first slot of the Deployment that nobody holds, or only a pod that is on its way out."""
        for slot in self._town.slots[namespace, app]:
            if self._holder[slot] == NOBODY or self._holder[slot] in self._leaving:
                return slot
        raise AssertionError(f"{namespace}/{app} runs more pods than it has replicas")
