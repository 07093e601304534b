"""The two deschedulers of the simulator that came with the FGD measure, as they are described: fragOnePod and fragMultiPod.

Nodes are taken in order of their fragmentation, the highest first. The victim of a node is the pod without which its fragmentation falls
most, and it must fall. fragOnePod takes one a node; fragMultiPod takes the best victim of all and looks at its node again. Both stop at
ceil(ratio * pods), and neither asks where its victims go.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.fragmented_fleet import Fleet, Measure
from rebalancer.state.arrays import FloatArray

LEAST = 1e-9


def frag_one_pod(fleet: Fleet, measure: Measure, *, ratio: float) -> list[int]:
    """Victims in order, at most one a node. The fleet stays as it is."""
    best = _best(fleet, measure, range(len(fleet.machines)))
    now = measure.of(fleet.cpu, fleet.left)
    ordered = [node for node in np.argsort(-now, kind="stable").tolist() if node in best]
    return [best[node][1] for node in ordered][: math.ceil(ratio * len(fleet.places))]


def frag_multi_pod(fleet: Fleet, measure: Measure, *, ratio: float) -> list[int]:
    """Victims in order."""
    trial, most = fleet.copy(), math.ceil(ratio * len(fleet.places))
    best, found = _best(trial, measure, range(len(fleet.machines))), list[int]()
    while best and len(found) < most:
        node = max(best, key=lambda each: (best[each][0], -each))
        victim = best.pop(node)[1]
        found.append(victim)
        trial.remove(victim)
        best.update(_best(trial, measure, (node,)))
    return found


def _best(fleet: Fleet, measure: Measure, nodes: range | tuple[int, ...]) -> dict[int, tuple[float, int]]:
    """Node -> how much its fragmentation falls without its best victim, and that. One pod of every node is taken out at a time: nodes do
    not depend on each other."""
    pods: dict[int, list[int]] = {node: [] for node in nodes}
    for row, (at, _) in sorted(fleet.places.items()):
        if at in pods:
            pods[at].append(row)
    now, found = measure.of(fleet.cpu, fleet.left), dict[int, tuple[float, int]]()
    for turn in range(max((len(own) for own in pods.values()), default=0)):
        out = {node: own[turn] for node, own in pods.items() if turn < len(own)}
        cpu, left = _without(fleet, list(out.values()))
        fallen = now - measure.of(cpu, left)
        for node, row in out.items():
            if fallen[node] > max(LEAST, found.get(node, (0.0, -1))[0] + LEAST):
                found[node] = (float(fallen[node]), row)
    return found


def _without(fleet: Fleet, rows: list[int]) -> tuple[FloatArray, FloatArray]:
    cpu, left = fleet.cpu.copy(), fleet.left.copy()
    for row in rows:
        at, chosen = fleet.places[row]
        cpu[at] += fleet.asks[row].cpu
        left[at, list(chosen)] += fleet.asks[row].share
    return cpu, left
