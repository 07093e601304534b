"""How long kube-scheduler waits for the verbs of gpushare: `python -m benchmarks.gpushare`.

An embedded cluster, the service, and the client are processes of their own. The filter is asked about all nodes; pods are bound one after
the other, first to nodes to which none was bound before, then to the same ones again. The time of a binding is mostly that of the API
server. Nothing here judges; the numbers are for people.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from benchmarks.cycle import ROOT, pipe, python_command, receive, this_machine
from benchmarks.extender_client import Timed, request, timed
from benchmarks.gpushare_process import Part, Waiting, node_name
from benchmarks.scene import Machine

NODES = 5000
REQUESTS = 1000
WARM_UP = 20
DIFFERENT = 8
ASKS = (1000, 8138, 16276)
"""The last one needs a whole device, which some nodes have not."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    requests: int
    p50_ms: float
    p99_ms: float
    most_ms: float
    cpu_ms: float
    """Of the service, for each request."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    load_average_after: float
    nodes: int
    timings: tuple[Timing, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    machine = this_machine()
    timings = tuple(measure(Part(nodes=options.nodes, waiting=options.bindings), count=options.requests))
    report = Report(machine=machine, load_average_after=round(os.getloadavg()[0], 1), nodes=options.nodes, timings=timings)
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() if options.json else text(report))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpushare", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, metavar="N")
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="R", help="to the filter")
    parser.add_argument("--bindings", type=int, default=200, metavar="B")
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of a table")
    return parser


def measure(part: Part, *, count: int) -> Iterator[Timing]:
    """Raises BenchmarkFailed or Unexpected."""
    with _process(part) as cluster:
        found = receive(cluster, Waiting)
        with _process(msgspec.structs.replace(part, kubeconfig=found.kubeconfig)) as service:
            port = receive(service, int)
            questions = [request("/gpushare-scheduler/filter", body) for body in filter_questions(part)]
            timed(port, questions, count=WARM_UP)
            yield _timing("filter, all nodes by name", timed(port, questions, count=count))
            half = len(found.pods) // 2
            for what, pods in (("bind, first of its node", found.pods[:half]), ("bind, further ones", found.pods[half:])):
                bindings = [request("/gpushare-scheduler/bind", body) for body in bind_questions(pods)]
                yield _timing(what, timed(port, bindings, count=len(bindings)))


def filter_questions(part: Part) -> Iterator[bytes]:
    """About all nodes, each in an order of its own, for pods of different sizes."""
    chance = random.Random(2)
    names = [node_name(index) for index in range(part.nodes)]
    for number in range(DIFFERENT):
        ask = ASKS[number % len(ASKS)]
        chance.shuffle(names)
        container = {"name": "c", "image": "x", "resources": {"limits": {"aliyun.com/gpu-mem": str(ask)}}}
        pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [container]}}
        yield json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()


def bind_questions(pods: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    for index, (name, uid) in enumerate(pods):
        yield json.dumps({"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": node_name(index)}).encode()


def _timing(what: str, found: Timed) -> Timing:
    p50, p99, most = np.percentile(found.seconds, [50, 99, 100]) * 1e3
    count = len(found.seconds)
    return Timing(
        what=what,
        requests=count,
        p50_ms=float(p50),
        p99_ms=float(p99),
        most_ms=float(most),
        cpu_ms=found.cpu_seconds / count * 1e3,
    )


@contextmanager
def _process(part: Part) -> Iterator[subprocess.Popen[bytes]]:
    command = python_command("benchmarks.gpushare_process", msgspec.json.encode(part))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield process
        finally:
            pipe(process.stdin).close()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def text(report: Report) -> str:
    """Columns of equal width."""
    table = [("asked", "requests", "p50", "p99", "most", "CPU of the service")]
    for each in report.timings:
        numbers = (f"{value:.1f} ms" for value in (each.p50_ms, each.p99_ms, each.most_ms, each.cpu_ms))
        table.append((each.what, str(each.requests), *numbers))  # type: ignore[arg-type]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    machine, after = report.machine, report.load_average_after
    head = [
        f"{report.nodes:,} nodes; {machine.processor}, {machine.cores} cores; Python {machine.python}",
        f"load average {machine.load_average:.1f} at the start and {after:.1f} at the end, all three processes included",
    ]
    return "\n".join([*head, "", *lines])


if __name__ == "__main__":
    sys.exit(main())
