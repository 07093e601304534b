"""Node load annotations in a cycle: what is known of each node becomes what other schedulers can read, before and after the moves.

The nodes of the plan come first, before anything is evicted, so that whoever places the replacements knows better; all others come after
the moves, for as long as a part of the interval allows. Whatever goes wrong here is a note: no cycle fails, and no move is held up, because
an annotation could not be written.

In dry run nothing is asked for beyond what the cycle knows anyway, and nothing is written; the note says of how many nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.act.annotating_nodes import Annotated, AnnotatingNodes, Kind, PatchResult
from rebalancer.act.annotation_owners import AnnotationOwners
from rebalancer.collect.bindings import BindingEvents
from rebalancer.collect.load_peaks import LoadPeaks, Peaks, PeriodsS
from rebalancer.collect.machines import Machines
from rebalancer.deadline import Deadline
from rebalancer.detect.pools import assign_pools
from rebalancer.errors import KubernetesError
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Mode, Pool, Spec
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation
from rebalancer.steer.annotation_work import AnnotationWork, NodePatch, Wanted, annotation_work, keys_of_ours
from rebalancer.steer.crane_policy import EXTRA_ACTIVE_S, CranePolicy
from rebalancer.steer.dynamic import binding_counts, hot_values
from rebalancer.steer.load_annotations import SERIES, zone_named
from rebalancer.steer.node_loads import NodeLoads
from rebalancer.steer.own_annotation import SIGNALS

SHARE_OF_INTERVAL = 0.5
"""How much of an interval the patches of one cycle may take."""
SHARE_OF_TIME = 0.8
"""And of what is left of the cycle's own time."""
ASKING_S = 30.0
"""For all queries about maxima together."""
_LISTING_S = 15.0


@dataclass(frozen=True, slots=True)
class NodesAnnotated:
    """What a cycle did about node load annotations. ``oldest_s``: kind -> age of the oldest mean before it, NaN for none."""

    counts: Mapping[tuple[Kind, PatchResult], int]
    oldest_s: Mapping[str, float]
    notes: tuple[str, ...]


NOTHING_DONE = NodesAnnotated({}, {}, ())


