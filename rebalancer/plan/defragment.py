"""Defragment: move the fewest pods aside so that a pod that waits for GPUs fits, where what is free is enough but not in one place.

Only a pod that fits nowhere as things are, and would fit on a node without some of the pods there, is helped; one that waits for another
reason fits nowhere either way. The pods that leave go to places of their own: the chain of moves is booked as a whole, each replacement
where it is predicted to land, and then the cluster as it would be is asked once more by all filters of the scheduler whether the pod that
waits fits (`plan.room`). All or nothing; one waiting pod a plan, the highest priority and then the longest wait first.

Nobody of a higher priority than the waiting pod makes way: kube-scheduler keeps the room of a nominated pod from its equals and those below
only. All gates hold, as for every other eviction, and pods of gangs neither make way nor are made way for: one member alone helps no gang.
The gain of a move is that in heat, which may be none or less: these moves are not made for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice

import numpy as np

from rebalancer.guard.gate import Candidate, Refusal, first_refusal
from rebalancer.plan.booking import book_move, mark, rewind
from rebalancer.plan.destination import Landing
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.relieve import not_a_source
from rebalancer.plan.room import where_it_fits, without
from rebalancer.policy.defragment import Defragment as Rules
from rebalancer.state.arrays import IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node
from rebalancer.state.tables import Phase
from rebalancer.units import format_duration

WAITING_TRIED = 5
"""Pods that wait of which one plan tries to help one."""
PODS_TRIED = 10
"""Pods of a node of which sets are made: half those that ask for the fewest devices, which are tried first, half for the most."""
SETS_TRIED = 45
"""Sets of each size, of the pods of each node, that the filters are asked about: all of one pod and of two, part of the larger ones."""
CHAINS_TRIED = 30
"""Sets that would make room, whose pods are then moved aside on trial."""


@dataclass(slots=True)
class _Progress:
    refused: dict[int, Refusal] = field(default_factory=dict)
    denied: list[str] = field(default_factory=list)
    """Why pods go on waiting."""


class Defragment:
    name = "defragment"

    def propose(self, bench: Bench) -> Proposal:
        rules, state = bench.scene.spec.defragment, bench.scene.state
        progress = _Progress()
        for pod in waiting(bench, rules)[:WAITING_TRIED] if rules.enabled else ():
            moves = self._serve(bench, pod, rules, progress)
            if moves:
                node = state.nodes.names[moves[0].source]
                outcome = f"{_counted(len(moves), 'move')} so that {state.pod_name(pod)} fits on {node}"
                return Proposal(self.name, moves, (), outcome)
        return Proposal(self.name, (), tuple(progress.refused.items()), "; ".join(progress.denied))

    def _serve(self, bench: Bench, pod: int, rules: Rules, progress: _Progress) -> tuple[ProposedMove, ...]:
        state, gpu = bench.scene.state, bench.scene.spec.gpu
        if where_it_fits(state, pod, gpu=gpu).any():
            return ()  # kube-scheduler can place it as it is
        candidates = _candidates(bench, pod, progress)
        everywhere = where_it_fits(without(state, candidates), pod, gpu=gpu) if candidates else np.zeros(0, dtype=np.bool_)
        if not everywhere.any():
            progress.denied.append(f"{_waits(state, pod)}, and would fit on no node without the {len(candidates)} pods that may be moved")
            return ()
        last, tried = "", 0
        for node, chosen in _sets_that_make_room(bench, pod, candidates, most=rules.max_moves):
            if not all(_has_a_place(bench, each, node) for each in chosen):
                continue
            tried += 1
            if tried > CHAINS_TRIED:
                break
            moves = move_aside(bench, chosen, pod, node, reason=_reason(state, pod, node, len(chosen)))
            if not isinstance(moves, str):
                return moves
            last = moves
        most = f"no {rules.max_moves} pods or fewer of one node were found that would make room for it"
        progress.denied.append(f"{_waits(state, pod)}, and {last or most}")
        return ()


def move_aside(bench: Bench, pods: tuple[int, ...], waits: int, node: int, *, reason: str) -> tuple[ProposedMove, ...] | str:
    """Book the moves of all these pods off the node and see that the one that waits then fits there; else why not, in words, and nothing is
    booked."""
    state, before = bench.scene.state, mark(bench)
    bench.placements.book(waits, node)  # it is nominated, so no replacement comes back into its room
    moves: list[ProposedMove] = []
    for pod in pods:
        move = _moved(bench, Candidate(pod, node), reason)
        if isinstance(move, str):
            rewind(bench, before)
            return f"{state.pod_name(pod)} on {state.nodes.names[node]} cannot make way: {move}"
        moves.append(replace(move, makes_room_for=waits))
    then = without(state, pods, placed={move.pod: move.destination for move in moves})
    if not where_it_fits(then, waits, gpu=bench.scene.spec.gpu)[node]:
        rewind(bench, before)
        return f"it would not fit on {state.nodes.names[node]} once {_counted(len(pods), 'pod')} had made way"
    return tuple(moves)


def _moved(bench: Bench, candidate: Candidate, reason: str) -> ProposedMove | str:
    """Gates that hang on what is booked are asked anew: what they allow to each, budgets may not allow to all."""
    refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
    if refusal is not None:
        return f"{refusal.gate}: {refusal.reason}"
    landing = bench.destinations.predict(candidate.pod, candidate.source)
    if not isinstance(landing, Landing):
        return f"{landing.gate.value}: {landing.reason}"
    if candidate.source in (landing.destination, *landing.alternatives):
        return f"its replacement could come back to {bench.scene.state.nodes.names[candidate.source]}"
    return book_move(bench, candidate, landing, reason=reason)


def waiting(bench: Bench, rules: Rules) -> list[int]:
    """Pods that ask for GPUs and have waited for long enough, in the order in which they are helped."""
    state = bench.scene.state
    pods, asking = state.pods, state.gpus.pod
    due = (pods.node[asking] < 0) & (pods.phase[asking] == Phase.PENDING) & ~pods.terminating[asking]
    due &= state.at - pods.created_at[asking] >= rules.after
    found = [pod for pod in asking[due].tolist() if bench.scene.gang_rules.of_pod(pod) < 0]
    return sorted(found, key=lambda pod: (-int(pods.priority[pod]), float(pods.created_at[pod]), state.pod_name(pod)))


def _candidates(bench: Bench, waits: int, progress: _Progress) -> list[int]:
    """Pods that may be moved for it: those that hold GPUs where everything is known."""
    state = bench.scene.state
    found = []
    on, pods = on_a_node(state), state.pods
    for pod in state.gpus.pod.tolist():
        if not on[pod] or pods.priority[pod] > pods.priority[waits] or bench.scene.gang_rules.of_pod(pod) >= 0:
            continue
        candidate = Candidate(pod, int(pods.node[pod]))
        if not_a_source(bench, candidate.source):
            continue
        refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
        if refusal is None:
            found.append(pod)
        else:
            progress.refused[pod] = refusal
    return found


def _sets_that_make_room(bench: Bench, waits: int, candidates: list[int], *, most: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Nodes and pods of them without which the waiting pod fits there: the fewest pods first, then those that ask for least.

    One question to all filters is about one set of each node: no node sees what is taken off another.
    """
    state = bench.scene.state
    at: IntArray = state.pods.node[candidates]
    own = {node: [candidates[place] for place in np.flatnonzero(at == node).tolist()] for node in np.unique(at).tolist()}
    by_size = {node: _outermost(sorted(pods, key=lambda pod: (_size(state, pod), state.pod_name(pod)))) for node, pods in own.items()}
    for chosen in chain.from_iterable(islice(combinations(range(PODS_TRIED), count), SETS_TRIED) for count in range(1, most + 1)):
        sets = {node: tuple(pods[place] for place in chosen) for node, pods in by_size.items() if len(pods) > chosen[-1]}
        if not sets:
            continue
        fits = where_it_fits(without(state, [pod for pods in sets.values() for pod in pods]), waits, gpu=bench.scene.spec.gpu)
        found = [(sum(_size(state, pod) for pod in pods), state.nodes.names[node], node) for node, pods in sets.items() if fits[node]]
        for _, _, node in sorted(found):
            yield node, sets[node]


