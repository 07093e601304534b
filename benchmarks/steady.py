"""Cycles of one process that goes on, on clusters of several sizes: `python -m benchmarks.steady`, or `make bench`.

The first cycle lists everything, later ones read what has changed. Three processes, as in `watch`; between two cycles a minute passes in
the cluster, and some of its pods change. How the numbers grow with the cluster is fitted over all sizes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from benchmarks.cycle import cluster_of, pipe, receive, start, this_machine
from benchmarks.growth import text
from benchmarks.scene import Cycle, Report, Scene, Served, SteadyRun, Stepped, Traffic

T = TypeVar("T")

DEFAULT_SCENES: tuple[Scene, ...] = (
    Scene(nodes=1000, pods=30_000, hot_nodes=20),
    Scene(nodes=3000, pods=90_000, hot_nodes=60),
    Scene(nodes=10_000, pods=300_000, hot_nodes=200),
)
CYCLES = 4
CHANGED_SHARE = 0.01
"""Of the pods, between two cycles."""
SETTLE_S = 4.0
"""After the changes, for the watch to take them in."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    scenes = DEFAULT_SCENES
    if options.nodes:
        hot = options.hot_nodes if options.hot_nodes is not None else max(1, options.nodes // 50)
        scenes = (Scene(nodes=options.nodes, pods=options.pods or options.nodes * 30, hot_nodes=hot),)
    machine, runs = this_machine(), measure_all(scenes, cycles=options.cycles)
    report = Report(machine=machine, runs=(), steady=runs)
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() if options.json else text(runs))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steady", description=__doc__)
    parser.add_argument("--nodes", type=int, metavar="N", help="measure one cluster of N nodes instead of the default sizes")
    parser.add_argument("--pods", type=int, metavar="M", help="and of about M pods (30 a node unless given)")
    parser.add_argument("--hot-nodes", type=int, metavar="H", help="of which H nodes are hot (2 percent unless given)")
    parser.add_argument("--cycles", type=int, default=CYCLES, metavar="C", help="cycles, the first one included")
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of a table")
    return parser


def measure_all(scenes: Sequence[Scene], *, cycles: int = CYCLES) -> tuple[SteadyRun, ...]:
    """One run a scene, and what is measured said on standard error."""
    runs = []
    for scene in scenes:
        print(f"measuring {cycles} cycles of {scene.words} ...", file=sys.stderr, flush=True)
        runs.append(measure(scene, cycles=cycles))
    return tuple(runs)


def measure(scene: Scene, *, cycles: int) -> SteadyRun:
    """Serve the scene, run cycles on it. Raises BenchmarkFailed."""
    changes = max(1, round(scene.pods * CHANGED_SHARE))
    found: list[Cycle] = []
    fetched: list[tuple[Traffic, Traffic]] = []
    with cluster_of(scene) as cluster:
        served = receive(cluster, Served)
        now, before = served.now, (Traffic(), Traffic())
        with _going_on(served) as process:
            for number in range(cycles):
                if number:
                    now = _ask(cluster, f"step {changes}", Stepped).now
                    time.sleep(SETTLE_S)
                found.append(_ask(process, f"{now:.3f}", Cycle))
                total = _ask(cluster, "traffic", tuple[Traffic, Traffic])
                fetched.append((total[0].since(before[0]), total[1].since(before[1])))
                before = total
    return SteadyRun(
        scene=scene,
        served=served,
        changes=changes,
        cycles=tuple(found),
        kubernetes=tuple(each for each, _ in fetched),
        prometheus=tuple(each for _, each in fetched),
    )


@contextmanager
def _going_on(served: Served) -> Iterator[subprocess.Popen[bytes]]:
    with start("benchmarks.steady_process", msgspec.json.encode(served)) as process:
        try:
            yield process
        finally:
            pipe(process.stdin).close()
            process.wait(timeout=60)


def _ask(process: subprocess.Popen[bytes], line: str, kind: type[T]) -> T:
    pipe(process.stdin).write(line.encode() + b"\n")
    pipe(process.stdin).flush()
    return receive(process, kind)


if __name__ == "__main__":
    sys.exit(main())
