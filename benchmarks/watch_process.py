"""The process that is measured: reads the cluster each time a line comes in, by lists or by watch, and says what that took.

Its argument is a JSON array of the way and the kubeconfig. It ends with its standard input.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measured_process import PATIENCE_S, peak_bytes
from rebalancer.collect.cluster import ClusterSource, ListedCluster
from rebalancer.collect.watched import WatchedCluster
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of the cluster. ``between_cpu_seconds``: of the process, since the look before. ``lists``: pages that were asked for.
    ``resident_bytes``: afterwards, when what was read has been let go."""

    cpu_seconds: float
    between_cpu_seconds: float
    wall_seconds: float
    lists: int
    resident_bytes: int
    peak_bytes: int
    pods: int


class Silent:
    """A report that nobody reads."""

    def restarted(self, resource: str, reason: object) -> None: ...

    def forbidden(self, resource: str, error: Exception) -> None: ...

    def defect(self, resource: str, error: Exception) -> None: ...

    def disagreed(self, resource: str, objects: int) -> None:
        raise AssertionError(f"{objects} {resource} were lost")


class CountingClient(KubeClient):
    pages_asked = 0

    def request(self, *arguments: Any, **options: Any) -> Any:
        self.pages_asked += 1
        return super().request(*arguments, **options)


def main() -> None:
    way, kubeconfig = msgspec.json.decode(sys.argv[1], type=tuple[str, str])
    client = CountingClient.connect(kubeconfig=Path(kubeconfig), context=None, timeout_s=PATIENCE_S)
    assert isinstance(client, CountingClient)
    opened: AbstractContextManager[ClusterSource] = nullcontext(ListedCluster(client))
    if way == "watch":
        opened = WatchedCluster(client, report=Silent())
    with opened as source:
        before = time.process_time()
        for _ in sys.stdin:
            look = _look(source, client, before)
            before = time.process_time()
            sys.stdout.buffer.write(msgspec.json.encode(look) + b"\n")
            sys.stdout.buffer.flush()
    client.close()


def _look(source: ClusterSource, client: CountingClient, before: float) -> Look:
    asked, wall, cpu = client.pages_asked, time.perf_counter(), time.process_time()
    pods = len(source.read(deadline=Deadline.after(PATIENCE_S)).pods)
    cpu_after, wall_after = time.process_time(), time.perf_counter()
    return Look(
        cpu_seconds=cpu_after - cpu,
        between_cpu_seconds=cpu - before,
        wall_seconds=wall_after - wall,
        lists=client.pages_asked - asked,
        resident_bytes=resident_bytes(),
        peak_bytes=peak_bytes(),
        pods=pods,
    )


def resident_bytes() -> int:
    """The resident set now; 0 where /proc does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="ascii").split()[1]) * 4096 if statm.exists() else 0


if __name__ == "__main__":
    main()
