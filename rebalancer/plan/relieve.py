"""Relieve: make room on shared GPUs that are nearly full because a pod uses more of their memory than it asked for.

A node may be calm by its means while one of its devices has no byte left: its pods fail at their next allocation, and those that kept to
what they asked for fail with the one that did not. So this goes by device. Of each that is over ``gpu.overuse.deviceAbove``, over-users
leave until it is under the mark, the largest excess first, each to where what it really uses fits (`plan.gpu.book`). Where an over-user
cannot leave, its neighbours are brought to safety instead. All gates hold, as for every other eviction, and only what was measured of a pod
itself accuses or moves it.

It is not weighed against the heat that it takes out of the cluster, which may be none. How full a device is now is the lower of its mean
and of the sum of who is on it, since a mean does not fall when a pod leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rebalancer.detect.findings import NodeClass
from rebalancer.detect.gpus.overuse import OverUser, over_users
from rebalancer.guard.gate import Candidate, Refusal, first_refusal
from rebalancer.plan.booking import book_move
from rebalancer.plan.destination import Landing
from rebalancer.plan.gpu.table import LEFT_BYTES, LEFT_SHARE
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.reasons import PlanGate
from rebalancer.policy.gpu_holders import Overuse
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_bytes, format_percent

REPELS = 0.8
"""Of the mark: from where on nodes with over-users repel new pods."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """A device that is over the mark. ``users``: over-users on it, largest excess first."""

    device: int
    used_bytes: float
    total_bytes: float
    users: tuple[OverUser, ...]

    def full(self, left: float = 0.0) -> float:
        """How full it is after so many bytes have left."""
        return (self.used_bytes - left) / self.total_bytes


@dataclass(slots=True)
class _Progress:
    """``left``: bytes that have left each device by the plan so far."""

    left: dict[int, float] = field(default_factory=dict)
    moves: dict[int, ProposedMove] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)


class Relieve:
    name = "relieve"

    def propose(self, bench: Bench) -> Proposal:
        crowded = crowded_devices(bench.scene.state, bench.scene.spec.gpu.overuse)
        progress = _Progress()
        for one in crowded:
            self._relieve(bench, one, progress)
        return Proposal(self.name, tuple(progress.moves.values()), tuple(progress.refused.items()), _outcome(crowded, progress))

    def _relieve(self, bench: Bench, one: Crowded, progress: _Progress) -> None:
        state, mark = bench.scene.state, bench.scene.spec.gpu.overuse.device_above / 100
        accused = {user.pod for user in one.users}
        for pod, reason in _candidates(state, one):
            full = one.full(progress.left.get(one.device, 0.0))
            if full <= mark and pod not in accused:
                return
            if pod in progress.moves or pod in progress.refused:
                continue  # it is on several such devices
            if full <= mark:
                words = f"{_name(state, one.device)} is {format_percent(full)} full after the moves before"
                progress.refused[pod] = Refusal(PlanGate.NOT_NEEDED.value, words, retryable=True)
                continue
            result = self._try(bench, pod, f"{reason} (policy gpu.overuse)")
            if isinstance(result, ProposedMove):
                progress.moves[pod] = result
                for device, used in _held(state, pod):
                    progress.left[device] = progress.left.get(device, 0.0) + used
            else:
                progress.refused[pod] = result

    def _try(self, bench: Bench, pod: int, reason: str) -> ProposedMove | Refusal:
        candidate = Candidate(pod, int(bench.scene.state.pods.node[pod]))
        refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
        if refusal is not None:
            return refusal
        words = not_a_source(bench, candidate.source)
        if words:
            return Refusal(PlanGate.NO_BETTER_PLACE.value, words, retryable=True)
        landing = bench.destinations.predict(pod, candidate.source)
        if not isinstance(landing, Landing):
            return Refusal(landing.gate.value, landing.reason, retryable=True)
        return book_move(bench, candidate, landing, reason=reason)


def crowded_devices(state: ClusterState, rules: Overuse, *, mark: float = 1.0) -> list[Crowded]:
    """Fullest first; over ``mark`` of the policy's. None where an over-user has the device to itself: it takes nothing from anybody."""
    gpus, users = state.gpus, [user for user in over_users(state, rules) if user.neighbours]
    if not users:
        return []
    own = np.bincount(gpus.held.device, weights=gpus.held_use.memory_bytes, minlength=len(gpus.devices))  # NaN: not all are measured
    found = []
    for device in sorted({user.device for user in users}):
        here = tuple(user for user in users if user.device == device)
        total, used = here[0].device_bytes, here[0].device_used_bytes
        used = float(np.fmin(used, own[device] + max(LEFT_BYTES, LEFT_SHARE * total)))
        if used > mark * rules.device_above / 100 * total:
            found.append(Crowded(device, used, total, here))
    return sorted(found, key=lambda one: (-one.full(), one.device))


