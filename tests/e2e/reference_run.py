"""One contender's minutes in the reference town: fill the cluster, let Prometheus learn it, let the contender work, watch the truth."""

from __future__ import annotations

import contextlib
import re
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rebalancer.state.arrays import FloatArray, IntArray
from tests.e2e.api import Api, Json, path, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HOLLOW
from tests.e2e.plane import ControlPlane
from tests.e2e.reference_course import HOT, Course
from tests.e2e.reference_town import Town
from tests.e2e.reference_traffic import Arrival, Traffic
from tests.support.embedded import Process

SCHEDULER = "kube-scheduler"
FILL_S = 300.0
SAMPLE_S = 0.5
LANDINGS = re.compile(r'^rebalancer_move_landing_total\{result="([a-z-]+)"\} (\S+)$', re.MULTILINE)
POLICY = f"""\
  mode: evict
  interval: 15s
  pools:
    - name: default
      nodeSelector: {{matchLabels: {{{HOLLOW}: "true"}}}}
      signals:
        cpu: {{low: 40, target: 60, high: {HOT * 100:g}}}
        memory: {{low: 50, target: 80, high: 90}}
  metrics: {{window: 30s, maxAge: 30s}}
  confirm: {{windows: 3, atLeast: 2, step: 10s}}
  risk: {{deviations: {{deviations:g}}, lookback: 5m, step: 30s}}
  budgets: {{window: 10m, total: 20, perNode: 5}}
  cooldown: {{workload: 1m, node: 15s}}
  victims: {{minAge: 30s}}
  gain: {{minRelative: 30}}
  steering: {{softTaint: {{soft_taint}}}}
  breaker: {{pendingAfter: 1m}}
"""
"""Cycles of 15 seconds, windows of 30, the least that a policy may have. The budget is for ten minutes, so for the whole run. A move
must cure nearly a third of what is too much on its node: a budget so small is not to be spent on small pods."""
BELIEVED_S = 150.0
"""Half of the lookback: younger pods have no deviation of their own."""


