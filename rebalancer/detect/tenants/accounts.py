"""What each tenant asks for, uses, is guaranteed and entitled to, borrows, wastes and waits for: one row a tenant, one column a resource.

Requests of pods that are on a node and not finished are held; those of pods on no node are pending. Use is summed over the pods whose use
is known, and the share of what is held that it was measured for stands beside it. Waste compares only those pods with what they asked for;
an unmeasured pod wastes nothing that anybody knows of. A tenant above others holds what those below it hold.

GPUs are devices: ``gpu`` of any model, ``gpu/MODEL`` of one. A pod that waits asks for a model only if its ask names exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.detect.tenants.entitlement import TenantTree, dominant_shares, entitlements
from rebalancer.policy.tenants import GPU, GPU_MODEL, TenantSpec
from rebalancer.policy.tenants_in_force import TenantNow, tenants_in_force
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node
from rebalancer.state.tables import Phase

ALWAYS = ("cpu", "memory")
_MEASURED = {"cpu": "cpu", "memory": "memory"}


@dataclass(frozen=True)
class PodAmounts:
    """Of every pod, (pods, resources); NaN unknown."""

    resources: tuple[str, ...]
    requested: FloatArray
    used: FloatArray
    """NaN where it is not measured, and for resources that nobody measures."""
    holding: BoolArray
    """(pods,) on a node and not finished."""
    pending: BoolArray
    """(pods,) waiting for a node."""


@dataclass(frozen=True)
class Accounts:
    """Matrices (tenants, resources), rows as in ``tree``; NaN unknown."""

    tree: TenantTree
    resources: tuple[str, ...]
    capacity: FloatArray
    """(resources,)"""
    requested: FloatArray
    pending: FloatArray
    used: FloatArray
    measured: FloatArray
    """Share of what is requested by pods whose use is known; NaN where nothing is requested."""
    entitled: FloatArray
    borrowed: FloatArray
    """Beyond the guarantee."""
    wasted: FloatArray
    """Requested and not used, by pods whose use is known."""
    dominant: FloatArray
    """(tenants,) dominant share over weight."""
    pods: IntArray
    pending_pods: IntArray
    oldest_pending_s: FloatArray
    """(tenants,) NaN where nobody waits."""


def resources_of(state: ClusterState, tenants: Sequence[TenantNow]) -> tuple[str, ...]:
    """cpu, memory, gpu and its models where there are any, and what the file names besides."""
    named = {name for tenant in tenants for part in (tenant.guaranteed, tenant.limit, tenant.floor) for name in part}
    devices = state.gpus.devices
    models = {f"{GPU_MODEL}{model}" for model in devices.models if model}
    gpus = {GPU, *models} if len(devices) or len(state.gpus.pod) else set()
    return (*ALWAYS, *sorted((named | gpus).difference(ALWAYS)))


def capacity_of(state: ClusterState, resources: Sequence[str]) -> FloatArray:
    """(resources,) of all nodes together; 0 for what no node has, NaN where a node does not tell."""
    devices = state.gpus.devices
    found = np.zeros(len(resources))
    for column, name in enumerate(resources):
        if name == GPU:
            found[column] = len(devices)
        elif name.startswith(GPU_MODEL):
            found[column] = sum(model == name.removeprefix(GPU_MODEL) for model in devices.models)
        elif name in state.resource_index:
            found[column] = float(state.nodes.allocatable[:, state.resource_index[name]].sum())
    return found


def in_force(state: ClusterState, spec: TenantSpec) -> tuple[TenantNow, ...]:
    """The tenants of a file by the quotas at the moment of the state; shares are of what the cluster has."""
    if not spec.tenants:
        return ()
    resources = resources_of(state, tenants_in_force(spec, at=state.at, capacity={}))
    capacity = dict(zip(resources, capacity_of(state, resources).tolist(), strict=True))
    return tenants_in_force(spec, at=state.at, capacity=capacity)


def tree_of(tenants: Sequence[TenantNow], resources: Sequence[str]) -> TenantTree:
    def matrix(part: str, default: float) -> FloatArray:
        return np.array([[getattr(each, part).get(name, default) for name in resources] for each in tenants]).reshape(
            len(tenants), len(resources)
        )

    return TenantTree(
        names=tuple(each.name for each in tenants),
        parent=np.array([each.parent for each in tenants], dtype=np.int64),
        weight=np.array([each.weight for each in tenants], dtype=np.float64),
        priority=np.array([each.priority for each in tenants], dtype=np.int64),
        borrow=np.array([each.borrow for each in tenants], dtype=np.bool_),
        guaranteed=matrix("guaranteed", 0.0),
        limit=matrix("limit", np.inf),
        floor=matrix("floor", 0.0),
    )


def pod_amounts(state: ClusterState, resources: Sequence[str]) -> PodAmounts:
    pods, count = state.pods, len(state.pods.names)
    requested, used = np.zeros((count, len(resources))), np.full((count, len(resources)), np.nan)
    for column, name in enumerate(resources):
        if name == GPU or name.startswith(GPU_MODEL):
            requested[:, column] = _gpus(state, name)
            if name == GPU:
                used[:, column] = _gpu_use(state)
        elif name in state.resource_index:
            requested[:, column] = pods.request[:, state.resource_index[name]]
        signal = state.signal_index.get(_MEASURED.get(name, ""), -1)
        if signal >= 0:
            used[:, column] = np.where(pods.estimated[:, signal], np.nan, pods.measured[:, signal])
    holding = on_a_node(state)
    pending = (pods.node < 0) & (pods.phase == int(Phase.PENDING)) & ~pods.terminating
    return PodAmounts(tuple(resources), requested, used, holding, np.asarray(pending, dtype=np.bool_))


def _gpus(state: ClusterState, name: str) -> FloatArray:
    """(pods,) devices that each asks for; of a model, those that it holds of it, or for which it waits by name."""
    gpus, count = state.gpus, np.zeros(len(state.pods.names))
    per_ask = np.array([sum(ask.gpus for ask in asks) for asks in gpus.asks], dtype=np.float64)
    total = per_ask[gpus.ask] if len(gpus.ask) else np.zeros(0)
    if name == GPU:
        count[gpus.pod] = total
        return count
    model = name.removeprefix(GPU_MODEL)
    by_node = {int(node): gpus.devices.models[row] for row, node in enumerate(gpus.devices.node.tolist())}
    named = [{one for ask in asks for one in ask.model.models} for asks in gpus.asks]
    for row, (pod, ask) in enumerate(zip(gpus.pod.tolist(), gpus.ask.tolist(), strict=True)):
        node = int(state.pods.node[pod])
        of = by_node.get(node, "") if node >= 0 else next(iter(named[ask])) if len(named[ask]) == 1 else ""
        if of == model:
            count[pod] = total[row]
    return count


def _gpu_use(state: ClusterState) -> FloatArray:
    """(pods,) devices that each keeps busy; NaN unless measured of the pod itself on all that it holds."""
    gpus = state.gpus
    found = np.full(len(state.pods.names), np.nan)
    if len(gpus.held_use):
        own = np.where(gpus.held_use.estimated, np.nan, gpus.held_use.busy)
        sums = np.bincount(gpus.held.pod, weights=own, minlength=len(found))
        found[gpus.held.pod] = sums[gpus.held.pod]
        found[gpus.unplaced] = np.nan
    return found


def accounts_of(state: ClusterState, tenants: Sequence[TenantNow], *, amounts: PodAmounts | None = None) -> Accounts:
    """``state``: with the tenants of the same file (`membership.with_tenants`). ``tenants``: in force at the moment of the state."""
    resources = resources_of(state, tenants) if amounts is None else amounts.resources
    found = pod_amounts(state, resources) if amounts is None else amounts
    tree, capacity = tree_of(tenants, resources), capacity_of(state, resources)
    row_of = _rows(state, tree)
    owner = np.append(row_of, -1)[state.pods.tenant]
    holding, pending = found.holding & (owner >= 0), found.pending & (owner >= 0)
    requested, waiting = _sums(tree, owner, holding, found.requested), _sums(tree, owner, pending, found.requested)
    known = ~np.isnan(found.used)
    used = _sums(tree, owner, holding, np.where(known, found.used, 0.0))
    measured_request = _sums(tree, owner, holding, np.where(known, found.requested, 0.0))
    wasted = _sums(tree, owner, holding, np.where(known, np.maximum(0.0, found.requested - np.nan_to_num(found.used)), 0.0))
    some = measured_request > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = np.where(requested > 0, measured_request / requested, np.nan)
    return Accounts(
        tree=tree,
        resources=tuple(resources),
        capacity=capacity,
        requested=requested,
        pending=waiting,
        used=np.where(some, used, np.nan),
        measured=measured,
        entitled=entitlements(tree, demand=requested + waiting, capacity=capacity),
        borrowed=np.maximum(0.0, requested - tree.guaranteed),
        wasted=np.where(some, wasted, np.nan),
        dominant=dominant_shares(requested, capacity=capacity, weight=tree.weight),
        pods=_counts(tree, owner, holding),
        pending_pods=_counts(tree, owner, pending),
        oldest_pending_s=_oldest(state, tree, owner, pending),
    )


def _rows(state: ClusterState, tree: TenantTree) -> IntArray:
    """(tenants of the state,) row in the tree; -1 for one that the file does not have."""
    index: Mapping[str, int] = {name: row for row, name in enumerate(tree.names)}
    return np.array([index.get(name, -1) for name in state.tenants], dtype=np.int64)


def _upwards(tree: TenantTree, values: FloatArray) -> FloatArray:
    for row in range(len(tree.names) - 1, -1, -1):
        if tree.parent[row] >= 0:
            values[tree.parent[row]] += values[row]
    return values


def _sums(tree: TenantTree, owner: IntArray, mask: BoolArray, values: FloatArray) -> FloatArray:
    """An unknown request makes the sum unknown."""
    rows = np.flatnonzero(mask)
    total = np.zeros((len(tree.names), values.shape[1]))
    for column in range(values.shape[1]):
        total[:, column] = np.bincount(owner[rows], weights=values[rows, column], minlength=len(tree.names))
    return _upwards(tree, total)


def _counts(tree: TenantTree, owner: IntArray, mask: BoolArray) -> IntArray:
    counted = np.bincount(owner[mask], minlength=len(tree.names)).astype(np.float64)[:, None]
    return np.asarray(_upwards(tree, counted)[:, 0], dtype=np.int64)


def _oldest(state: ClusterState, tree: TenantTree, owner: IntArray, pending: BoolArray) -> FloatArray:
    oldest = np.full(len(tree.names), -np.inf)
    np.maximum.at(oldest, owner[pending], state.at - state.pods.created_at[pending])
    for row in range(len(tree.names) - 1, -1, -1):
        if tree.parent[row] >= 0:
            oldest[tree.parent[row]] = max(oldest[tree.parent[row]], oldest[row])
    return np.where(np.isneginf(oldest), np.nan, oldest)
