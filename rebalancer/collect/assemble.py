"""From API objects and samples to the one state that a cycle decides on.

The order follows what needs what: nodes, then pods with their owners and ties, then the two axes, then the load of nodes and pods. Every
object that could not be read and every sample that belongs to nothing is counted in the coverage, never passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.budgets import budgets_by_labels, budgets_of
from rebalancer.collect.claims import Claims
from rebalancer.collect.cluster import ClusterObjects
from rebalancer.collect.coverage import Gaps, coverage
from rebalancer.collect.deviations import LONG_ENOUGH, deviation_columns, with_typical
from rebalancer.collect.estimates import PodAges, with_estimates
from rebalancer.collect.gangs.table import gang_classes, gang_table
from rebalancer.collect.gpu.assembling import NO_WORDS, GpuPods, GpuWords, assemble_gpus
from rebalancer.collect.gpu.signals import Filled, filled
from rebalancer.collect.node_table import NodeAmounts, allocatable_matrix, build_nodes, capacity_matrix, read_amounts, sorted_nodes
from rebalancer.collect.owners import Owners
from rebalancer.collect.pod_columns import Number, PodColumns
from rebalancer.collect.pod_requests import RequestMatrices
from rebalancer.collect.pod_rows import Character, Standing, Ties, character, standing, ties
from rebalancer.collect.pod_samples import PodRows
from rebalancer.collect.pod_table import PodTable
from rebalancer.collect.samples import PodKey, Samples
from rebalancer.collect.usage_columns import NodeUsageColumns, PodUsageColumns, node_columns, pod_columns
from rebalancer.collect.workload_table import Ownership, build_workloads, ownership
from rebalancer.gpu.telling import notes_of
from rebalancer.kube.wire import NodeWire
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Gpus
from rebalancer.state.freezing import freeze
from rebalancer.state.gangs import Gangs
from rebalancer.state.tables import Budget, Phase, Pods

NATIVE = ("cpu", "memory", "ephemeral-storage", "pods")
SAMPLES_ARE_LATE_S = 180.0
"""How long a pod may be without a sample after its first whole window before that counts as unknown: the policy's default maxAge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodParts:
    """The pod table before it is put together."""

    columns: PodColumns
    standing: Standing
    owned: Ownership
    character: Character
    ties: Ties
    requests: RequestMatrices
    gangs: Gangs
    gang_notes: tuple[str, ...]


def assemble(
    objects: ClusterObjects, samples: Samples, *, at: float, late_s: float = SAMPLES_ARE_LATE_S, gpus: GpuWords = NO_WORDS
) -> ClusterState:
    """The state at ``at`` (unix seconds). ``late_s``: how late samples of pods may be (the policy's maxAge). ``gpus``: what is told of GPUs
    beside the objects."""
    node_wires = sorted_nodes(objects.nodes)
    node_index = {wire.metadata.name: row for row, wire in enumerate(node_wires)}
    found = read_amounts(node_wires)
    columns = objects.columns or PodTable().read(objects.pods)
    asked_for = columns.requests.names(columns.numbers[Number.REQUEST])
    resources = (*NATIVE, *sorted((found.names | asked_for).difference(NATIVE)))
    parts = _pod_parts(objects, columns, node_index, resources)
    capacity = capacity_matrix(tuple(node_index), found, samples)
    node_usage = node_columns(tuple(node_index), samples, capacity=capacity)
    rows = PodRows(_active_rows(parts))
    pod_usage = pod_columns(rows, parts.standing.node, nodes=node_index, samples=samples, capacity=capacity)
    deviation = deviation_columns(rows, parts.standing.node, nodes=node_index, signals=samples.signals)
    tables = _gpus(objects, parts, node_wires, words=gpus, at=at)
    full = filled(
        tables,
        gpus,
        samples,
        names=tuple(node_index),
        node=parts.standing.node,
        active=parts.standing.active,
        capacity=capacity,
        nodes=node_usage,
        pods=pod_usage,
    )
    nodes = build_nodes(
        node_wires,
        allocatable=allocatable_matrix(found, resources),
        capacity=full.capacity,
        usage=full.nodes,
        departed=pod_usage.departed,
    )
    ages = _ages(parts.standing, at=at, window_s=samples.window_s, late_s=late_s)
    budgets = budgets_of(objects.budgets)
    pods = _build_pods(parts, full, deviation, ages=ages, budgets=budgets, samples=samples, resources=resources)
    serving = parts.standing.active & ~parts.standing.terminating & (parts.standing.phase == int(Phase.RUNNING))
    gaps = _gaps(objects, parts, found, node_usage, pod_usage)
    state = ClusterState(
        cluster=objects.cluster,
        at=at,
        resources=resources,
        signals=tuple(signal.signal for signal in samples.signals),
        nodes=nodes,
        pods=pods,
        workloads=build_workloads(parts.owned, objects.autoscalers, pod_ready=parts.standing.ready, pod_counts=serving),
        budgets=budgets,
        label_sets=parts.ties.label_sets,
        constraints=parts.ties.constraint_values,
        controllers=parts.owned.controllers,
        namespaces={wire.metadata.name: wire.metadata.labels or {} for wire in objects.namespaces},
        priorities={wire.metadata.name: wire.value for wire in objects.priority_classes},
        tenants=(),
        coverage=coverage(nodes, pods, samples, ages=ages, gaps=gaps, more_notes=(*notes_of(tables), *parts.gang_notes)),
        window_s=samples.window_s,
        step_s=samples.step_s,
        gpus=tables,
        gangs=parts.gangs,
    )
    return freeze(state)


