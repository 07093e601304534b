"""Closed loop: `rebalancer run` against the real scheduler and the real Prometheus cures hot nodes, and then leaves the cluster alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HOLLOW, HollowNode
from tests.e2e.objects import budget, deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row

SHOP = "e2e-shop"
HIGH = 0.70
HOT = ("node-0", "node-1")
NODES = 8
BUSY = 6
"""Deployments of two replicas that use 0.55 cores and ask for 0.1."""
QUIET = 6
"""Deployments of two replicas that ask for 0.6 cores and more, and use 0.15: by requests their nodes are the full ones, no two alike."""
POLICY = f"""\
  mode: evict
  interval: 10s
  pools:
    - name: default
      nodeSelector: {{matchLabels: {{{HOLLOW}: "true"}}}}
      signals:
        cpu: {{low: 30, target: 55, high: {HIGH * 100:g}}}
        memory: {{low: 30, target: 70, high: 85}}
  metrics: {{window: 30s, maxAge: 30s, minCoverage: 50}}
  confirm: {{windows: 3, atLeast: 2, step: 10s}}
  budgets: {{window: 1m, total: 20, perNode: 4}}
  cooldown: {{workload: 30s, node: 10s}}
  victims: {{minAge: 0s}}
  breaker: {{pendingAfter: 1m}}
"""
CURE_S = 180.0
CALM_S = 60.0
"""How long the cured cluster is watched: six cycles."""
TAINT = "rebalancer.dev/hot"


@dataclass(frozen=True)
class Heated:
    ground: Ground
    policy: Path

    def taints(self) -> list[str]:
        """Hollow nodes that carry our taint."""
        nodes = self.ground.api.list("nodes", labelSelector=f"{HOLLOW}=true")
        return [node["metadata"]["name"] for node in nodes if any(each["key"] == TAINT for each in node["spec"].get("taints") or ())]

    def loads_are_fine(self) -> bool:
        return max(self.ground.loads().values()) <= HIGH


@pytest.fixture(scope="module")
def heated(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heated]:
    """Two nodes that are hot by use and empty by request; six that are full by request and idle."""
    folder = tmp_path_factory.mktemp("cure")
    with ground(plane, folder, [HollowNode(f"node-{number}") for number in range(NODES)]) as own:
        own.namespace(SHOP)
        busy = pod_spec(cpu="100m", memory="128Mi")
        with own.only(*HOT):
            own.apply(*(deployment(f"busy-{n}", SHOP, busy, replicas=2, annotations=uses(cpu="550m")) for n in range(BUSY)))
            own.settled(SHOP, 2 * BUSY)
        others = [node.name for node in own.hollow.nodes if node.name not in HOT]
        with own.only(*others):
            for n in range(QUIET):
                spec = pod_spec(cpu=f"{600 + 90 * n}m", memory=f"{400 + 150 * n}Mi")
                own.apply(deployment(f"quiet-{n}", SHOP, spec, replicas=2, annotations=uses(cpu="150m")))
            own.settled(SHOP, 2 * (BUSY + QUIET))
        own.apply(*(budget(f"busy-{n}", SHOP, app=f"busy-{n}", maxUnavailable=1) for n in range(BUSY)))
        yield Heated(ground=own, policy=own.policy(POLICY))


def test_hot_nodes_are_cured_and_stay_cured(heated: Heated, scenario: Row) -> None:
    """Cure: hot nodes are cured by `rebalancer run` and stay cured."""
    own = heated.ground
    before, loads = _by_uid(own.pods(SHOP)), own.loads()
    scenario.shows(f"before: {sum(load > HIGH for load in loads.values())} of {NODES} nodes hot, the worst at {max(loads.values()):.0%}")
    assert sum(load > HIGH for load in loads.values()) == len(HOT)
    with own.process("run", "--mode", "evict", "--policy", heated.policy, "--listen", "127.0.0.1:0") as process:
        started = time.monotonic()
        try:
            until(heated.loads_are_fine, "the hot nodes are cured", seconds=CURE_S, step=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error
        cured = time.monotonic() - started
        own.settled(SHOP, 2 * (BUSY + QUIET))
        moved = len(process.messages("move"))
        worst = _watch_calm(heated, seconds=CALM_S)
        own.settled(SHOP, 2 * (BUSY + QUIET))
        moves = process.messages("move")
        assert process.terminate() == 0
    after = _by_uid(own.pods(SHOP))
    arrived = [pod for uid, pod in after.items() if uid not in before]
    scenario.shows(
        f"cured in {cured:.0f} s by {moved} evictions; worst load in the {CALM_S:.0f} s after: {worst:.0%}, {len(moves) - moved} more"
    )
    planned = Counter((move["pod"].rpartition("-")[0].rpartition("-")[0], move["destination"]) for move in moves)
    landed = Counter((f"{SHOP}/{pod['metadata']['labels']['app']}", pod["spec"]["nodeName"]) for pod in arrived)
    scenario.shows(f"{(planned & landed).total()} of {len(arrived)} replacements on the node that was planned")
    assert worst <= HIGH
    assert len(moves) == moved, "evictions after the cure"
    assert len(arrived) == len(before.keys() - after.keys()) == moved
    assert not {pod["spec"]["nodeName"] for pod in arrived} & set(HOT)
    assert not heated.taints(), "our taints outlived the process"


def test_a_second_look_evicts_nobody(heated: Heated, scenario: Row) -> None:
    """Cure: a second look at the cured cluster evicts nobody."""
    own = heated.ground
    before = _by_uid(own.pods(SHOP)).keys()
    plan = own.run("plan", "--mode", "evict", "--policy", heated.policy, "-o", "json").ended(0).document
    own.run("run", "--once", "--mode", "evict", "--policy", heated.policy, "-o", "json").ended(0)
    scenario.shows(f"{len(plan['moves'])} moves planned: {plan['outcome']}")
    assert plan["moves"] == []
    assert _by_uid(own.pods(SHOP)).keys() == before


def _watch_calm(heated: Heated, *, seconds: float) -> float:
    """The worst true load of any node over a while."""
    worst, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        worst = max(worst, *heated.ground.loads().values())
        time.sleep(0.5)
    return worst


def _by_uid(pods: list[Json]) -> dict[str, Json]:
    return {pod["metadata"]["uid"]: pod for pod in pods}
