"""One whole cycle from HTTP bytes to the plan, on clusters of several sizes: `python -m benchmarks.cycle`, or `make bench`.

Each size has two fresh processes: one that plays the cluster (`cluster_process`) and one that is measured (`measured_process`), so that
what the simulation costs is in no number. Without a size it measures several, and the cycles of a process that goes on as well (`steady`).
Nothing here judges; the numbers are for people.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import msgspec
import numpy as np

from benchmarks.scene import Machine, Measured, Report, Run, Scene, Served, SteadyRun, Traffic
from benchmarks.tables import markdown, text

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
"""Where `benchmarks` can be imported, from wherever this is run."""

DEFAULT_SCENES: tuple[Scene, ...] = (
    Scene(nodes=1000, pods=30_000, hot_nodes=20),
    Scene(nodes=5000, pods=150_000, hot_nodes=100),
    Scene(nodes=5000, pods=150_000, hot_nodes=500),
)


class BenchmarkFailed(Exception):
    """A process of the benchmark ended early; its standard error says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    scenes = DEFAULT_SCENES
    if options.nodes or options.pods:
        nodes, pods = options.nodes or (options.pods + 29) // 30, options.pods or options.nodes * 30
        hot = options.hot_nodes if options.hot_nodes is not None else max(1, nodes // 50)
        scenes = (Scene(nodes=nodes, pods=pods, hot_nodes=hot, seed=options.seed),)
    machine, runs = this_machine(), []
    for scene in scenes:
        print(f"measuring {scene.words} ...", file=sys.stderr, flush=True)
        runs.append(measure(scene))
    steady: tuple[SteadyRun, ...] = ()
    if scenes is DEFAULT_SCENES:
        from benchmarks.steady import DEFAULT_SCENES as STEADY_SCENES
        from benchmarks.steady import measure_all

        steady = measure_all(STEADY_SCENES)
    report = Report(machine=machine, runs=tuple(runs), steady=steady)
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() if options.json else text(report))
    if options.write is not None:
        options.write.write_text(markdown(report), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycle", description=__doc__)
    parser.add_argument("--nodes", type=int, metavar="N", help="measure one cluster of N nodes instead of the default sizes")
    parser.add_argument("--pods", type=int, metavar="M", help="and of about M pods (30 a node unless given)")
    parser.add_argument("--hot-nodes", type=int, metavar="H", help="of which H nodes are hot (2 percent unless given)")
    parser.add_argument("--seed", type=int, default=7, help="the same seed makes the same cluster")
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of tables")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the tables to FILE, as Markdown")
    return parser


def measure(scene: Scene) -> Run:
    """Serve the scene, run one cycle on it. Raises BenchmarkFailed."""
    with cluster_of(scene) as cluster:
        served = receive(cluster, Served)
        measured = msgspec.json.decode(_run_measured(served), type=Measured)
        pipe(cluster.stdin).write(b"traffic\n")
        pipe(cluster.stdin).flush()
        kubernetes, prometheus = receive(cluster, tuple[Traffic, Traffic])
    return Run(scene=scene, served=served, measured=measured, kubernetes=kubernetes, prometheus=prometheus)


@contextmanager
def cluster_of(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    with start("benchmarks.cluster_process", msgspec.json.encode(scene)) as process:
        try:
            yield process
        finally:
            pipe(process.stdin).close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def _run_measured(served: Served) -> bytes:
    with start("benchmarks.measured_process", msgspec.json.encode(served)) as process:
        said, _ = process.communicate()
    if process.returncode:
        raise BenchmarkFailed(f"the measured process ended with status {process.returncode}")
    return said


def start(module: str, argument: bytes) -> subprocess.Popen[bytes]:
    """A process of the benchmark, spoken to by pipes. As an installed program it finds its bytecode, so that no number holds a compiler."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, cwd=ROOT, env=environment)
    command = python_command(module, argument)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment)


def python_command(module: str, argument: bytes) -> list[str]:
    return [sys.executable, "-m", module, argument.decode()]


def receive(process: subprocess.Popen[bytes], kind: type[T]) -> T:
    line = pipe(process.stdout).readline()
    if not line:
        raise BenchmarkFailed(f"the cluster process ended with status {process.wait()}")
    return msgspec.json.decode(line, type=kind)


def pipe(end: IO[bytes] | None) -> IO[bytes]:
    if end is None:
        raise BenchmarkFailed("the process was started without its pipes")
    return end


def this_machine() -> Machine:
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=platform.platform(),
        python=platform.python_version(),
        numpy=np.__version__,
        msgspec=msgspec.__version__,
        load_average=round(os.getloadavg()[0], 1),
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
