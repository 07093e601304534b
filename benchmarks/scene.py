"""What the processes of a benchmark tell each other: how large the cluster is, where it is served, what was measured."""

from __future__ import annotations

import msgspec


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """``json_bytes`` before compression, ``wire_bytes`` after; bodies of answers, and what watches tell."""

    requests: int = 0
    json_bytes: int = 0
    wire_bytes: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What has been added to ``before``."""
        return Traffic(
            requests=self.requests - before.requests,
            json_bytes=self.json_bytes - before.json_bytes,
            wire_bytes=self.wire_bytes - before.wire_bytes,
        )


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. ``hot_nodes``: nodes that are made hot; fewer where a small cluster has not enough movable pods."""

    nodes: int
    pods: int
    hot_nodes: int
    seed: int = 7

    @property
    def words(self) -> str:
        return f"{self.nodes:,} nodes, {self.pods:,} pods, {self.hot_nodes} hot"


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cluster of a scene is served, and what it holds in fact. ``now``: its clock, unix seconds."""

    kubeconfig: str
    prometheus_url: str
    now: float
    nodes: int
    pods: int
    build_seconds: float


class Stepped(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster some changes later. ``version``: its newest resourceVersion."""

    now: float
    version: int
    changed: int


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """``cpu_seconds``: of all threads of the process. ``peak_bytes``: the highest resident set up to the end of the stage."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle. ``baseline_bytes``: the resident set when everything was imported and nothing read."""

    stages: tuple[Stage, ...]
    wall_seconds: float
    cpu_seconds: float
    baseline_bytes: int
    peak_bytes: int
    hot_nodes: int
    moves: int
    refused: int
    plan_bytes: int
    outcome: str


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle of a process that goes on. ``between_cpu_seconds``: of the process since the cycle before, or since it began: what the
    watch took in meanwhile, or the imports. ``lists``: pages that were asked for. ``resident_bytes``: after the cycle."""

    stages: tuple[Stage, ...]
    cpu_seconds: float
    between_cpu_seconds: float
    wall_seconds: float
    lists: int
    resident_bytes: int
    peak_bytes: int
    pods: int
    hot_nodes: int
    moves: int


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    processor: str
    cores: int
    system: str
    python: str
    numpy: str
    msgspec: str
    load_average: float
    """Of the last minute before the first run: above 0, others use the processors too, and every time is longer than it need be."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    scene: Scene
    served: Served
    measured: Measured
    kubernetes: Traffic
    prometheus: Traffic


class SteadyRun(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles of one process in their order, the first one included, and what each of them fetched."""

    scene: Scene
    served: Served
    changes: int
    cycles: tuple[Cycle, ...]
    kubernetes: tuple[Traffic, ...]
    prometheus: tuple[Traffic, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    runs: tuple[Run, ...]
    steady: tuple[SteadyRun, ...] = ()
