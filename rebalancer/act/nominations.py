"""Keep the room that is made for a pod that waits, until the pod is placed.

A pod that is nominated for a node has its room kept by kube-scheduler from pods of its priority and below. But the scheduler takes the
nomination away when it tries the pod while those that leave are still there, which every change of a pod may make it do; and the
replacements of the evicted are created at once, and want the room as well. So after each eviction it is seen to that the nomination stands,
until the pod is placed, and only then is room made for the next: every pod that leaves makes the scheduler try all that wait, and two that
are nominated for one node count against each other, so that neither gets the room of one.
"""

from __future__ import annotations

import contextlib

from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gates import nominate, read_waiting
from rebalancer.plan.model import Move, Plan

HOLD_S = 40.0
"""How long they are seen to after an eviction, within the deadline: pods have 30 s of grace to leave where nobody says otherwise."""
_LOOK_S = 0.1


class Nominations:
    """``hold_s``: how long they are seen to after the last eviction of a plan; 0 leaves all of it to the scheduler, which is for clocks
    that do not run by themselves."""

    def __init__(self, client: KubeClient, *, hold_s: float = HOLD_S) -> None:
        self._client, self._hold_s = client, hold_s
        self._kept: dict[str, Move] = {}
        """By the uid of the pod that waits: one of the moves that make room for it."""
        self._left = 0
        """Moves that make room and have not come to their end."""

    def begin(self, plan: Plan) -> None:
        self._kept, self._left = {}, sum(move.makes_room_for is not None for move in plan.moves)

    def free(self, node: str, *, deadline: Deadline) -> bool:
        """Wait for a while until whoever is nominated is placed. Whether nobody is nominated for the node any more. Raises Interrupted."""
        until = deadline.at_most(self._hold_s)
        while self._hold_s and self._kept and until.wait(_LOOK_S):
            self._see_to_them(until)
        return not self._hold_s or all(move.source != node for move in self._kept.values())

    def nominate(self, move: Move, *, deadline: Deadline) -> None:
        """Propose the node of the move to the pod that waits, if one does. Raises KubernetesError; Interrupted."""
        waits = move.makes_room_for
        if waits is not None:
            nominate(self._client, namespace=waits.namespace, name=waits.name, uid=waits.uid, node=move.source, deadline=deadline)

    def moved(self, move: Move, *, left: bool, deadline: Deadline) -> None:
        """A move has come to its end; ``left``: its pod leaves the node."""
        if move.makes_room_for is None:
            return
        self._left -= 1
        if left:
            self._kept[move.makes_room_for.uid] = move
        with contextlib.suppress(Interrupted):  # whoever goes on meets it again
            self._see_to_them(deadline)
            until = deadline.at_most(self._hold_s)
            while self._hold_s and self._kept and not self._left and until.wait(_LOOK_S):
                self._see_to_them(until)

    def _see_to_them(self, deadline: Deadline) -> None:
        """Of each by itself: what the API server refuses of one is asked again at the next look, and costs no other its room."""
        for uid, move in list(self._kept.items()):
            with contextlib.suppress(KubernetesError):
                if not self._waits(uid, move, deadline):
                    del self._kept[uid]

    def _waits(self, uid: str, move: Move, deadline: Deadline) -> bool:
        """Whether the pod is there still and has no node; then its nomination stands."""
        waits = move.makes_room_for
        found = None if waits is None else read_waiting(self._client, namespace=waits.namespace, name=waits.name, deadline=deadline)
        if found is None or found.metadata.uid != uid or found.spec.node_name:
            return False
        if found.status.nominated_node_name != move.source:
            self.nominate(move, deadline=deadline)
        return True
