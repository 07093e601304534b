"""What the cycle knows and the hinting needs: whose replacements are awaited, for which nodes, and which nodes are hot.

The cycle writes it, the threads of `hint_keeper` read it; one lock, no waiting. A move is used up by the first pod that it hints, for the
whole of a leadership; a new leader learns from the announcement of the old one which of the open moves still wait.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.steer.hinting import AwaitedMove, GatedPod, awaiting


def awaited(move: OpenMove) -> AwaitedMove:
    """An open move as the hinting sees it."""
    eviction = move.eviction
    return AwaitedMove(
        pod_uid=eviction.pod_uid,
        namespace=eviction.namespace,
        pod=eviction.pod,
        controller_uid=eviction.controller_uid,
        evicted_at=eviction.at,
        nodes=(eviction.destination, *move.alternatives),
    )


class HintBoard:
    """Before a cycle of a leadership has looked, nobody knows whose replacement a pod is: see `shown`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._term: Term | None = None
        self._planned: dict[str, AwaitedMove] = {}
        """Evicted pod's uid -> move, of the plan that is carried out now."""
        self._open: dict[str, AwaitedMove] = {}
        self._used: set[str] = set()
        self._waiting_before: frozenset[str] | None = None
        """What the announcement of an earlier leader awaits; None: it could not be read."""
        self._hot: frozenset[str] = frozenset()
        self._shown = False

    def begun(self, term: Term) -> bool:
        """Whether `begin` was called for this leadership."""
        with self._lock:
            return term is self._term

    def shown(self, term: Term) -> bool:
        """Whether a cycle of this leadership has looked."""
        with self._lock:
            return self._shown and term is self._term

    @property
    def hot(self) -> frozenset[str]:
        with self._lock:
            return self._hot

    def begin(self, term: Term, waiting: frozenset[str] | None) -> None:
        """A leadership begins. ``waiting``: the evicted pods whose replacements the announcement still awaits, by uid; None: unknown."""
        with self._lock:
            self._term = term
            self._planned, self._open, self._used = {}, {}, set()
            self._waiting_before, self._hot, self._shown = waiting, frozenset(), False

    def show(self, moves: Iterable[OpenMove], *, hot: Collection[str]) -> None:
        """A cycle has looked: these moves wait for a Ready replacement, and these nodes are hot."""
        with self._lock:
            found = {move.eviction.pod_uid: awaited(move) for move in moves}
            if not self._shown and self._waiting_before is not None:
                self._used = set(found) - self._waiting_before
            self._open, self._used = found, self._used & set(found)
            self._hot, self._shown = frozenset(hot), True

    def plan(self, moves: Iterable[OpenMove]) -> None:
        """These moves are about to be carried out; an empty list ends that."""
        with self._lock:
            self._planned = {move.eviction.pod_uid: awaited(move) for move in moves}

    def expect(self, move: OpenMove) -> None:
        """The pod is evicted in the next moment."""
        with self._lock:
            self._open[move.eviction.pod_uid] = awaited(move)

    def withdraw(self, move: OpenMove) -> None:
        """It was not."""
        with self._lock:
            self._open.pop(move.eviction.pod_uid, None)

    def take(self, pod: GatedPod) -> AwaitedMove | None:
        """The move whose replacement the pod is, which is used up by that; None when it is nobody's."""
        with self._lock:
            move = awaiting(pod, (each for uid, each in self._open.items() if uid not in self._used))
            if move is not None:
                self._used.add(move.pod_uid)
            return move

    def give_back(self, move: AwaitedMove) -> None:
        """The pod that used the move is gone, so that another one comes."""
        with self._lock:
            self._used.discard(move.pod_uid)

    def announced(self) -> tuple[AwaitedMove, ...]:
        """Everything whose next pods are to be gated: planned now, or awaited still."""
        with self._lock:
            together = {**self._planned, **self._open}
            return tuple(move for uid, move in together.items() if uid not in self._used)
