"""What must never be evicted is not, however hot its node: each refused by the gate that is meant for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import budget, daemon_set, deployment, mirror_pod, pod, pod_spec, uses
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row
from tests.e2e.test_cure import HIGH, POLICY

KEPT = "e2e-kept"
HOT = "node-0"
NODES = 4
EACH = uses(cpu="500m")
GATES = {
    "daemon": "daemonset",
    "bare": "bare-pod",
    "mirror": "mirror",
    "single": "replicas",
    "guarded": "disruption-budget",
    "refusing": "opt-out",
    "local": "local-storage",
}
"""Beginning of the pod's name -> the gate that refuses it."""
CYCLES_S = 75.0
"""Confirmation takes 40 s, so this is at least three cycles that would act."""


@dataclass(frozen=True)
class Kept:
    ground: Ground
    policy: Path


@pytest.fixture(scope="module")
def kept(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """One node that is hot by pods that nobody may move alone, and three idle ones that would take them."""
    folder = tmp_path_factory.mktemp("untouched")
    with ground(plane, folder, [HollowNode(f"node-{number}") for number in range(NODES)]) as own:
        own.namespace(KEPT)
        spec = pod_spec(cpu="100m", memory="64Mi")
        node = own.api.get("nodes", HOT)
        with own.only(HOT):
            own.apply(
                daemon_set("daemon", KEPT, {**spec, "nodeSelector": {"kubernetes.io/hostname": HOT}}, annotations=EACH),
                pod("bare", KEPT, spec, labels={"app": "bare"}, annotations=EACH),
                deployment("single", KEPT, spec, replicas=1, annotations=EACH),
                deployment("guarded", KEPT, spec, replicas=2, annotations=EACH),
                budget("guarded", KEPT, app="guarded", minAvailable=2),
                deployment("refusing", KEPT, spec, replicas=2, annotations={**EACH, "rebalancer.dev/evict": "false"}),
                deployment(
                    "local", KEPT, {**spec, "volumes": [{"name": "scratch", "emptyDir": {}}]}, replicas=2, annotations=uses(cpu="100m")
                ),
                mirror_pod("mirror", KEPT, spec, node=node, annotations=EACH),
            )
            own.settled(KEPT, 10)
        yield Kept(ground=own, policy=own.policy(POLICY))


def test_protected_pods_stay_where_they_are(kept: Kept, scenario: Row) -> None:
    """Protection: DaemonSet, bare, mirror, single-replica, budgeted, opted-out and local-storage pods stay on a hot node."""
    own = kept.ground
    before = {each["metadata"]["uid"] for each in own.pods(KEPT)}
    scenario.shows(f"{len(before)} protected pods make {HOT} hot: {own.loads()[HOT]:.0%}")
    assert own.loads()[HOT] > HIGH
    with own.process("run", "--mode", "evict", "--policy", kept.policy, "--listen", "127.0.0.1:0") as process:
        time.sleep(CYCLES_S)
        assert process.popen.poll() is None, process.err.read_text()[-3000:]
        plan = own.run("plan", "--mode", "evict", "--policy", kept.policy, "-o", "json").ended(0).document
        moves, cycles = process.messages("move"), process.messages("cycle")
        assert process.terminate() == 0
    now = {each["metadata"]["uid"] for each in own.pods(KEPT)}
    refused = {each["pod"]["name"]: each["gate"] for each in plan["refused"] if each["pod"]["namespace"] == KEPT}
    scenario.shows(f"{len(cycles)} cycles, {len(moves)} evictions; refused by {', '.join(sorted(set(refused.values())))}")
    assert now == before
    assert not moves
    assert not plan["moves"]
    assert {name.partition("-")[0]: gate for name, gate in refused.items()} == GATES