@dataclass(frozen=True)
class Contender:
    """``spec``: of the policy; None does nothing. ``env``: settings of the controller beside those of the ground."""

    name: str
    spec: str | None
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the namespaces whose pods it works on."""
    beside: Callable[[Ground], AbstractContextManager[object]] = nullcontext
    """What runs beside it in the cluster, from before the warm-up to after its end."""


def rebalancer(name: str, *, deviations: float = 1.0, soft_taint: bool = True) -> Contender:
    said = {"{deviations:g}": f"{deviations:g}", "{soft_taint}": str(soft_taint).lower()}
    spec = POLICY
    for placeholder, value in said.items():
        spec = spec.replace(placeholder, value)
    return Contender(name, spec)


NOTHING = Contender("doing nothing", None)
WITHOUT_TAINTS = rebalancer("rebalancer, no soft taints", soft_taint=False)
REBALANCER = rebalancer("rebalancer")


def live(
    plane: ControlPlane,
    folder: Path,
    town: Town,
    contender: Contender,
    *,
    seconds: float,
    warm_up_s: float = BELIEVED_S,
    placement: IntArray | None = None,
) -> Course:
    """``placement``: begin there instead of where the scheduler puts the pods; needs a plane whose scheduler may be stopped.

    The contender begins at 0 of the town's time and ends after ``seconds``. Whoever does nothing needs no metrics and no warm-up.
    """
    watched = contender.spec is not None
    traffic = Traffic(town, begins_at=-warm_up_s if watched else 0.0)
    folder.mkdir(parents=True, exist_ok=True)
    with ground(plane, folder, town.nodes, load=traffic, monitored=watched) as own:
        _fill(own, town, traffic, placement, labels=contender.labels)
        began_on = _placement(town, traffic.arrivals)
        with contender.beside(own):
            traffic.begin()
            time.sleep(max(0.0, -traffic.now))
            with _working(own, contender) as worker:
                times, loads = _watch(own, traffic, seconds=seconds)
                said = worker.said() if worker else {}
        idle = np.array([town.loads(began_on, at) for at in times.tolist()])
        return Course(name=contender.name, times=times, loads=loads, idle=idle, landed=_landed(town, traffic), **said)


# ---- before -----------------------------------------------------------------------------------------------------------


def _fill(own: Ground, town: Town, traffic: Traffic, placement: IntArray | None, *, labels: Mapping[str, str]) -> None:
    """Until every slot has a running pod, and every budget is counted."""
    for namespace in town.namespaces:
        own.namespace(namespace, labels=labels)
    if placement is None:
        _roll_out(own, town)
    else:
        with _no_scheduler(own.plane):
            _roll_out(own, town)
            _bind(own.api, town, traffic, placement)
    until(lambda: len(traffic.arrivals) == town.pods, f"{town.pods} running pods", seconds=FILL_S, step=0.5)
    until(lambda: _counted(own.api, town), "the budgets are counted", seconds=FILL_S, step=0.5)


def _roll_out(own: Ground, town: Town) -> None:
    for deployment, budget in town.manifests():
        own.apply(deployment, budget)


@contextlib.contextmanager
def _no_scheduler(plane: ControlPlane) -> Iterator[None]:
    scheduler = plane.programs[SCHEDULER]
    scheduler.stop()
    try:
        yield
    finally:
        scheduler.start()


def _bind(api: Api, town: Town, traffic: Traffic, placement: IntArray) -> None:
    """What a scheduler does, with the same end each time."""
    until(lambda: sum(len(api.list("pods", name)) for name in town.namespaces) == town.pods, "the pods", seconds=FILL_S, step=1.0)
    for namespace in town.namespaces:
        pods = dict[str, list[Json]]()
        for pod in sorted(api.list("pods", namespace), key=lambda pod: str(pod["metadata"]["name"])):
            pods.setdefault(pod["metadata"]["labels"]["app"], []).append(pod)
        for app, siblings in pods.items():
            for slot, pod in zip(town.slots[namespace, app], siblings, strict=True):
                meta = pod["metadata"]
                traffic.reserve(meta["uid"], slot)
                target = {"kind": "Node", "name": town.nodes[placement[slot]].name}
                body: Json = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
                api.request("POST", path("pods", namespace, meta["name"], "binding"), body)


def _counted(api: Api, town: Town) -> bool:
    found = [each for name in town.namespaces for each in api.list("poddisruptionbudgets", name)]
    return len(found) == len(town.crops) and all(each.get("status", {}).get("disruptionsAllowed", 0) >= 1 for each in found)


def _placement(town: Town, arrivals: Sequence[Arrival]) -> IntArray:
    row = {node.name: number for number, node in enumerate(town.nodes)}
    found = np.full(town.pods, -1, dtype=np.int64)
    for arrival in arrivals:
        found[arrival.slot] = row[arrival.node]
    assert (found >= 0).all(), "a slot has no pod at the start"
    return found


# ---- meanwhile --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Worker:
    process: Process
    address: str

    def said(self) -> dict[str, Any]:
        """What it has logged and counted until now."""
        process = self.process
        moves = [line for line in process.messages("move") if line["result"] == "evicted"]
        trouble = [str(line) for line in process.logs if line.get("level") in ("warning", "error", "critical")]
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            settled = {kind: round(float(count)) for kind, count in LANDINGS.findall(answer.read().decode())}
        return {"moves": moves, "cycles": process.messages("cycle"), "trouble": trouble, "settled": settled}


@contextlib.contextmanager
def _working(own: Ground, contender: Contender) -> Iterator[_Worker | None]:
    """The contender at work; its end is part of it."""
    if contender.spec is None:
        yield None
        return
    policy = own.policy(contender.spec)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with own.process("run", "--mode", "evict", "--policy", policy, "--listen", address, env=contender.env) as process:
        yield _Worker(process, address)
        assert process.terminate(seconds=60) == 0, process.err.read_text(encoding="utf-8")[-3000:]


def _watch(own: Ground, traffic: Traffic, *, seconds: float) -> tuple[FloatArray, FloatArray]:
    """Moments and true loads until the end of the measured time."""
    times, loads = list[float](), list[list[float]]()
    machines = own.hollow.ledger.machines
    while traffic.now < seconds:
        times.append(traffic.now)
        wanted = own.hollow.ledger.read().node_wanted
        loads.append([wanted[name] / machine.cores for name, machine in machines.items()])
        time.sleep(SAMPLE_S)
    return np.array(times), np.array(loads)


def _landed(town: Town, traffic: Traffic) -> list[tuple[str, str]]:
    owner = [f"{namespace}/{app}" for (namespace, app), slots in town.slots.items() for _ in slots]
    return [(owner[arrival.slot], arrival.node) for arrival in traffic.arrivals[town.pods :]]
