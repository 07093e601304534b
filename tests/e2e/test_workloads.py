"""Workloads that need care: one that is being rolled out stays, the pods of a StatefulSet go one at a time and come back by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground, is_ready
from tests.e2e.hollow import NEVER_READY, HollowNode
from tests.e2e.objects import deployment, pod_spec, stateful_set, uses
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row
from tests.e2e.test_cure import HIGH, POLICY

TOWN = "e2e-workloads"
HOT = "node-0"
NODES = 4
CURE_S = 240.0
CYCLES_S = 30.0
"""Three cycles, with everything confirmed."""


@contextmanager
def hot_by(plane: ControlPlane, folder: Path, *manifests: Json, pods: int) -> Iterator[Ground]:
    """One node that these pods make hot, and three idle ones."""
    with ground(plane, folder, [HollowNode(f"node-{number}") for number in range(NODES)]) as own:
        own.namespace(TOWN)
        with own.only(HOT):
            own.apply(*manifests)
            own.settled(TOWN, pods)
        assert own.loads()[HOT] > HIGH
        yield own


def test_a_workload_that_is_rolled_out_stays_until_it_is_done(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Workloads: a Deployment whose rollout hangs is left alone, one beside it is moved."""
    spec = pod_spec(cpu="100m", memory="64Mi")
    rolled = deployment(
        "rolled", TOWN, spec, replicas=4, annotations=uses(cpu="800m"), strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    )
    steady = deployment("steady", TOWN, spec, replicas=2, annotations=uses(cpu="300m"))
    with hot_by(plane, tmp_path, rolled, steady, pods=6) as own:
        old = {pod["metadata"]["uid"] for pod in own.pods(TOWN, app="rolled")}
        hung = {"spec": {"template": {"metadata": {"annotations": {NEVER_READY: "true", **uses(cpu="10m")}}}}}
        own.api.patch("deployments", "rolled", hung, TOWN)
        until(lambda: len(own.pods(TOWN, app="rolled")) == 5, "the first pod of the new version")
        policy = own.policy(POLICY)
        with own.process("run", "--mode", "evict", "--policy", policy, "--listen", "127.0.0.1:0") as process:
            until(lambda: process.messages("move"), "a move of the steady one", seconds=CURE_S)
            time.sleep(CYCLES_S)
            plan = own.run("plan", "--mode", "evict", "--policy", policy, "-o", "json").ended(0).document
            moves = process.messages("move")
            assert process.terminate() == 0
        gates = {each["gate"] for each in plan["refused"] if each["pod"]["name"].startswith("rolled-")}
        scenario.shows(
            f"{len(moves)} moves, all of the steady one; pods of the other refused by {', '.join(sorted(gates)) or 'nobody asked'}"
        )
        assert {move["pod"].split("/")[1].rsplit("-", 2)[0] for move in moves} == {"steady"}
        assert own.loads()[HOT] > HIGH
        assert gates == {"rollout"}
        assert old <= {pod["metadata"]["uid"] for pod in own.pods(TOWN, app="rolled")}


@dataclass
class Ordinals:
    """Watches the pods of a StatefulSet from a thread of its own: how many were away at once, and which were."""

    ground: Ground
    replicas: int
    most_away: int = 0
    generations: dict[str, set[str]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Ordinals:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    @property
    def replaced(self) -> list[str]:
        return sorted(name for name, uids in self.generations.items() if len(uids) > 1)

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            pods = self.ground.pods(TOWN, app="data")
            for pod in pods:
                self.generations.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])
            self.most_away = max(self.most_away, self.replicas - sum(is_ready(pod) for pod in pods))


def test_a_stateful_set_moves_one_ordinal_at_a_time(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Workloads: a StatefulSet without a budget moves one ordinal at a time."""
    replicas = 6
    data = stateful_set("data", TOWN, pod_spec(cpu="100m", memory="64Mi"), replicas=replicas, annotations=uses(cpu="620m"))
    with hot_by(plane, tmp_path, data, pods=replicas) as own, Ordinals(own, replicas) as ordinals:
        with own.process("run", "--mode", "evict", "--policy", own.policy(POLICY), "--listen", "127.0.0.1:0") as process:
            try:
                until(lambda: own.loads()[HOT] <= HIGH and len(ordinals.replaced) > 1, "two ordinals moved", seconds=CURE_S, step=0.5)
            except AssertionError as error:
                raise AssertionError(f"{error}: {process.err.read_text()[-4000:]}") from error
            assert process.terminate() == 0
        own.settled(TOWN, replicas)
        evicted = [move for move in process.messages("move") if move["result"] == "evicted"]
        scenario.shows(f"{len(evicted)} moves ({', '.join(ordinals.replaced)} replaced), at most {ordinals.most_away} away at once")
        assert ordinals.most_away == 1
        assert len(evicted) == len(ordinals.replaced)
        assert set(ordinals.generations) == {f"data-{ordinal}" for ordinal in range(replicas)}