def _gpus(objects: ClusterObjects, parts: _PodParts, nodes: Sequence[NodeWire], *, words: GpuWords, at: float) -> Gpus:
    said = parts.columns.gpus
    pods = GpuPods(
        rows=said.rows,
        keys=tuple(parts.columns.keys[row] for row in said.rows.tolist()),
        records=said.records,
        number=parts.columns.numbers[Number.GPU][said.rows],
        node=parts.standing.node[said.rows],
        active=parts.standing.active[said.rows],
    )
    return assemble_gpus(pods, nodes, objects.gpus, words=words, at=at, memo=said.memo)


def _pod_parts(objects: ClusterObjects, columns: PodColumns, node_index: Mapping[str, int], resources: Sequence[str]) -> _PodParts:
    requests = columns.requests.matrices(columns.numbers[Number.REQUEST], resources)
    owned, where = ownership(columns, Owners(objects)), standing(columns, node_index)
    unfinished = np.asarray((where.phase != int(Phase.SUCCEEDED)) & (where.phase != int(Phase.FAILED)), dtype=np.bool_)
    gangs, notes = gang_table(columns.marked(), objects.gangs, objects.jobs, unfinished=unfinished)
    requested = np.asarray((requests.incoming[:, :2] > 0).any(axis=1), dtype=np.bool_)
    return _PodParts(
        columns=columns,
        standing=where,
        owned=owned,
        character=character(columns, owned, requested, training=gang_classes(gangs)),
        ties=ties(columns, Claims(objects.claims, objects.volumes)),
        requests=requests,
        gangs=gangs,
        gang_notes=notes,
    )


def _active_rows(parts: _PodParts) -> Mapping[PodKey, int]:
    """Only pods that use a node now can own a sample; what is measured of the others has left."""
    active = parts.standing.active.tolist()
    return {key: row for row, key in enumerate(parts.columns.keys) if active[row]}


def _ages(where: Standing, *, at: float, window_s: float, late_s: float) -> PodAges:
    since = np.where(np.isnan(where.started_at), where.created_at, where.started_at)
    return PodAges(active=where.active, age_s=at - since, window_s=window_s, late_s=late_s)


def _build_pods(
    parts: _PodParts,
    full: Filled,
    deviation: FloatArray,
    *,
    ages: PodAges,
    budgets: Sequence[Budget],
    samples: Samples,
    resources: Sequence[str],
) -> Pods:
    own, where, owned, what, tied = parts.columns, parts.standing, parts.owned, parts.character, parts.ties
    signals = tuple(each.signal for each in samples.signals)
    asked = [_asked(parts, signal.resource, resources) for signal in signals]
    measured = full.pods.measured
    usage, estimated = with_estimates(measured, ages=ages, workload=owned.workload, signals=signals, asked=asked)
    long_enough = ages.active & (ages.age_s >= LONG_ENOUGH * samples.deviation_s)
    by_labels = budgets_by_labels(budgets, tied.label_sets)
    return Pods(
        uids=own.uids,
        names=own.names,
        namespaces=own.namespaces,
        node=where.node,
        workload=owned.workload,
        controller=owned.controller,
        tenant=np.full(len(own.uids), -1, dtype=np.int64),
        labels=tied.labels,
        constraints=tied.constraints,
        request=parts.requests.request,
        incoming_request=parts.requests.incoming,
        scored_request=parts.requests.scored,
        scored_incoming=parts.requests.scored_incoming,
        measured=measured,
        usage=usage,
        estimated=estimated | full.estimated,
        deviation=with_typical(deviation, usage=usage, workload=owned.workload, long_enough=long_enough),
        priority=what.priority,
        qos=what.qos,
        phase=where.phase,
        ready=where.ready,
        terminating=where.terminating,
        created_at=where.created_at,
        started_at=where.started_at,
        ready_after=where.ready_after,
        classes=what.classes,
        mirror=what.mirror,
        annotations=own.annotations,
        volumes=own.volumes,
        budgets=tuple(map(by_labels.__getitem__, tied.labels.tolist())),
        restart_policy=own.restart_policies,
        scheduling_group=own.groups,
    )


def _asked(parts: _PodParts, resource: str | None, resources: Sequence[str]) -> FloatArray | None:
    """(pods,): the request that stands in for a missing measurement; the scheduler's default where nothing is requested, else unknown."""
    if resource is None or resource not in resources:
        return None
    column = resources.index(resource)
    asked = parts.requests.request[:, column]
    if column < parts.requests.scored.shape[1]:
        asked = np.maximum(asked, parts.requests.scored[:, column])
    return np.where(asked > 0, asked, np.nan)


def _gaps(objects: ClusterObjects, parts: _PodParts, found: NodeAmounts, of_nodes: NodeUsageColumns, of_pods: PodUsageColumns) -> Gaps:
    return Gaps(
        odd=objects.odd,
        unreadable_pods=tuple("/".join(key) for key in parts.columns.unreadable),
        homeless_pods=int(parts.standing.lost.sum()),
        bad_class_words=parts.character.bad_class_words,
        amounts=found,
        dropped=Counter(of_nodes.dropped) + Counter(of_pods.dropped),
    )