class NodeAnnotations:
    """Lives as long as the controller; a cycle calls `see`, `begin`, `plan_nodes_first`, `finish`, in this order, in one thread."""

    def __init__(
        self, *, annotating: AnnotatingNodes, owners: AnnotationOwners, peaks: LoadPeaks, bindings: BindingEvents, crane: CranePolicySource
    ) -> None:
        self._annotating, self._owners = annotating, owners
        self._peaks, self._bindings, self._crane = peaks, bindings, crane
        self._machines: Machines | None = None
        self._state: ClusterState | None = None
        self._patches: list[NodePatch] = []
        self._result = NOTHING_DONE
        self._interval_s = 0.0
        self._told_bindings = ""
        self._looked_for_leftovers = False

    def see(self, machines: Machines) -> None:
        """The nodes of the cycle that begins. What one before that failed has left is let go of."""
        self._drop()
        self._machines = machines

    def rest(self) -> None:
        """Another leads: keep nothing, and ask for nothing."""
        self._drop()
        self._peaks.forget()
        self._bindings.rest()

    def begin(self, state: ClusterState, orders: Orders, *, deadline: Deadline) -> None:
        """Decide what there is to write. Raises Interrupted and PolicyError."""
        spec, self._result, self._patches = orders.policy.spec, NOTHING_DONE, []
        self._state, self._interval_s = state, spec.interval
        steering, dry = spec.steering, orders.mode is Mode.DRY_RUN
        notes: list[str] = list(self._crane.refresh()) if steering.crane_annotations else []
        if steering.annotate_nodes == "none" and (dry or not self._may_have_left_something(state)):
            return
        wanted = self._wanted(spec)
        cared_for = np.asarray(assign_pools(state, spec.pools) >= 0, dtype=np.bool_)
        self._annotating.put.intersection_update(state.nodes.names)
        leaving = np.array([name in self._annotating.put for name in state.nodes.names], dtype=np.bool_) & ~cared_for
        if dry:
            loads, ours = self._measured(state), np.ones(len(state.nodes.names), dtype=np.bool_)
        else:
            loads, more = self._loads(state, spec, wanted.crane_policy, deadline=deadline)
            ours, told = self._owners.judge(
                state.nodes.names, state.nodes.annotations, rows=cared_for | leaving, at=state.at, deadline=deadline.at_most(_LISTING_S)
            )
            notes += [*more, *told]
        work = annotation_work(
            state.nodes.names,
            state.nodes.annotations,
            loads,
            wanted,
            cared_for=cared_for,
            leaving=leaving,
            crane_ours=ours,
            at=state.at,
        )
        self._take(work, wanted, foreign=int((cared_for & ~ours).sum()), notes=notes, dry=dry)

    def plan_nodes_first(self, plan: Plan, *, deadline: Deadline) -> None:
        """Write those of the nodes that pods are about to leave or to come to."""
        named = {name for move in plan.moves for name in (move.source, move.destination, *move.alternatives)}
        first = [patch for patch in self._patches if patch.node in named]
        if first:
            self._patches = [patch for patch in self._patches if patch.node not in named]
            self._write(first, deadline=deadline)

    def finish(self, *, deadline: Deadline, allowed: bool = True) -> NodesAnnotated:
        """Write the others if they may be written, for as long as there is time. Raises nothing of ours."""
        if self._patches and allowed:
            self._write(self._patches, deadline=deadline)
        result = self._result
        self._drop()
        return result

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None, hurry: bool = False) -> tuple[str, ...]:
        """Take off what this process has written. Raises KubernetesError and Interrupted."""
        if not self._annotating.put:
            return ()
        return self._annotating.clean_up(deadline=deadline, pools=pools, hurry=hurry)

    # ---- what there is to write -----------------------------------------------------------------------------------------

    def _may_have_left_something(self, state: ClusterState) -> bool:
        """With annotations switched off: whether any are there that may be ours. Crane's are looked into once, they may be another's."""
        ours = bool(self._annotating.put) or not self._looked_for_leftovers
        self._looked_for_leftovers = True
        return any(keys_of_ours(there, crane_ours=ours) for there in state.nodes.annotations)

    def _wanted(self, spec: Spec) -> Wanted:
        steering = spec.steering
        return Wanted(
            own=steering.own_annotation,
            crane=steering.crane_annotations,
            zone=zone_named(steering.crane_time_zone),
            crane_policy=self._crane.current(),
            expiry_s=steering.load_expiry,
            interval_s=spec.interval,
        )

    def _take(self, work: AnnotationWork, wanted: Wanted, *, foreign: int, notes: list[str], dry: bool) -> None:
        if dry:
            if work.patches:
                kinds = " and ".join(kind for kind, asked in (("own", wanted.own), ("crane", wanted.crane)) if asked)
                notes.append(f"dry run: load annotations ({kinds}) would be written on {len(work.patches)} nodes")
            self._result = NodesAnnotated({}, work.oldest_s, tuple(notes))
            return
        counts = {(Kind.CRANE, PatchResult.FOREIGN): foreign} if foreign and wanted.crane else {}
        self._patches = list(work.patches)
        self._result = NodesAnnotated(counts, work.oldest_s, tuple(notes))

    def _measured(self, state: ClusterState) -> NodeLoads:
        """What the cycle knows without asking further: the means."""
        loads = NodeLoads.unknown(len(state.nodes.names))
        for column, name in enumerate(SIGNALS):
            if name in state.signal_index:
                loads.mean[:, column] = _share(state.nodes.usage[:, state.signal_index[name]], self._machine(state, name))
                loads.mean_at[:, column] = state.at
        return loads

    def _loads(self, state: ClusterState, spec: Spec, crane: CranePolicy, *, deadline: Deadline) -> tuple[NodeLoads, list[str]]:
        signals = [name for name in SIGNALS if name in state.signal_index]
        machines = self._machines
        if machines is None or spec.steering.annotate_nodes == "none":
            return NodeLoads.unknown(len(state.nodes.names)), []
        found, notes = self._peaks.read(
            signals,
            spec=spec,
            directory=machines.directory,
            names=state.nodes.names,
            usage={name: state.nodes.usage[:, state.signal_index[name]] for name in signals},
            periods=periods(crane),
            at=state.at,
            deadline=deadline.at_most(min(ASKING_S, deadline.remaining() / 3)),
        )
        loads = NodeLoads.unknown(len(state.nodes.names))
        deviation = node_deviation(state) if spec.risk.deviations else None
        for name, peaks in found.items():
            swing = None if deviation is None else deviation[:, state.signal_index[name]]
            self._fill(loads, SIGNALS.index(name), peaks, swing, machine=self._machine(state, name), at=state.at)
        told: list[str] = []
        if spec.steering.crane_annotations:
            hot, told = self._hot(state, crane, deadline=deadline)
            loads = replace(loads, hot=hot)
        return loads, [*(note for note in notes if "node load annotations" in note), *told]

    def _fill(self, loads: NodeLoads, column: int, peaks: Peaks, deviation: FloatArray | None, *, machine: FloatArray, at: float) -> None:
        loads.mean[:, column], loads.mean_at[:, column] = _share(peaks.mean, machine), at
        loads.hour[:, column], loads.hour_at[:, column] = _share(peaks.hour, machine), peaks.hour_at
        loads.day[:, column], loads.day_at[:, column] = _share(peaks.day, machine), peaks.day_at
        if deviation is not None:
            loads.deviation[:, column] = np.where(np.isfinite(loads.mean[:, column]), _share(deviation, machine), np.nan)

    def _machine(self, state: ClusterState, signal: str) -> FloatArray:
        """(nodes,): what the whole machine has of a signal; for one that is no resource of machines, what its load is a share of."""
        if signal not in ("cpu", "memory") or self._machines is None:
            return state.nodes.capacity[:, state.signal_index[signal]]
        capacity = self._machines.capacity
        return np.array([capacity.get(name, {}).get(signal, np.nan) for name in state.nodes.names], dtype=np.float64)

    def _hot(self, state: ClusterState, crane: CranePolicy, *, deadline: Deadline) -> tuple[FloatArray, list[str]]:
        rules = crane.spec.hot_value
        if not rules:
            return np.zeros(len(state.nodes.names)), []
        since = state.at - max(rule.time_range for rule in rules) - 1.0
        try:
            bound = self._bindings.read(state.node_index, since=since, deadline=deadline.at_most(_LISTING_S))
        except KubernetesError as error:
            news = [f"node_hot_value is not written, for bindings are not known: {error}"] if str(error) != self._told_bindings else []
            self._told_bindings = str(error)
            return np.full(len(state.nodes.names), np.nan), news
        self._told_bindings = ""
        counts = binding_counts(
            rules, node=bound.node, bound_at=bound.at, nodes=len(state.nodes.names), now=state.at, remembered=len(bound.at)
        )
        return hot_values(rules, counts).astype(np.float64), []

    # ---- writing --------------------------------------------------------------------------------------------------------

    def _write(self, patches: Sequence[NodePatch], *, deadline: Deadline) -> None:
        state = self._state
        if state is None:
            return
        limit_s = min(SHARE_OF_INTERVAL * self._interval_s, SHARE_OF_TIME * max(0.0, deadline.at - deadline.clock()))
        done = self._annotating.write(patches, deadline=deadline.at_most(limit_s))
        self._owners.wrote(done.tried, state.nodes.annotations)
        self._result = _together(self._result, done)

    def _drop(self) -> None:
        self._machines = self._state = None
        self._patches = []


def periods(crane: CranePolicy) -> PeriodsS:
    """How often maxima are worth asking for: as often as the policy has them written, of either signal."""

    usual = PeriodsS()

    def period(ending: str, else_s: float) -> float:
        asked = [crane.fresh_for_s(name) - EXTRA_ACTIVE_S for name in SERIES if name.endswith(ending) and crane.fresh_for_s(name) > 0]
        return min(asked, default=else_s)

    return PeriodsS(hour=period("_1h", usual.hour), day=period("_1d", usual.day))


def _share(usage: FloatArray, machine: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = usage / machine
    return np.where(np.isfinite(share), share, np.nan)


def _together(result: NodesAnnotated, done: Annotated) -> NodesAnnotated:
    counts = dict(result.counts)
    for key, count in done.counts.items():
        counts[key] = counts.get(key, 0) + count
    more = [f"{done.left} nodes are left to the next cycle"] if done.left and not done.notes else []
    return replace(result, counts=counts, notes=(*result.notes, *done.notes, *more))
