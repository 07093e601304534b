"""What node load annotations cost: `python -m benchmarks.annotations`.

First how often nodes are patched: an hour of looks over loads that wander and jump, decided by the very code that decides in a cycle, and
held against crane-scheduler's own annotator, which patches a node for each series. Then how fast patches go to the API server of the
embedded cluster, which runs in a process of its own, at the default rate and without one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.cycle import cluster_of, receive
from benchmarks.scene import Scene, Served
from rebalancer.act.annotating_nodes import AnnotatingNodes
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.resources import NODES
from rebalancer.state.arrays import FloatArray
from rebalancer.steer.annotation_work import NodePatch, Wanted, annotation_work
from rebalancer.steer.crane_policy import DEFAULT
from rebalancer.steer.dynamic import usage_in_force
from rebalancer.steer.load_annotations import DEFAULT_ZONE, read_nodes, zone_named
from rebalancer.steer.node_loads import NodeLoads

INTERVAL_S = 120.0
LOOKS = 30
START = 1_767_323_045.0
STOCK_PER_HOUR = 97.0
"""Patches of a node in an hour by crane-scheduler's annotator: 48.7 times a series is due, each time with the hot value."""


@dataclass(frozen=True, slots=True)
class Hour:
    """``patches``: of each look. ``stale``: series that a reader found stale at a look. ``deciding_s``: CPU of one look, on average."""

    nodes: int
    patches: tuple[int, ...]
    stale: int
    deciding_s: float

    @property
    def per_node(self) -> float:
        """Patches of a node in an hour, the first look not counted: it fills everything."""
        return sum(self.patches[1:]) / self.nodes / ((len(self.patches) - 1) * INTERVAL_S / 3600)


@dataclass(frozen=True, slots=True)
class Sent:
    """``patches`` in ``seconds``, of which this process used ``cpu_s``."""

    words: str
    patches: int
    seconds: float
    cpu_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.annotations", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000, metavar="N", help="nodes of the cluster")
    parser.add_argument("--seconds", type=float, default=15.0, metavar="S", help="how long patches are sent, each way")
    options = parser.parse_args(arguments)
    print(f"measuring {options.nodes:,} nodes ...", file=sys.stderr, flush=True)
    print(text(an_hour(options.nodes), sending(options.nodes, seconds=options.seconds)))
    return 0


def an_hour(nodes: int, *, seed: int = 7) -> Hour:
    """Looks every two minutes over nodes whose means wander by a point or so, and of which one in a hundred jumps."""
    random = np.random.default_rng(seed)
    wanted = Wanted(own=True, crane=True, zone=zone_named(DEFAULT_ZONE), crane_policy=DEFAULT, expiry_s=600.0, interval_s=INTERVAL_S)
    names = tuple(f"node-{number:05d}" for number in range(nodes))
    present: list[dict[str, str]] = [{} for _ in names]
    mean = random.uniform(0.1, 0.6, (nodes, 2))
    hour, day, hour_at, day_at = mean.copy(), mean.copy(), START, START
    everyone, nobody = np.ones(nodes, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
    patches: list[int] = []
    stale, deciding = 0, 0.0
    for look in range(LOOKS):
        at = START + look * INTERVAL_S
        jumps = random.random((nodes, 1)) < 0.01
        mean = np.clip(mean + random.normal(0, 0.01, mean.shape) + jumps * random.uniform(-0.2, 0.2, mean.shape), 0.01, 0.95)
        hour, day = np.maximum(hour, mean), np.maximum(day, mean)
        hour_at = at if at - hour_at >= 900 else hour_at
        loads = _loads(mean, hour, day, at=at, hour_at=hour_at, day_at=day_at)
        begun = time.process_time()
        work = annotation_work(names, present, loads, wanted, cared_for=everyone, leaving=nobody, crane_ours=everyone, at=at)
        deciding += time.process_time() - begun
        for patch in work.patches:
            present[patch.row] |= {key: value for key, value in patch.values.items() if value is not None}
        patches.append(len(work.patches))
        stale += int(np.isnan(usage_in_force(DEFAULT, read_nodes(present, zone=wanted.zone), now=at)).sum())
    return Hour(nodes, tuple(patches), stale, deciding / LOOKS)


def _loads(mean: FloatArray, hour: FloatArray, day: FloatArray, *, at: float, hour_at: float, day_at: float) -> NodeLoads:
    found = NodeLoads.unknown(len(mean))
    for column in range(2):
        found.mean[:, column], found.mean_at[:, column] = mean[:, column], at
        found.hour[:, column], found.hour_at[:, column] = hour[:, column], hour_at
        found.day[:, column], found.day_at[:, column] = day[:, column], day_at
    return replace(found, hot=np.zeros(len(mean)))


def sending(nodes: int, *, seconds: float) -> tuple[Sent, ...]:
    """Patches of eight annotations each to the embedded API server: at the default rate, and as fast as it takes them."""
    with cluster_of(Scene(nodes=nodes, pods=nodes, hot_nodes=0)) as cluster:
        served = receive(cluster, Served)
        client = KubeClient.connect(kubeconfig=Path(served.kubeconfig), context=None, timeout_s=60.0)
        try:
            names = [node.metadata.name for node in list_all(client, NODES, deadline=Deadline.after(60)).items]
            return (
                _sent("at 50 a second, 4 threads", client, names, seconds=seconds, hurry=False),
                _sent("without a rate, 8 threads", client, names, seconds=seconds, hurry=True),
            )
        finally:
            client.close()


def _sent(words: str, client: KubeClient, names: Sequence[str], *, seconds: float, hurry: bool) -> Sent:
    rows = range(len(names))
    loads = _loads(*(np.full((len(names), 2), 0.5) for _ in range(3)), at=START, hour_at=START, day_at=START)
    wanted = Wanted(own=True, crane=True, zone=zone_named(DEFAULT_ZONE), crane_policy=DEFAULT, expiry_s=600.0, interval_s=INTERVAL_S)
    flags = {
        "cared_for": np.ones(len(rows), np.bool_),
        "leaving": np.zeros(len(rows), np.bool_),
        "crane_ours": np.ones(len(rows), np.bool_),
    }
    patches: Sequence[NodePatch] = annotation_work(names, [{} for _ in rows], loads, wanted, at=START, **flags).patches
    begun, cpu = time.perf_counter(), time.process_time()
    done = AnnotatingNodes(client).write(patches, deadline=Deadline.after(seconds), hurry=hurry)
    return Sent(words, len(done.done), time.perf_counter() - begun, time.process_time() - cpu)


def text(hour: Hour, sent: Sequence[Sent]) -> str:
    """Lines for people."""
    per_second = hour.per_node * hour.nodes / 3600
    stock = STOCK_PER_HOUR * hour.nodes / 3600
    lines = [
        f"{hour.nodes:,} nodes, CPU and memory, a look every {INTERVAL_S:g} s",
        f"patches of a node in an hour  {hour.per_node:6.1f}   (the stock annotator: {STOCK_PER_HOUR:g})",
        f"patches of all in a second    {per_second:6.1f}   (the stock annotator: {stock:.0f})",
        f"series found stale            {hour.stale:6d}",
        f"deciding, a look              {hour.deciding_s * 1000:6.0f} ms of CPU",
    ]
    for each in sent:
        cpu_ms = 1000 * each.cpu_s / max(1, each.patches)
        lines.append(f"{each.words:<29} {each.patches / each.seconds:6.0f} patches a second, {cpu_ms:.2f} ms of CPU each")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
