"""The process that is measured: one whole cycle as `rebalancer plan -o json` makes it, from HTTP bytes to the bytes of the plan.

It imports what a controller imports, takes its baseline, then observes, considers and writes the plan. One line of standard output
carries the `Measured`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.scene import Measured, Served, Stage
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.guard.gate import all_gates
from rebalancer.kube.client import KubeClient
from rebalancer.plan.filter import all_filters
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.report.plan_file import plan_to_json
from rebalancer.runtime.considering import Orders, Verdict, consider
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.stopwatch import Stopwatch

PATIENCE_S = 1800.0
"""For one answer and for the cycle: the simulated servers are slower than real ones, and their time is not what is measured."""


class StageMeter(Stopwatch):
    """A stopwatch that also reads the CPU clock of the process and the high-water mark of its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        with super().stage(name):
            yield
        self.stages.append(
            Stage(
                name=name,
                wall_seconds=time.perf_counter() - wall,
                cpu_seconds=time.process_time() - cpu,
                peak_bytes=peak_bytes(),
            )
        )


def main() -> None:
    served = msgspec.json.decode(sys.argv[1], type=Served)
    all_gates(), all_filters()
    baseline, wall, cpu = peak_bytes(), time.perf_counter(), time.process_time()
    meter = StageMeter()
    verdict, written = run_cycle(served, meter)
    measured = Measured(
        stages=tuple(meter.stages),
        wall_seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        baseline_bytes=baseline,
        peak_bytes=peak_bytes(),
        hot_nodes=verdict.decision.plan.summary.hot_nodes,
        moves=len(verdict.decision.plan.moves),
        refused=len(verdict.decision.plan.refused),
        plan_bytes=len(written),
        outcome=verdict.decision.plan.outcome,
    )
    sys.stdout.buffer.write(msgspec.json.encode(measured) + b"\n")


def run_cycle(served: Served, meter: Stopwatch) -> tuple[Verdict, bytes]:
    """The calls of `runtime.controller`, in their order, and the plan as a document."""
    orders = Orders(policy=built_in_policy(), mode=Mode.DRY_RUN, mode_source="the benchmark")
    client = KubeClient.connect(kubeconfig=Path(served.kubeconfig), context=None, timeout_s=PATIENCE_S)
    prometheus = Prometheus(PrometheusAccess(url=served.prometheus_url, timeout_s=PATIENCE_S))
    try:
        state = observe(
            client=client,
            prometheus=prometheus,
            spec=orders.policy.spec,
            at=served.now,
            deadline=Deadline.after(PATIENCE_S),
            stopwatch=meter,
        )
    finally:
        client.close()
        prometheus.close()
    require_coverage(state, orders.policy.spec)
    verdict = consider(state, Memory(), orders, stopwatch=meter)
    with meter.stage("write"):
        written = plan_to_json(verdict.decision.plan)
    return verdict, written


def peak_bytes() -> int:
    """The highest resident set of this process.

    From /proc where there is one: `getrusage` of a process begins with the mark of the one that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
