"""The process that is measured: goes on as the service does, one cycle each time a line comes in, with what it reads kept current by watch.

Its argument is a `Served` in JSON. A line of standard input holds the moment of the cycle, unix seconds; a line of standard output the
`Cycle`. It ends with its standard input.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from benchmarks.measured_process import PATIENCE_S, StageMeter, peak_bytes
from benchmarks.scene import Cycle, Served
from benchmarks.watch_process import CountingClient, Silent, resident_bytes
from rebalancer.collect.cluster import ClusterSource
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.watched import WatchedCluster
from rebalancer.deadline import Deadline
from rebalancer.guard.gate import all_gates
from rebalancer.plan.filter import all_filters
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.runtime.considering import Orders, Verdict, consider
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.observe import observe, require_coverage


class Cycles:
    """The calls of `runtime.controller`, in their order, again and again."""

    def __init__(self, served: Served, *, client: CountingClient, source: ClusterSource) -> None:
        self._client, self._source = client, source
        self._prometheus = Prometheus(PrometheusAccess(url=served.prometheus_url, timeout_s=PATIENCE_S))
        self._orders = Orders(policy=built_in_policy(), mode=Mode.DRY_RUN, mode_source="the benchmark")
        self._memory = Memory()
        self._left_at = 0.0
        """CPU seconds of the process when the last cycle ended."""

    def close(self) -> None:
        self._prometheus.close()

    def run(self, now: float) -> Cycle:
        asked, began, wall, meter = self._client.pages_asked, time.process_time(), time.perf_counter(), StageMeter()
        verdict = self._verdict(now, meter)
        self._memory, plan = verdict.memory, verdict.decision.plan
        pods = len(verdict.state.pods.uids)
        del verdict  # as the service, which keeps nothing of a cycle but its memory
        between, self._left_at = began - self._left_at, time.process_time()
        return Cycle(
            stages=tuple(meter.stages),
            cpu_seconds=self._left_at - began,
            between_cpu_seconds=between,
            wall_seconds=time.perf_counter() - wall,
            lists=self._client.pages_asked - asked,
            resident_bytes=resident_bytes(),
            peak_bytes=peak_bytes(),
            pods=pods,
            hot_nodes=plan.summary.hot_nodes,
            moves=len(plan.moves),
        )

    def _verdict(self, now: float, meter: StageMeter) -> Verdict:
        spec = self._orders.policy.spec
        state = observe(
            client=self._client,
            prometheus=self._prometheus,
            spec=spec,
            at=now,
            deadline=Deadline.after(PATIENCE_S),
            stopwatch=meter,
            source=self._source,
        )
        require_coverage(state, spec)
        return consider(state, self._memory, self._orders, stopwatch=meter)


def main() -> None:
    served = msgspec.json.decode(sys.argv[1], type=Served)
    all_gates(), all_filters()
    client = CountingClient.connect(kubeconfig=Path(served.kubeconfig), context=None, timeout_s=PATIENCE_S)
    assert isinstance(client, CountingClient)
    with WatchedCluster(client, report=Silent(), relist_s=PATIENCE_S) as source:
        cycles = Cycles(served, client=client, source=source)
        for line in sys.stdin:
            sys.stdout.buffer.write(msgspec.json.encode(cycles.run(float(line))) + b"\n")
            sys.stdout.buffer.flush()
        cycles.close()
    client.close()


if __name__ == "__main__":
    main()