def _outermost(pods: list[int]) -> list[int]:
    half = PODS_TRIED // 2
    return pods if len(pods) <= PODS_TRIED else [*pods[:half], *pods[-half:]]


def _has_a_place(bench: Bench, pod: int, source: int) -> bool:
    """Some other node would take it."""
    allowed = bench.feasibility.allowed(pod)
    allowed[source] = False
    return bool(allowed.any())


def _size(state: ClusterState, pod: int) -> float:
    """Devices that it asks for; infinite where that is not known."""
    asked = sum(ask.gpus if ask.gpus == ask.gpus else ask.devices for ask in state.gpus.asks_of(pod))
    return asked if asked == asked else math.inf


def _reason(state: ClusterState, pod: int, node: int, count: int) -> str:
    others = "this pod" if count == 1 else f"this pod and {count - 1} more"
    return f"{_waits(state, pod)} and fits on no node; once {others} went to other places it fits on {state.nodes.names[node]}"


def _waits(state: ClusterState, pod: int) -> str:
    waited = format_duration(round(state.at - float(state.pods.created_at[pod])))
    asked = sum(ask.devices for ask in state.gpus.asks_of(pod))
    whole = all(ask.whole for ask in state.gpus.asks_of(pod))
    gpus = f"{asked:g} GPU{'' if asked == 1 else 's'}" if whole else f"parts of {asked:g} GPU{'' if asked == 1 else 's'}"
    return f"{state.pod_name(pod)} has waited {waited} for {gpus if asked == asked else 'GPUs'}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
