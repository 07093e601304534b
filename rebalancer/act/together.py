"""Moves that belong together, since only all of them make room for a pod that waits, or since their pods are one gang: tried on the server
first.

Before the first eviction of a group, every one of its pods is looked at and its eviction is tried on the server without effect; if one
would not happen, none does. A pod that waits for room is then nominated for the node (`act.nominations`). What happens between the trial
and the evictions cannot be undone, and is told: a gang of which the first pod stays is left alone, one that is broken already goes on to
its new places.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.act.nominations import HOLD_S, Nominations
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.eviction import EvictionOutcome, evict
from rebalancer.plan.model import Move, Plan

_WOULD = (EvictionOutcome.EVICTED, EvictionOutcome.IN_PROGRESS)


class Together:
    """``changed``: why a move does not hold any more, as an outcome; None while it does. ``hold_s``: see `Nominations`."""

    def __init__(self, client: KubeClient, *, changed: Callable[[Move, Deadline], Outcome | None], hold_s: float = HOLD_S) -> None:
        self._client, self._changed = client, changed
        self._nominations = Nominations(client, hold_s=hold_s)
        self._groups: dict[str, tuple[Move, ...]] = {}
        self._verdicts: dict[str, tuple[Result, str]] = {}
        self._begun: set[str] = set()

    def begin(self, plan: Plan) -> None:
        """The groups of the plan, by what binds them."""
        self._nominations.begin(plan)
        groups: dict[str, list[Move]] = {}
        for move in plan.moves:
            if move.bond:
                groups.setdefault(move.bond, []).append(move)
        self._groups, self._verdicts, self._begun = {bond: tuple(moves) for bond, moves in groups.items()}, {}, set()

    def held_back(self, move: Move, *, deadline: Deadline) -> Outcome | None:
        """Why the move may not be carried out; None when it may. Each group is tried once, before its first move. Raises Interrupted."""
        bond = move.bond
        if not bond:
            return None
        verdict = self._verdicts.get(bond)
        if verdict is None:
            moves = self._groups.get(bond, (move,))
            verdict = self._room_taken(move, deadline) or self._tried(moves, deadline) or self._nominated(move, deadline)
            self._verdicts[bond] = verdict
        result, why = verdict
        return Outcome(move, result, why) if why else None

    def hear(self, outcome: Outcome, *, deadline: Deadline) -> None:
        """Hear what became of a move. Where one of a group did not happen after all, the others would be in vain; a gang that is broken
        already is not."""
        move, bond = outcome.move, outcome.move.bond
        if not bond:
            return
        self._judge_rest(outcome, bond)
        self._nominations.moved(move, left=outcome.result.counts, deadline=deadline)

    def _judge_rest(self, outcome: Outcome, bond: str) -> None:
        move = outcome.move
        if outcome.result.counts:
            self._begun.add(bond)
            return
        if self._verdicts.get(bond, (Result.CHANGED, ""))[1] or (move.gang and bond in self._begun):
            return
        room, pod = move.makes_room_for, f"{move.pod.namespace}/{move.pod.name}"
        in_vain = f"there is no room for {room.namespace}/{room.name}" if room is not None else f"gang {move.gang} would not move whole"
        self._verdicts[bond] = (Result.CHANGED, f"not tried: without {pod}, which stays, {in_vain}")

    def _room_taken(self, move: Move, deadline: Deadline) -> tuple[Result, str] | None:
        if move.makes_room_for is None:
            return None
        free = self._nominations.free(move.source, deadline=deadline)
        return None if free else (Result.CHANGED, f"not tried: another pod has not taken its room on {move.source} yet")

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
            self._nominations.nominate(move, deadline=deadline)
        except (KubernetesNotFound, KubernetesConflict):
            return Result.CHANGED, f"not tried: {name}, which waited for the room, is gone"
        except KubernetesForbidden as error:
            return Result.FORBIDDEN, f"not tried: {name} cannot be nominated for {move.source}, so another could take the room: {error}"
        except KubernetesError as error:
            return Result.FAILED, f"not tried: {name} could not be nominated for {move.source}: {error}"
        return Result.EVICTED, ""
