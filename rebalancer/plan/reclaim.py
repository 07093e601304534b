"""Reclaim: give tenants back what they are guaranteed, by evicting the fewest of those who borrow it, on a node where the pod that waits
then fits.

For each claim (`plan.claims`), on each node that would take the pod if all borrowers had left, the borrowers there are taken in order until
what the pod asks for is free; those that turn out not to be needed are spared. The node with the fewest victims is chosen, and before
anything is planned the whole is checked by all filters of the scheduler on the cluster as it would be (`plan.room`): all or nothing.

The order of victims: the tenant furthest over what it is entitled to; within a tenant the lowest priority, idle before busy by measurement,
the newest first. Priorities of different tenants are never compared. Whoever borrows nothing of what is claimed loses nothing, and no
tenant falls under its guarantee; so the reverse case, the victims' tenant claiming it back, finds no claim. All gates hold, as for every
other eviction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from rebalancer.detect.tenants.accounts import accounts_of, pod_amounts, resources_of
from rebalancer.guard.gate import Candidate, Refusal, book, first_refusal
from rebalancer.plan.claims import Book, book_of, claims, shown
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.room import where_it_fits, without
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.reclaim import Reclaim as Rules
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import GpuAsk
from rebalancer.state.ledger import on_a_node
from rebalancer.units import format_duration

NODES_TRIED = 3
"""Nodes whose chosen victims are checked by all filters, fewest victims first."""
SHOWN = 3
"""Names in a sentence."""
BUSY = 0.05
"""Share of its request over which a pod counts as busy, as it does where its use is not known."""


@dataclass(frozen=True, slots=True)
class Room:
    """Victims on a node, in the order in which they were taken."""

    node: int
    victims: tuple[int, ...]
    rank: int
    """Of the last of them in the order of all."""


@dataclass(slots=True)
class _Progress:
    """``gone`` and ``placed``: what the plan has done so far. ``refused``: why a borrower stays, once each."""

    gone: set[int] = field(default_factory=set)
    placed: dict[int, int] = field(default_factory=dict)
    moves: list[ProposedMove] = field(default_factory=list)
    refused: dict[int, Refusal] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    """What was made room for, in words."""
    asked: Counter[str] = field(default_factory=Counter)
    """Gate -> borrowers that it kept from the claim that was looked at last."""
    denied: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(tenant, why) -> pods that go on waiting."""

    @property
    def outcome(self) -> str:
        """One sentence for what is given back, one for each reason why others wait."""
        parts = []
        if self.given:
            parts.append(f"{_counted(len(self.moves), 'move')} give{'' if len(self.moves) > 1 else 's'} room back: {_listed(self.given)}")
        for (tenant, why), pods in self.denied.items():
            waits = f"{_counted(len(pods), 'pod')} of tenant {tenant} within its guarantee wait{'' if len(pods) > 1 else 's'}"
            parts.append(f"{waits}, and {why}: {_listed(pods)}")
        return "; ".join(parts)