def crowded_nodes(state: ClusterState, rules: Overuse) -> BoolArray:
    """(nodes,) nodes with a device that somebody is to leave, or has just left. They repel new pods, since kube-scheduler and the scheme
    count what was asked for, and would fill it again."""
    mask = np.zeros(len(state.nodes.names), dtype=np.bool_)
    if rules.action == "move":
        mask[[int(state.gpus.devices.node[one.device]) for one in crowded_devices(state, rules, mark=REPELS)]] = True
    return mask


def still_crowds(bench: Bench, pod: int) -> str:
    """Why a pod need not leave its device any more, in words; empty where it must."""
    state, rules = bench.scene.state, bench.scene.spec.gpu.overuse
    on = {device for device, _ in _held(state, pod)}
    if any(one.device in on for one in crowded_devices(state, rules)):
        return ""
    return f"{state.pod_name(pod)} is on no GPU any more that over-users fill over {rules.device_above:g} %"


def not_a_source(bench: Bench, node: int) -> str:
    """Why nothing may be taken from a node, in words; empty where it may."""
    f, name = bench.findings, bench.scene.state.nodes.names[node]
    if f.pool[node] < 0:
        return f"node {name} is in no pool of the policy"
    return f"the load of node {name} is unknown" if f.node_class[node] == NodeClass.UNKNOWN else ""


def _candidates(state: ClusterState, one: Crowded) -> Iterator[tuple[int, str]]:
    """Pods with the reason for which each would leave: the over-users, then their neighbours, the largest first."""
    gpus, where = state.gpus, f"{_name(state, one.device)} is {format_percent(one.full())} full"
    for user in one.users:
        amounts = f"{format_bytes(user.asked_bytes)} of it and uses {format_bytes(user.used_bytes)}"
        yield user.pod, f"{where}, and this pod asked for {amounts}"
    worst = one.users[0]
    excess = f"{format_bytes(worst.asked_bytes)} and uses {format_bytes(worst.used_bytes)}"
    accused = {user.pod for user in one.users}
    own = gpus.held.of_device(one.device)
    pairs = zip(gpus.held.pod[own].tolist(), gpus.held_use.memory_bytes[own].tolist(), gpus.held_use.estimated[own].tolist(), strict=True)
    others = [(pod, used) for pod, used, guessed in pairs if pod not in accused and not guessed and used > 0]
    for pod, used in sorted(others, key=lambda pair: (-pair[1], state.pod_name(pair[0]))):
        yield pod, f"{where} with {state.pod_name(worst.pod)}, which asked for {excess} and cannot leave; this pod has {format_bytes(used)}"


def _held(state: ClusterState, pod: int) -> list[tuple[int, float]]:
    """Devices that the pod is on, and what it uses of each."""
    held = state.gpus.held.of_pod(pod)
    return list(zip(state.gpus.held.device[held].tolist(), np.nan_to_num(state.gpus.held_use.memory_bytes[held]).tolist(), strict=True))


def _name(state: ClusterState, device: int) -> str:
    devices = state.gpus.devices
    return f"GPU {devices.name(device)} of {state.nodes.names[int(devices.node[device])]}"


def _outcome(crowded: list[Crowded], progress: _Progress) -> str:
    if not crowded:
        return ""
    full = f"{len(crowded)} GPU{'s' if len(crowded) > 1 else ''} that over-users fill"
    if progress.moves:
        return f"{len(progress.moves)} move{'s' if len(progress.moves) > 1 else ''} from {full}"
    return f"{full}, but every one of {len(progress.refused)} candidates is refused"
