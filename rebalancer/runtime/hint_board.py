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
        """Evicted pod's uid -> move, of the plan that is carried out now, as far as it has not been."""
        self._waiting: set[str] | None = set()
        """Evicted pods whose replacements wait for a hint, by uid; None: unknown, so all that a cycle finds open."""
        self._open: dict[str, AwaitedMove] = {}
        """Evicted pod's uid -> move, of those that wait."""
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
            self._term, self._waiting = term, None if waiting is None else set(waiting)
            self._planned, self._open = {}, {}
            self._hot, self._shown = frozenset(), False

    def show(self, moves: Iterable[OpenMove], *, hot: Collection[str]) -> None:
        """A cycle has looked: these moves wait for a Ready replacement, and these nodes are hot."""
        with self._lock:
            found = {move.eviction.pod_uid: awaited(move) for move in moves}
            self._waiting = set(found) if self._waiting is None else self._waiting & set(found)
            self._open = {uid: move for uid, move in found.items() if uid in self._waiting}
            self._hot, self._shown = frozenset(hot), True

    def plan(self, moves: Iterable[OpenMove]) -> None:
        """These moves are about to be carried out; an empty list ends that."""
        with self._lock:
            self._planned = {move.eviction.pod_uid: awaited(move) for move in moves}

    def expect(self, move: OpenMove) -> None:
        """The pod is evicted in the next moment."""
        with self._lock:
            self._planned.pop(move.eviction.pod_uid, None)
            self._wait_for(awaited(move))

    def withdraw(self, move: OpenMove) -> None:
        """It was not."""
        with self._lock:
            self._wait_no_more(move.eviction.pod_uid)

    def take(self, pod: GatedPod) -> AwaitedMove | None:
        """The move whose replacement the pod is, which is used up by that; None when it is nobody's."""
        with self._lock:
            move = awaiting(pod, self._open.values())
            if move is not None:
                self._wait_no_more(move.pod_uid)
            return move

    def give_back(self, move: AwaitedMove) -> None:
        """The pod that used the move is gone, so that another one comes."""
        with self._lock:
            self._wait_for(move)

    def announced(self) -> tuple[AwaitedMove, ...]:
        """Everything whose next pods are to be gated: planned now, or awaited still."""
        with self._lock:
            return tuple({**self._planned, **self._open}.values())

    def _wait_for(self, move: AwaitedMove) -> None:
        self._open[move.pod_uid] = move
        if self._waiting is not None:
            self._waiting.add(move.pod_uid)

    def _wait_no_more(self, pod_uid: str) -> None:
        self._open.pop(pod_uid, None)
        if self._waiting is not None:
            self._waiting.discard(pod_uid)
