"""Where the pods are at the start: where the scheduler puts them when their workloads are rolled out one after the other."""

from __future__ import annotations

import numpy as np

from rebalancer.errors import ScenarioError
from rebalancer.plan.grades import SOFT_TAINTS
from rebalancer.policy.hotness import Metrics
from rebalancer.simulate.forward.chance import Stream, stream
from rebalancer.simulate.forward.gauges import Gauges, Lens, Timing
from rebalancer.simulate.forward.ground import Ground
from rebalancer.simulate.forward.observing import Observer, Surroundings
from rebalancer.simulate.forward.placing import Placing
from rebalancer.simulate.forward.pods import PodRows
from rebalancer.state.arrays import IntArray

NOT_YET = -2
"""Instead of a node: the slot's owner arrives later."""


def arrange(ground: Ground, *, seed: int) -> IntArray:
    """(slots,): node of each slot's first pod, `NOT_YET` for those that arrive later.

    Raises ScenarioError when a pod finds no node: the sizes of the scenario do not fit together.
    """
    rng, slots = stream(seed, Stream.ARRANGEMENT), ground.slots
    there = slots.born_at <= ground.start
    turn = rng.permutation(len(ground.owners.refs))
    order = np.argsort(turn[slots.owner], kind="stable")
    pods = PodRows(len(order))
    for place, slot in enumerate(order[there[order]].tolist()):
        pods.add(slot=slot, controller=int(slots.controller[slot]), name=slots.names[slot], created_at=float(place), first=True)
    nodes, signals = len(ground.nodes.names), len(ground.signals)
    gauges = Gauges(start=ground.start, timing=Timing(1.0, 0.0), lens=Lens(1.0, "mean", 1, 1.0), nodes=nodes, signals=signals, pods=1)
    observer = Observer(ground, pods, gauges, metrics=Metrics(), lens=Lens(1.0, "mean", 1, 1.0))
    around = Surroundings(ground.nodes.ready, np.zeros((nodes, len(SOFT_TAINTS)), dtype=np.bool_), {}, ground.controllers)
    view = observer.skeleton(ground.start, around)
    placed = np.full(len(slots.owner), NOT_YET, dtype=np.int64)
    for pod, node in Placing(rng).place(view.state):
        if node < 0:
            raise ScenarioError(
                f"spec.workloads: pod {view.state.pod_name(pod)} finds no node when the fleet is filled",
                remedy="lower the pods or their requests, or add nodes",
            )
        placed[pods.slot[view.rows[pod]]] = node
    return placed
