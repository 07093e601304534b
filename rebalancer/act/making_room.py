"""Moves that belong together, since only all of them make room for a pod that waits: tried on the server first, and the room kept for the
pod.

Before the first eviction of a group, every one of its pods is looked at and its eviction is tried on the server without effect; if one
would not happen, none does. Then the pod that waits is nominated for the node: kube-scheduler keeps the room from pods of its priority and
below until it is placed. What happens between the trial and the evictions cannot be undone, and is told.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.eviction import EvictionOutcome, evict
from rebalancer.kube.gates import nominate
from rebalancer.plan.model import Move, Plan

_WOULD = (EvictionOutcome.EVICTED, EvictionOutcome.IN_PROGRESS)


class MakingRoom:
    """``changed``: why a move does not hold any more, as an outcome; None while it does."""

    def __init__(self, client: KubeClient, *, changed: Callable[[Move, Deadline], Outcome | None]) -> None:
        self._client, self._changed = client, changed
        self._groups: dict[str, tuple[Move, ...]] = {}
        self._verdicts: dict[str, tuple[Result, str]] = {}

    def begin(self, plan: Plan) -> None:
        """The groups of the plan, by the uid of the pod that waits."""
        groups: dict[str, list[Move]] = {}
        for move in plan.moves:
            if move.makes_room_for is not None:
                groups.setdefault(move.makes_room_for.uid, []).append(move)
        self._groups, self._verdicts = {uid: tuple(moves) for uid, moves in groups.items()}, {}

    def held_back(self, move: Move, *, deadline: Deadline) -> Outcome | None:
        """Why the move may not be carried out; None when it may. Each group is tried once, before its first move. Raises Interrupted."""
        if move.makes_room_for is None:
            return None
        uid = move.makes_room_for.uid
        verdict = self._verdicts.get(uid)
        if verdict is None:
            verdict = self._verdicts[uid] = self._tried(self._groups.get(uid, (move,)), deadline) or self._nominated(move, deadline)
        result, why = verdict
        return Outcome(move, result, why) if why else None

    def failed(self, outcome: Outcome) -> None:
        """A move of a group did not happen after all: the others would be in vain."""
        room = outcome.move.makes_room_for
        if room is not None and not outcome.result.counts and not self._verdicts.get(room.uid, (Result.CHANGED, ""))[1]:
            pod = f"{outcome.move.pod.namespace}/{outcome.move.pod.name}"
            self._verdicts[room.uid] = (
                Result.CHANGED,
                f"not tried: without {pod}, which stays, there is no room for {room.namespace}/{room.name}",
            )

    def _tried(self, moves: tuple[Move, ...], deadline: Deadline) -> tuple[Result, str] | None:
        for move in moves:
            name = f"{move.pod.namespace}/{move.pod.name}"
            changed = self._changed(move, deadline)
            if changed is not None:
                return changed.result, f"not tried: of the pods that have to leave together {name} does not hold: {changed.reason}"
            pod = move.pod
            answer = evict(self._client, namespace=pod.namespace, name=pod.name, uid=pod.uid, deadline=deadline, dry_run=True, attempts=1)
            if answer.outcome not in _WOULD:
                return Result.BLOCKED, f"not tried: of the pods that have to leave together {name} would stay: {answer.message}"
        return None

    def _nominated(self, move: Move, deadline: Deadline) -> tuple[Result, str]:
        waits = move.makes_room_for
        if waits is None:
            return Result.EVICTED, ""
        name = f"{waits.namespace}/{waits.name}"
        try:
            nominate(self._client, namespace=waits.namespace, name=waits.name, uid=waits.uid, node=move.source, deadline=deadline)
        except (KubernetesNotFound, KubernetesConflict):
            return Result.CHANGED, f"not tried: {name}, which waited for the room, is gone"
        except KubernetesForbidden as error:
            return Result.FORBIDDEN, f"not tried: {name} cannot be nominated for {move.source}, so another could take the room: {error}"
        except KubernetesError as error:
            return Result.FAILED, f"not tried: {name} could not be nominated for {move.source}: {error}"
        return Result.EVICTED, ""
