"""From the columns of the world to a `ClusterState`: what a controller would know at a moment, no more.

Requests, phases, budgets and owners are true, as the API server's are; usage comes from the gauges: late, over windows, NaN where no sample
was. No wire object is made on the way, and what changes only when a pod comes or goes is kept until one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.plan.grades import SOFT_TAINTS
from rebalancer.policy.hotness import Metrics
from rebalancer.simulate.forward.gauges import Gauges, Lens
from rebalancer.simulate.forward.ground import Ground
from rebalancer.simulate.forward.pods import PodRows
from rebalancer.simulate.forward.readings import Readings, coverage_of, no_readings, read_gauges
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState, Coverage, Yesterday
from rebalancer.state.freezing import freeze
from rebalancer.state.tables import Budget, Nodes, Phase, PodClass, Pods, PodVolumes, Workloads


@dataclass(frozen=True, slots=True)
class View:
    """A state and where its pods are in the world. ``rows`` (pods,): row in `PodRows`."""

    state: ClusterState
    rows: IntArray


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of nodes and owners changes. ``ready`` (nodes,); ``soft_taints`` (nodes, taints); ``rolling``: owner row -> why, in words."""

    ready: BoolArray
    soft_taints: BoolArray
    rolling: Mapping[int, str]
    controllers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The columns of the living pods that change only when a pod comes or goes."""

    rows: IntArray
    slot: IntArray
    uids: tuple[str, ...]
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    classes: tuple[PodClass, ...]
    annotations: tuple[Mapping[str, str], ...]
    volumes: tuple[PodVolumes, ...]
    budgets: tuple[tuple[int, ...], ...]
    restart_policy: tuple[str, ...]
    scheduling_group: tuple[str, ...]
    request: FloatArray


class Observer:
    """``metrics``, ``lens``: what the policy asks Prometheus for."""

    def __init__(self, ground: Ground, pods: PodRows, gauges: Gauges, *, metrics: Metrics, lens: Lens) -> None:
        self._ground = ground
        self._pods = pods
        self._gauges = gauges
        self._metrics = metrics
        self._lens = lens
        self._cached: tuple[int, _Fixed] | None = None
        pairs = [(slot, budget) for slot, rows in enumerate(ground.slots.budgets) for budget in rows]
        self._covered: IntArray = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def look(self, at: float, around: Surroundings) -> View:
        """What a controller sees at ``at``."""
        fixed = self._fixed()
        readings = read_gauges(
            self._gauges,
            at=at,
            ground=self._ground,
            pods=self._pods,
            rows=fixed.rows,
            request=fixed.request,
            metrics=self._metrics,
            swing_s=self._lens.swing_s,
        )
        state = self._state(at, around, fixed, readings)
        return View(freeze(replace(state, coverage=coverage_of(state), yesterday=self._yesterday(at))), fixed.rows)

    def skeleton(self, at: float, around: Surroundings) -> View:
        """The same without any usage: all that kube-scheduler looks at."""
        fixed = self._fixed()
        nothing = no_readings(nodes=len(around.ready), pods=len(fixed.rows), signals=len(self._ground.signals))
        return View(freeze(self._state(at, around, fixed, nothing)), fixed.rows)

    def _yesterday(self, at: float) -> Yesterday | None:
        found = self._gauges.yesterday(at)
        return None if found is None else Yesterday(ahead_s=found[0], load=found[1] / self._ground.nodes.capacity[:, :, None])

    def _fixed(self) -> _Fixed:
        if self._cached is None or self._cached[0] != self._pods.edition:
            self._cached = (self._pods.edition, self._read())
        return self._cached[1]

    def _read(self) -> _Fixed:
        pods, slots, rows = self._pods, self._ground.slots, self._pods.living()
        slot = pods.slot[rows]
        numbers, places = slot.tolist(), rows.tolist()
        return _Fixed(
            rows=rows,
            slot=slot,
            uids=tuple([pods.uids[row] for row in places]),
            names=tuple([pods.names[row] for row in places]),
            namespaces=tuple([slots.namespaces[one] for one in numbers]),
            classes=tuple([slots.classes[one] for one in numbers]),
            annotations=tuple([slots.annotations[one] for one in numbers]),
            volumes=tuple([slots.volumes[one] for one in numbers]),
            budgets=tuple([slots.budgets[one] for one in numbers]),
            restart_policy=tuple([slots.restart_policy[one] for one in numbers]),
            scheduling_group=tuple([slots.scheduling_group[one] for one in numbers]),
            request=np.where(pods.first[rows][:, None], slots.request[slot], slots.incoming_request[slot]),
        )

    def _state(self, at: float, around: Surroundings, fixed: _Fixed, readings: Readings) -> ClusterState:
        ground = self._ground
        pods = self._pod_table(at, around, fixed, readings)
        return ClusterState(
            cluster=ground.cluster,
            at=at,
            resources=ground.resources,
            signals=ground.signals,
            nodes=self._node_table(around, readings),
            pods=pods,
            workloads=self._workloads(at, around, pods),
            budgets=self._budgets(at, fixed, pods),
            label_sets=ground.label_sets,
            constraints=ground.constraints,
            controllers=around.controllers,
            namespaces=ground.namespaces,
            priorities=ground.priorities,
            tenants=ground.tenants,
            coverage=Coverage(nodes={}, pods={}, oldest_sample_s={}, dropped={}),
            window_s=self._lens.window_s,
            step_s=self._lens.step_s,
        )

    def _node_table(self, around: Surroundings, readings: Readings) -> Nodes:
        nodes = self._ground.nodes
        taints = nodes.taints
        if around.soft_taints.any():
            own = [tuple(taint for taint, on in zip(SOFT_TAINTS, marks, strict=True) if on) for marks in around.soft_taints.tolist()]
            taints = tuple([(*others, *ours) if ours else others for others, ours in zip(taints, own, strict=True)])
        return Nodes(
            names=nodes.names,
            labels=nodes.labels,
            annotations=nodes.annotations,
            taints=taints,
            unschedulable=nodes.unschedulable,
            ready=around.ready.copy(),
            created_at=nodes.created_at,
            allocatable=nodes.allocatable,
            capacity=nodes.capacity,
            usage=readings.windows[:, :, -1].copy(),
            departed=readings.departed,
            sample_age_s=readings.age_s,
            history=readings.windows / nodes.capacity[:, :, None],
            unknown=readings.unknown,
        )

    def _pod_table(self, at: float, around: Surroundings, fixed: _Fixed, readings: Readings) -> Pods:
        pods, slots, rows, slot = self._pods, self._ground.slots, fixed.rows, fixed.slot
        node, running, bound_at = pods.node[rows], pods.running_at[rows] <= at, pods.bound_at[rows]
        return Pods(
            uids=fixed.uids,
            names=fixed.names,
            namespaces=fixed.namespaces,
            node=node,
            workload=slots.owner[slot],
            controller=pods.controller[rows],
            tenant=slots.tenant[slot],
            labels=slots.labels[slot],
            constraints=slots.constraints[slot],
            request=fixed.request,
            incoming_request=slots.incoming_request[slot],
            scored_request=slots.scored_request[slot],
            scored_incoming=slots.scored_incoming[slot],
            measured=readings.measured,
            usage=readings.usage,
            estimated=readings.estimated,
            deviation=readings.deviation,
            priority=slots.priority[slot],
            qos=slots.qos[slot],
            phase=np.where(running, int(Phase.RUNNING), int(Phase.PENDING)).astype(np.int64),
            ready=running & (node >= 0) & around.ready[node],
            terminating=pods.deleted_at[rows] <= at,
            created_at=pods.created_at[rows],
            started_at=np.where(np.isfinite(bound_at), bound_at, np.nan),
            ready_after=np.where(running, pods.running_at[rows], np.nan) - np.where(running, bound_at, np.nan),
            classes=fixed.classes,
            mirror=slots.mirror[slot],
            annotations=fixed.annotations,
            volumes=fixed.volumes,
            budgets=fixed.budgets,
            restart_policy=fixed.restart_policy,
            scheduling_group=fixed.scheduling_group,
        )

    def _workloads(self, at: float, around: Surroundings, pods: Pods) -> Workloads:
        owners, slots = self._ground.owners, self._ground.slots
        count = len(owners.refs)
        there = (slots.owner >= 0) & (slots.born_at <= at) & (at < slots.leaves_at)
        ready = pods.ready & ~pods.terminating & (pods.workload >= 0)
        return Workloads(
            refs=owners.refs,
            uids=owners.uids,
            replicas=np.where(owners.counted, np.bincount(slots.owner[there], minlength=count), np.nan),
            ready=np.where(owners.counted, np.bincount(pods.workload[ready], minlength=count), np.nan),
            rollout=tuple([around.rolling.get(row, "") for row in range(count)]) if around.rolling else ("",) * count,
            scaled_at=owners.scaled_at,
            annotations=owners.annotations,
            jobs=owners.jobs,
            ordered=owners.ordered,
        )

    def _budgets(self, at: float, fixed: _Fixed, pods: Pods) -> tuple[Budget, ...]:
        slots, rules = self._ground.slots, self._ground.budgets
        healthy_in = np.bincount(fixed.slot[pods.ready & ~pods.terminating], minlength=len(slots.owner))
        there = (slots.born_at <= at) & (at < slots.leaves_at)
        slot, budget = self._covered[:, 0], self._covered[:, 1]
        healthy = np.bincount(budget, weights=healthy_in[slot], minlength=len(rules)).astype(np.int64).tolist()
        expected = np.bincount(budget, weights=there[slot], minlength=len(rules)).astype(np.int64).tolist()
        return tuple(
            [
                Budget(
                    namespace=one.namespace,
                    name=one.name,
                    selector=one.selector,
                    allowed=0 if one.stale else max(0, healthy[row] - one.desired),
                    current_healthy=healthy[row],
                    desired_healthy=one.desired,
                    expected_pods=expected[row],
                    always_allow_unhealthy=one.always_allow_unhealthy,
                    stale=one.stale,
                )
                for row, one in enumerate(rules)
            ]
        )
