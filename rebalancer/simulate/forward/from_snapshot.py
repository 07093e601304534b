"""From a snapshot to a world that begins where the snapshot was taken.

Every pod that is there becomes a slot of its own, with the usage that was measured or estimated for it, which it keeps. What nobody could
measure stays unknown: a node without a load is never hot, and a pod without a usage is part of what its node uses besides. Pods that had
finished or were terminating are gone, rollouts are over, and this project's soft taints are off.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.grades import is_own
from rebalancer.simulate.forward.demand import steady
from rebalancer.simulate.forward.gauges import Timing
from rebalancer.simulate.forward.ground import BudgetRules, Ground, NodeColumns, OwnerColumns, Renewal, SlotColumns
from rebalancer.simulate.forward.world import CPU, Setting
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_residual
from rebalancer.state.tables import Phase

_WAIT = ("StatefulSet", "DaemonSet")
STARTUP_S = (8.0, 30.0)
SHUTDOWN_S = 4.0


def setting_of(state: ClusterState, *, name: str, seed: int, timing: Timing, high: FloatArray) -> Setting:
    """``high`` (nodes, signals): by what marks a node counts as hot in the results; NaN where it is not judged."""
    rows = np.flatnonzero(~np.isin(state.pods.phase, (int(Phase.SUCCEEDED), int(Phase.FAILED))) & ~state.pods.terminating)
    signal = next((column for column, each in enumerate(state.signals) if each.name == CPU), -1)
    return Setting(
        name=name,
        seed=seed,
        ground=_ground(state, rows),
        demand=steady(state.pods.usage[rows].copy(), busy=signal),
        happenings=(),
        timing=timing,
        high=high,
        placed=state.pods.node[rows].copy(),
        uids=tuple(state.pods.uids[row] for row in rows.tolist()),
    )


def _ground(state: ClusterState, rows: IntArray) -> Ground:
    return Ground(
        cluster=state.cluster,
        start=state.at,
        resources=state.resources,
        signals=state.signals,
        nodes=_nodes(state),
        slots=_slots(state, rows),
        owners=_owners(state),
        budgets=tuple(
            BudgetRules(one.namespace, one.name, one.selector, one.desired_healthy, one.always_allow_unhealthy, one.stale)
            for one in state.budgets
        ),
        label_sets=state.label_sets,
        constraints=state.constraints,
        controllers=state.controllers,
        namespaces=state.namespaces,
        priorities=state.priorities,
        tenants=state.tenants,
    )


def _nodes(state: ClusterState) -> NodeColumns:
    nodes = state.nodes
    return NodeColumns(
        names=nodes.names,
        labels=nodes.labels,
        annotations=nodes.annotations,
        taints=tuple(tuple(taint for taint in taints if not is_own(taint)) for taints in nodes.taints),
        unschedulable=nodes.unschedulable.copy(),
        ready=nodes.ready.copy(),
        created_at=nodes.created_at.copy(),
        allocatable=nodes.allocatable.copy(),
        capacity=nodes.capacity.copy(),
        system=node_residual(state),
    )


def _slots(state: ClusterState, rows: IntArray) -> SlotColumns:
    pods, places = state.pods, rows.tolist()
    return SlotColumns(
        owner=pods.workload[rows],
        controller=pods.controller[rows],
        names=tuple(pods.names[row] for row in places),
        namespaces=tuple(pods.namespaces[row] for row in places),
        tenant=pods.tenant[rows],
        labels=pods.labels[rows],
        constraints=pods.constraints[rows],
        request=pods.request[rows],
        incoming_request=pods.incoming_request[rows],
        scored_request=pods.scored_request[rows],
        scored_incoming=pods.scored_incoming[rows],
        priority=pods.priority[rows],
        qos=pods.qos[rows],
        classes=tuple(pods.classes[row] for row in places),
        mirror=pods.mirror[rows],
        annotations=tuple(pods.annotations[row] for row in places),
        volumes=tuple(pods.volumes[row] for row in places),
        budgets=tuple(pods.budgets[row] for row in places),
        restart_policy=tuple(pods.restart_policy[row] for row in places),
        scheduling_group=tuple(pods.scheduling_group[row] for row in places),
        base=pods.usage[rows],
        startup_s=np.tile(np.array(STARTUP_S), (len(rows), 1)),
        shutdown_s=np.full(len(rows), SHUTDOWN_S),
        born_at=np.minimum(pods.created_at[rows], state.at),
        leaves_at=np.full(len(rows), np.inf),
    )


def _owners(state: ClusterState) -> OwnerColumns:
    workloads = state.workloads
    waits = [ref.kind in _WAIT or ref.kind.endswith("Job") for ref in workloads.refs]
    return OwnerColumns(
        refs=workloads.refs,
        uids=workloads.uids,
        renewal=np.where(waits, int(Renewal.WHEN_GONE), int(Renewal.AT_ONCE)).astype(np.int64),
        counted=np.isfinite(workloads.replicas),
        scaled_at=workloads.scaled_at.copy(),
        annotations=workloads.annotations,
        jobs=workloads.jobs,
        ordered=workloads.ordered.copy(),
    )
