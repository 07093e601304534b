"""What a steady cycle costs to read the cluster, by lists and by watch: `python -m benchmarks.watch`.

Three processes, as in `cycle`: one plays the cluster, one is measured, and this one changes some pods between two looks. Both ways see the
same changes. What a watch takes in between two looks is counted with the look that follows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.cycle import cluster_of, pipe, python_command, receive
from benchmarks.scene import Scene, Served
from benchmarks.watch_process import Look
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.operations import pod_path
from rebalancer.kube.resources import PODS
from rebalancer.kube.wire_pods import PodWire

MIB = 2**20
SETTLE_S = 3.0
"""After the changes, for the watch to take them in; and for the server to come to rest."""
PATIENCE_S = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    scene = Scene(nodes=options.nodes, pods=options.pods, hot_nodes=0)
    print(f"measuring {scene.words}, {options.changes} pods changed between two looks ...", file=sys.stderr, flush=True)
    found = measure(scene, changes=options.changes, looks=options.looks)
    print(text(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watch", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000, metavar="N", help="nodes of the cluster")
    parser.add_argument("--pods", type=int, default=30_000, metavar="M", help="pods of the cluster")
    parser.add_argument("--changes", type=int, default=300, metavar="C", help="pods that change between two looks")
    parser.add_argument("--looks", type=int, default=3, metavar="L", help="looks, the first one included")
    return parser


def measure(scene: Scene, *, changes: int, looks: int) -> dict[str, list[Look]]:
    """``lists`` and ``watch`` -> looks in their order."""
    found: dict[str, list[Look]] = {}
    with cluster_of(scene) as cluster:
        served = receive(cluster, Served)
        client = KubeClient.connect(kubeconfig=Path(served.kubeconfig), context=None, timeout_s=PATIENCE_S)
        try:
            pods = [pod_path(namespace=pod.metadata.namespace, name=pod.metadata.name) for pod in _pods(client)]
            for way in ("lists", "watch"):
                with _looking(way, served) as process:
                    found[way] = [_look(process)]
                    for turn in range(1, looks):
                        _change(client, pods[:changes], turn=turn)
                        time.sleep(SETTLE_S)
                        found[way].append(_look(process))
        finally:
            client.close()
    return found


def _pods(client: KubeClient) -> list[PodWire]:
    return list_all(client, PODS, deadline=Deadline.after(PATIENCE_S)).items


def _change(client: KubeClient, paths: Sequence[str], *, turn: int) -> None:
    for path in paths:
        body = {"metadata": {"labels": {"turn": str(turn)}}}
        client.request("PATCH", path, body=body, content_type="application/merge-patch+json", deadline=Deadline.after(PATIENCE_S))


@contextmanager
def _looking(way: str, served: Served) -> Iterator[subprocess.Popen[bytes]]:
    command = python_command("benchmarks.watch_process", msgspec.json.encode((way, served.kubeconfig)))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            pipe(process.stdin).close()
            process.wait(timeout=60)


def _look(process: subprocess.Popen[bytes]) -> Look:
    pipe(process.stdin).write(b"look\n")
    pipe(process.stdin).flush()
    return receive(process, Look)


def text(found: dict[str, list[Look]]) -> str:
    """One line a look."""
    lines = [f"{'':<8}{'look':>5}{'CPU':>9}{'between':>9}{'wall':>9}{'lists':>7}{'memory':>10}{'peak':>10}"]
    for way, looks in found.items():
        for number, look in enumerate(looks, 1):
            cells = f"{look.cpu_seconds:>7.2f} s{look.between_cpu_seconds:>7.2f} s{look.wall_seconds:>7.2f} s{look.lists:>7}"
            lines.append(f"{way:<8}{number:>5}{cells}{look.resident_bytes / MIB:>6.0f} MiB{look.peak_bytes / MIB:>6.0f} MiB")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
