"""Requests against what is free: cpu, memory, the number of pods, and every extended resource.

Only resources with a request above 0 are asked for, so a node that is over-committed on cpu still takes a pod that requests none.
An unknown amount on either side fits nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.units import format_bytes, format_cores

PODS = "pods"


def _asked(replacement: Replacement) -> IntArray:
    """Columns with a request above 0 or unknown, the number of pods first, as the scheduler checks it."""
    columns = np.flatnonzero(replacement.placements.incoming_units(replacement.pod) != 0)
    pods = replacement.state.resource_index.get(PODS, -1)
    return np.concatenate((columns[columns == pods], columns[columns != pods]))


def passes(replacement: Replacement) -> Verdict:
    placements = replacement.placements
    asked, request = _asked(replacement), placements.incoming_units(replacement.pod)
    fits = placements.known.copy()
    for column in asked.tolist():
        fits &= placements.free_units[:, column] >= request[column]
    if (at := replacement.vacated) >= 0:
        fits[at] = placements.known[at] and bool((_free_units(replacement, np.array([at]))[:, asked] >= request[asked]).all())
    return fits


def _free_units(replacement: Replacement, nodes: IntArray) -> FloatArray:
    """(nodes, resources) as the replacement meets them: without the pod itself where that is gone."""
    placements = replacement.placements
    free = placements.free_units[nodes]
    free[nodes == replacement.vacated] += placements.bound_units(replacement.pod)
    return free


def _first_scarce(replacement: Replacement, nodes: IntArray) -> IntArray:
    """(nodes,) column of the first resource that is short on each of the rejected nodes."""
    asked, request = _asked(replacement), replacement.placements.incoming_units(replacement.pod)
    if not asked.size:
        return np.zeros(len(nodes), dtype=np.int64)
    short = ~(_free_units(replacement, nodes)[:, asked] >= request[asked])
    first: IntArray = asked[np.argmax(short, axis=1)]
    return first


def reason(replacement: Replacement, node: int) -> str:
    placements = replacement.placements
    if not placements.known[node]:
        return f"The requests on node {replacement.state.nodes.names[node]} are not known"
    column = int(_first_scarce(replacement, np.array([node], dtype=np.int64))[0])
    name = replacement.state.resources[column]
    if name == PODS:
        return (
            f"Too many pods: {placements.pod_count[node] - (node == replacement.vacated)} of {placements.allocatable_units[node, column]:g}"
        )
    needs = float(placements.incoming_units(replacement.pod)[column] / placements.scale[column])
    free = float(_free_units(replacement, np.array([node]))[0, column] / placements.scale[column])
    of = float(placements.allocatable_units[node, column] / placements.scale[column])
    return f"Insufficient {name}: needs {_amount(name, needs)}, {_amount(name, free)} free of {_amount(name, of)}"


def _amount(resource: str, value: float) -> str:
    if resource == "cpu":
        return format_cores(value)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_bytes(value)
    return "?" if np.isnan(value) else f"{value:g}"


def parts(replacement: Replacement, rejected: BoolArray) -> Mapping[str, int]:
    columns, counts = np.unique(_first_scarce(replacement, np.flatnonzero(rejected)), return_counts=True)
    names = replacement.state.resources
    return {names[column]: count for column, count in zip(columns.tolist(), counts.tolist(), strict=True)}


FILTER = Filter(
    name="resources",
    order=70,
    describe="A request is above what is free of that resource on the node, or the node has its number of pods.",
    passes=passes,
    reason=reason,
    parts=parts,
)