class Reclaim:
    name = "reclaim"

    def propose(self, bench: Bench) -> Proposal:
        rules, tenants, state = bench.scene.spec.reclaim, bench.tenants, bench.scene.state
        if not tenants or not rules.enabled:
            return Proposal(self.name, (), (), "")
        bench = replace(bench, scene=replace(bench.scene, reclaiming=True))
        resources = resources_of(state, tenants)
        amounts = pod_amounts(state, resources)
        held = book_of(state, accounts_of(state, tenants, amounts=amounts), amounts)
        progress = _Progress()
        for pod in claims(state, held, after_s=rules.after):
            if not held.within_guarantee(pod) or pod in progress.placed:
                continue  # what was given back before has filled the guarantee
            self._serve(bench, held, pod, rules, progress)
        return Proposal(self.name, tuple(progress.moves), tuple(progress.refused.items()), progress.outcome)

    def _serve(self, bench: Bench, held: Book, pod: int, rules: Rules, progress: _Progress) -> None:
        state, gpu = bench.scene.state, bench.scene.spec.gpu
        leaving = np.flatnonzero(state.pods.terminating & held.amounts.holding).tolist()
        now = without(state, [*progress.gone, *leaving], placed=progress.placed)
        fits = where_it_fits(now, pod, gpu=gpu)
        if fits.any():  # kube-scheduler can place it as it is, or once those have left that are leaving; so nobody else has to
            progress.placed[pod] = int(np.argmax(fits))
            held.move(pod, sign=1)
            return
        candidates = self._candidates(bench, held, pod, progress)
        name, tenant = state.pod_name(pod), _tenant(held, pod)
        if not candidates:
            gates = ", ".join(f"{count} {gate}" for gate, count in progress.asked.most_common())
            why = f"nobody who borrows may be evicted{f' ({gates})' if gates else ''}"
            progress.denied.setdefault((tenant, why), []).append(name)
            return
        everywhere = where_it_fits(without(now, candidates), pod, gpu=gpu)
        rooms = sorted(
            self._rooms(now, held, pod, candidates, everywhere, rules),
            key=lambda room: (len(room.victims), room.rank, state.nodes.names[room.node]),
        )
        for room in rooms[:NODES_TRIED]:
            spared = self._needed(now, pod, room, gpu=gpu)
            if spared is not None and self._allowed_together(bench, spared, progress):
                self._book(bench, held, pod, spared, progress)
                return
        why = f"no {rules.max_victims} borrowers on one node make room"
        progress.denied.setdefault((tenant, why), []).append(name)

    def _candidates(self, bench: Bench, held: Book, pod: int, progress: _Progress) -> list[int]:
        """Pods that may be evicted for the claim, in order."""
        state, claimed = bench.scene.state, held.guaranteed_of(pod)
        own = int(held.row_of[pod])
        takes = (held.amounts.requested[:, claimed] > 0).any(axis=1)
        rows = np.flatnonzero(held.amounts.holding & (held.row_of >= 0) & (held.row_of != own) & takes)
        found = []
        progress.asked.clear()
        for victim in rows.tolist():
            if victim in progress.gone or held.may_lose(victim, claimed, sparing=own):
                continue
            candidate = Candidate(victim, int(state.pods.node[victim]))
            refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
            if refusal is not None:
                progress.refused[victim] = refusal
                progress.asked[refusal.gate] += 1
                continue
            found.append(victim)
        return sorted(found, key=lambda victim: self._order(state, held, victim, claimed))

    def _order(self, state: ClusterState, held: Book, victim: int, claimed: BoolArray) -> tuple[float, str, int, bool, float, str]:
        pods = state.pods
        used, asked = held.amounts.used[victim], held.amounts.requested[victim]
        taken = claimed & (asked > 0)
        busy = not (used[taken] <= BUSY * asked[taken]).all()  # idle is only who is measured to be
        tenant = held.accounts.tree.names[int(held.row_of[victim])]
        started = float(pods.started_at[victim])
        return (
            -held.overage(victim, claimed),
            tenant,
            int(pods.priority[victim]),
            busy,
            -started if started == started else math.inf,
            state.pod_name(victim),
        )

    def _rooms(self, now: ClusterState, held: Book, pod: int, candidates: list[int], everywhere: BoolArray, rules: Rules) -> Iterator[Room]:
        """On each node that would take the pod: borrowers in order until sums say that it fits."""
        pods = now.pods
        at = pods.node[candidates]
        free = _free(now)
        need = np.nan_to_num(pods.incoming_request[pod], nan=np.inf)
        sparing, claimed = int(held.row_of[pod]), held.guaranteed_of(pod)
        for node in np.unique(at[everywhere[at]]).tolist():
            victims: list[int] = []
            rank = -1
            left = free[node].copy()
            for place in np.flatnonzero(at == node).tolist():
                if (left >= need - 1e-9).all() and victims and not _asks(now, pod):
                    break
                if len(victims) == rules.max_victims:
                    break
                victim = candidates[place]
                if held.may_lose(victim, claimed, sparing=sparing):  # an earlier one may have used up what its tenant borrows
                    continue
                held.move(victim, sign=-1)
                victims.append(victim)
                rank = place
                left = left + pods.request[victim]
                if (left >= need - 1e-9).all() and (not _asks(now, pod) or _devices_free(now, victims, pod)):
                    break
            for victim in victims:
                held.move(victim, sign=1)
            if victims and (left >= need - 1e-9).all():
                yield Room(node, tuple(victims), rank)

    def _needed(self, now: ClusterState, pod: int, room: Room, *, gpu: Gpu) -> Room | None:
        """Without those that turn out not to be needed, the last taken first; None where the pod does not fit in the end."""
        if not where_it_fits(without(now, room.victims), pod, gpu=gpu)[room.node]:
            return None
        kept = list(room.victims)
        for victim in reversed(room.victims):
            fewer = [each for each in kept if each != victim]
            if fewer and where_it_fits(without(now, fewer), pod, gpu=gpu)[room.node]:
                kept = fewer
        return Room(room.node, tuple(kept), room.rank)

    def _allowed_together(self, bench: Bench, room: Room, progress: _Progress) -> bool:
        """Charge all of them to the plan, or none: what the gates allow to each alone, budgets may not allow to all."""
        before = bench.scene.booked.copy()
        for victim in room.victims:
            candidate = Candidate(victim, room.node)
            refusal = first_refusal(candidate, bench.scene, static=False)
            if refusal is not None:
                bench.scene.booked.become(before)
                progress.refused[victim] = refusal
                return False
            book(candidate, bench.scene)
        return True

    def _book(self, bench: Bench, held: Book, pod: int, room: Room, progress: _Progress) -> None:
        state, claimed = bench.scene.state, held.guaranteed_of(pod)
        waited = format_duration(round(state.at - float(state.pods.created_at[pod])))
        own = int(held.row_of[pod])
        tree = held.accounts.tree
        asked = ", ".join(
            f"{shown(held.amounts.requested[pod, column], name)} {name}"
            for column, name in enumerate(held.accounts.resources)
            if claimed[column]
        )
        claim = f"tenant {tree.names[own]} {held.words(own, claimed)}, and {state.pod_name(pod)} has waited {waited} for {asked}"
        node = state.nodes.names[room.node]
        for victim in room.victims:
            row = int(held.row_of[victim])
            reason = f"{claim}; tenant {tree.names[row]} {held.words(row, claimed)}; without {_others(len(room.victims))} it fits on {node}"
            progress.moves.append(
                ProposedMove(
                    pod=victim,
                    source=room.node,
                    destination=-1,
                    alternatives=(),
                    chance=math.nan,
                    gain=0.0,
                    reason=reason,
                    loads=(),
                    makes_room_for=pod,
                )
            )
            held.move(victim, sign=-1)
            progress.gone.add(victim)
        held.move(pod, sign=1)
        progress.placed[pod] = room.node
        progress.given.append(f"{state.pod_name(pod)} on {node}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _others(count: int) -> str:
    return "this pod" if count == 1 else f"this pod and {count - 1} more"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _tenant(held: Book, pod: int) -> str:
    return held.accounts.tree.names[int(held.row_of[pod])]


def _free(state: ClusterState) -> FloatArray:
    """(nodes, resources): allocatable less the requests of the pods that are there; -infinity where one is not known."""
    pods = state.pods
    rows = np.flatnonzero(on_a_node(state))
    total = np.zeros(state.nodes.allocatable.shape)
    for column in range(len(state.resources)):
        total[:, column] = np.bincount(pods.node[rows], weights=pods.request[rows, column], minlength=len(state.nodes.names))
    return np.nan_to_num(state.nodes.allocatable - total, nan=-np.inf)


def _asks(state: ClusterState, pod: int) -> tuple[GpuAsk, ...]:
    return state.gpus.asks_of(pod)


def _devices_free(state: ClusterState, victims: list[int], pod: int) -> bool:
    """A first look at devices: as many as the pod asks for are held by nobody once the victims have left, or none is asked for whole."""
    wanted = sum(ask.devices for ask in _asks(state, pod) if ask.whole)
    if not wanted > 0:
        return True
    held: IntArray = state.gpus.held.device[np.isin(state.gpus.held.pod, victims) & state.gpus.held.exclusive]
    return len(np.unique(held)) >= wanted or len(victims) >= wanted
