"""How long kube-scheduler waits for the extender: `python -m benchmarks.extender`, or `make bench-extender`.

The server is a process of its own, the client another one, over loopback HTTP. Each question has an order of its own. Nothing here judges;
the numbers are for people.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.cycle import ROOT, pipe, python_command, receive, this_machine
from benchmarks.extender_client import request, timed
from benchmarks.extender_questions import Scene, questions
from benchmarks.scene import Machine

SIZES = ((500, 500), (5000, 500), (5000, 5000))
"""Nodes that are known, and asked about."""
JUDGES = ("own", "dynamic")
VERBS = ("filter", "prioritize")
REQUESTS = 600
WHOLE_REQUESTS = {500: 60, 5000: 12}
"""By the number of nodes that are asked about; such questions are large."""
CLIENTS = 4
DIFFERENT = 8
WARM_UP = 20


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How the questions come."""

    name: str
    whole: bool = False
    fresh: bool = False
    clients: int = 1


WAYS = (
    Way(name="names, kept connection"),
    Way(name="names, fresh connections", fresh=True),
    Way(name=f"names, {CLIENTS} clients at once", clients=CLIENTS),
    Way(name="whole nodes, kept connection", whole=True),
)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    scene: Scene
    verb: str
    way: Way
    requests: int
    body_bytes: int
    p50_ms: float
    p99_ms: float
    most_ms: float
    cpu_ms: float
    """Of the server, for each request."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    load_average_after: float
    real_time: bool
    """They had the processor before everybody else."""
    timings: tuple[Timing, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    machine, timings = this_machine(), []
    for nodes, asked in [(options.nodes, options.nodes)] if options.nodes else SIZES:
        for judge in JUDGES:
            print(f"measuring {nodes:,} nodes, {asked:,} asked about, {judge} judge ...", file=sys.stderr, flush=True)
            timings.extend(measure(Scene(nodes=nodes, asked=asked, judge=judge), count=options.requests))
    first = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    report = Report(machine=machine, load_average_after=round(os.getloadavg()[0], 1), real_time=first, timings=tuple(timings))
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() if options.json else text(report))
    if options.write is not None:
        options.write.write_text(markdown(report), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender", description=__doc__)
    parser.add_argument("--nodes", type=int, metavar="N", help="measure a cluster of N nodes instead of the default sizes")
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="R", help="for each number, where nodes come by name")
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of a table")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table to FILE, as Markdown")
    return parser


def measure(scene: Scene, *, count: int = REQUESTS) -> Iterator[Timing]:
    """Each verb in each way, by one server. Raises BenchmarkFailed or Unexpected."""
    with served(scene) as port:
        for whole in (False, True):
            bodies = questions(scene, whole=whole, different=2 if whole else DIFFERENT)
            many = min(count, WHOLE_REQUESTS.get(scene.asked or scene.nodes, 12)) if whole else count
            for verb in VERBS:
                requests = [request(f"/{verb}", body) for body in bodies]
                timed(port, requests, count=min(many, 3 if whole else WARM_UP))
                for way in (way for way in WAYS if way.whole == whole):
                    yield _timing(scene, verb, way, port, requests, count=many)


def _timing(scene: Scene, verb: str, way: Way, port: int, requests: Sequence[bytes], *, count: int) -> Timing:
    found = timed(port, requests, count=count, fresh=way.fresh, clients=way.clients)
    p50, p99, most = np.percentile(found.seconds, [50, 99, 100]) * 1e3
    return Timing(
        scene=scene,
        verb=verb,
        way=way,
        requests=count,
        body_bytes=len(requests[0]),
        p50_ms=float(p50),
        p99_ms=float(p99),
        most_ms=float(most),
        cpu_ms=found.cpu_seconds / count * 1e3,
    )


@contextmanager
def served(scene: Scene) -> Iterator[int]:
    """The port of a server that knows the nodes of the scene."""
    command = python_command("benchmarks.extender_process", msgspec.json.encode(scene))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield receive(process, int)
        finally:
            pipe(process.stdin).close()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def rows(report: Report) -> Iterator[tuple[str, ...]]:
    yield ("known", "asked", "judge", "verb", "how", "body", "p50", "p99", "most", "server CPU")
    for each in report.timings:
        numbers = (f"{value:.1f} ms" for value in (each.p50_ms, each.p99_ms, each.most_ms, each.cpu_ms))
        body = f"{each.body_bytes / 1e6:.2f} MB"
        scene = each.scene
        yield (f"{scene.nodes:,}", f"{scene.asked or scene.nodes:,}", scene.judge, each.verb, each.way.name, body, *numbers)


def text(report: Report) -> str:
    """Columns of equal width."""
    table = list(rows(report))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([*_circumstances(report), "", *lines])


def markdown(report: Report) -> str:
    """The same as a page."""
    head, *rest = rows(report)
    rule = ("---:", "---:", "---", "---", "---", "---:", "---:", "---:", "---:", "---:")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rest))
    page = Path(__file__).with_name("extender_page.md").read_text(encoding="utf-8")
    return page.format(circumstances="\n".join(f"- {line}" for line in _circumstances(report)), table=table)


def _circumstances(report: Report) -> list[str]:
    machine, after = report.machine, report.load_average_after
    counts = sorted({each.requests for each in report.timings}, reverse=True)
    return [
        f"machine: {machine.processor}, {machine.cores} cores, {machine.system}",
        f"load average {machine.load_average:.1f} at the start and {after:.1f} at the end, client and server included"
        + ("; both ran with real-time priority, so that others only shared their caches" if report.real_time else ""),
        f"Python {machine.python}, numpy {machine.numpy}, msgspec {machine.msgspec}",
        f"requests for each number: {', '.join(map(str, counts))}; below 100, p99 is nearly the largest",
    ]


if __name__ == "__main__":
    sys.exit(main())
