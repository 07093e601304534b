"""The scheduler of the embedded cluster: takes pending pods by priority, binds each to the best feasible node, retries with a back-off.

It places by request, as the stock one does; that the machines get hot by usage is none of its business. Among equally good nodes it
draws from the world's generator: to an outsider the ties of the real one are arbitrary too. Preemption is not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import is_terminating, phase, with_condition
from rebalancer.simulate.scheduling_filters import feasible
from rebalancer.simulate.scheduling_scores import Rows, total_score
from rebalancer.simulate.scheduling_snapshot import Bools, Demands, Snapshot, take_snapshot
from rebalancer.simulate.world import Change, World

NAME = "default-scheduler"
_RETRY_S = 300.0
_LONGEST_BACKOFF_S = 10.0


@dataclass(slots=True)
class _Queued:
    """A pod in the queue. ``since``: its place among equals; ``not_before``: the end of its back-off; ``asleep``: waits for news."""

    since: float
    order: int
    attempts: int = 0
    not_before: float = 0.0
    wake_at: float = 0.0


def nodes_to_find(size: int) -> int:
    """How many feasible nodes end the search, with the default ``percentageOfNodesToScore``."""
    return size if size < 100 else max(100, size * max(5, 50 - size // 125) // 100)


class Extender(Protocol):
    def filter(self, names: Sequence[str], pod: Json) -> Bools:
        """(nodes,) where it lets the pod go. ``names``: of all nodes."""


class Scheduler:
    def __init__(self, world: World, *, extenders: Sequence[Extender] = ()) -> None:
        self._world = world
        self._extenders = extenders
        self._demands = Demands()
        self._queue: dict[str, tuple[_Queued, str, str]] = {}
        self._nominated: set[str] = set()
        """uids of waiting pods for which somebody has proposed a node."""
        self._order = 0
        self._start = 0
        for pod in world.objects("pods"):
            self._enqueue(pod)
        world.subscribe(self._note)

    def _enqueue(self, pod: Json) -> None:
        spec, uid = pod["spec"], pod["metadata"]["uid"]
        if pod.get("status", {}).get("nominatedNodeName"):
            self._nominated.add(uid)
        else:
            self._nominated.discard(uid)
        mine = spec.get("schedulerName", NAME) == NAME and not spec.get("nodeName") and phase(pod) == "Pending"
        if not mine or is_terminating(pod) or spec.get("schedulingGates"):
            self._queue.pop(uid, None)
        elif uid not in self._queue:
            self._order += 1
            self._queue[uid] = (_Queued(self._world.now, self._order), pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _note(self, change: Change) -> None:
        if change.plural == "pods":
            if change.type == "DELETED":
                self._queue.pop(change.value["metadata"]["uid"], None)
                self._nominated.discard(change.value["metadata"]["uid"])
                self._demands.forget(change.value["metadata"]["uid"])
                self._wake()
            else:
                self._enqueue(change.value)
        elif change.plural in ("nodes", "persistentvolumeclaims", "persistentvolumes"):
            self._wake()

    def _wake(self) -> None:
        for queued, _, _ in self._queue.values():
            queued.wake_at = queued.not_before

    def next_due(self) -> float:
        return min((queued.wake_at for queued, _, _ in self._queue.values()), default=float("inf"))

    def react(self) -> bool:
        now = self._world.now
        ready = [(queued, namespace, name) for queued, namespace, name in self._queue.values() if queued.wake_at <= now]
        if not ready:
            return False
        snapshot = take_snapshot(self._world, self._demands)
        pods = [(queued, self._world.get("pods", name, namespace)) for queued, namespace, name in ready]
        pods.sort(key=lambda item: (-int(item[1]["spec"].get("priority", 0)), item[0].since, item[0].order))
        for queued, pod in pods:
            row = self.choose(snapshot, pod)
            if row is None:
                self._postpone(queued, pod)
            else:
                self._bind(snapshot, pod, row)
        return True

    def choose(self, snapshot: Snapshot, pod: Json) -> int | None:
        """The row of the node that the pod would go to; None when no node is feasible."""
        demand = self._demands.of(pod)
        with self._room_of_nominated(snapshot, pod):
            mask = feasible(snapshot, pod, demand)
        for extender in self._extenders if mask.any() else ():
            mask &= extender.filter(snapshot.names, pod)
        nominated = snapshot.index.get(pod.get("status", {}).get("nominatedNodeName", ""))
        if nominated is not None and mask[nominated]:
            return nominated
        rows = self._window(np.flatnonzero(mask), snapshot.size)
        if len(rows) == 0:
            return None
        if len(rows) == 1:
            return int(rows[0])
        scores = total_score(snapshot, pod, demand, rows)
        best = rows[scores == scores.max()]
        return int(best[self._world.random.randrange(len(best))])

    @contextmanager
    def _room_of_nominated(self, snapshot: Snapshot, pod: Json) -> Iterator[None]:
        """Meanwhile pods that are nominated for a node count there, for pods of their priority and below, as kube-scheduler has it."""
        priority, uid = int(pod["spec"].get("priority", 0)), pod["metadata"]["uid"]
        counted: list[tuple[int, str, float]] = []
        for other_uid, (_, namespace, name) in self._queue.items() if self._nominated else ():
            if other_uid == uid or other_uid not in self._nominated:
                continue
            other = self._world.get("pods", name, namespace)
            row = snapshot.index.get(other.get("status", {}).get("nominatedNodeName", ""))
            if row is not None and int(other["spec"].get("priority", 0)) >= priority and not other["spec"].get("nodeName"):
                counted += [(row, resource, float(amount)) for resource, amount in self._demands.of(other).request.items()]
        for row, resource, amount in counted:
            snapshot.resource(snapshot.requested, resource)[row] += amount
        try:
            yield
        finally:
            for row, resource, amount in counted:
                snapshot.resource(snapshot.requested, resource)[row] -= amount

    def _window(self, rows: Rows, size: int) -> Rows:
        """The feasible nodes that the search comes across before it stops; the next search starts behind them."""
        wanted = nodes_to_find(size)
        if size < 100:
            return rows
        turned = rows[np.argsort((rows - self._start) % size, kind="stable")]
        found = turned[:wanted]
        processed = size if len(turned) <= wanted else int((found[-1] - self._start) % size) + 1
        self._start = (self._start + processed) % size
        return found

    def _postpone(self, queued: _Queued, pod: Json) -> None:
        now = self._world.now
        queued.attempts += 1
        queued.since = now
        queued.not_before = now + min(_LONGEST_BACKOFF_S, 2.0 ** (queued.attempts - 1))
        queued.wake_at = now + _RETRY_S
        message = f"0/{self._world.count('nodes')} nodes are available"
        marked = with_condition(pod, "PodScheduled", "False", now, reason="Unschedulable", message=message)
        if marked != pod:
            self._world.replace("pods", marked)

    def _bind(self, snapshot: Snapshot, pod: Json, row: int) -> None:
        bound = with_condition(pod, "PodScheduled", "True", self._world.now)
        status = {key: value for key, value in bound["status"].items() if key != "nominatedNodeName"}
        bound = {**bound, "spec": {**pod["spec"], "nodeName": snapshot.names[row]}, "status": status}
        stored = self._world.replace("pods", bound)
        snapshot.place(stored, row, self._demands.of(stored))
