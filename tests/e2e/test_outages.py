"""What the controller cannot see it does not act on: the API server or Prometheus away, then back, and the cure goes on by itself."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground
from tests.e2e.heat import REPLICAS, SHOP, heated, hot, names
from tests.e2e.plane import ControlPlane, Plane
from tests.e2e.table import Row
from tests.e2e.test_cure import POLICY
from tests.support.embedded import Process
from tests.support.slow_proxy import slow_proxy

API_SERVER = "kube-apiserver"
OUTAGE_S = 50.0
"""Five cycles, and longer than the 40 s after which a controller that sees would have moved."""
CURE_S = 180.0
TIMEOUTS = {"REBALANCER_PROMETHEUS__TIMEOUT": "3s"}


@dataclass(frozen=True)
class Running:
    ground: Ground
    process: Process

    def cured(self) -> None:
        """Wait for the end of all heat."""
        try:
            until(lambda: not hot(self.ground), "the cure after the outage", seconds=CURE_S, step=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.process.err.read_text()[-4000:]}") from error
        self.ground.settled(SHOP, REPLICAS)

    def failures(self) -> list[Json]:
        return self.process.messages("cycle failed, nothing was moved")


@pytest.fixture
def running(plane: ControlPlane, tmp_path: Path) -> Iterator[Running]:
    """The controller in evict mode on a hot cluster, which it has looked at and has not confirmed yet."""
    with heated(plane, tmp_path) as own:
        arguments = ("run", "--mode", "evict", "--policy", own.policy(POLICY), "--listen", "127.0.0.1:0")
        with own.process(*arguments, env=TIMEOUTS) as process:
            until(lambda: process.messages("cycle"), "the first cycle", step=0.05)
            assert not process.messages("move"), "the first look has no history to act on"
            yield Running(own, process)


SLOW_S = 0.8
"""A client sends a request in two pieces, and each waits: more than half of the time-out before every answer."""


@dataclass(frozen=True)
class Outage:
    """What happened while something was away."""

    seconds: float
    moves: int
    failures: tuple[str, ...]


def outage(running: Running, back: Callable[[], object]) -> Outage:
    """Until a cycle has failed in it and its time is over; ``back`` ends it."""
    began, known = time.monotonic(), running.failures()
    try:
        until(lambda: len(running.failures()) > len(known), "a cycle that says it failed", seconds=90)
        time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - began)))
        assert running.process.popen.poll() is None, "the controller did not outlive the outage"
        failures = tuple(line["error"] for line in running.failures()[len(known) :])
        return Outage(time.monotonic() - began, len(running.process.messages("move")), failures)
    finally:
        back()


def judge(running: Running, before: set[str], seen: Outage, scenario: Row) -> None:
    """Nothing was moved meanwhile; what was moved afterwards is what is gone, and nothing is hot any more."""
    scenario.shows(f"away for {seen.seconds:.0f} s: {seen.moves} moves, {len(seen.failures)} cycles failed: {seen.failures[-1][:70]}…")
    assert seen.moves == 0
    running.cured()
    evicted = [move for move in running.process.messages("move") if move["result"] == "evicted"]
    scenario.shows(f"cured afterwards by {len(evicted)} evictions, without a hand")
    assert len(before - names(running.ground)) == len(evicted)
    assert running.process.terminate() == 0


def test_a_stopped_api_server_stops_the_moves_and_nothing_else(plane: ControlPlane, running: Running, scenario: Row) -> None:
    """Outage: no move while the API server is away, the cure afterwards."""
    if not isinstance(plane, Plane):
        pytest.skip("the API server of a borrowed cluster is not stopped")
    before, server = names(running.ground), plane.programs[API_SERVER]

    def back() -> None:
        server.start()
        plane.wait_ready()

    server.stop()
    judge(running, before, outage(running, back), scenario)


def test_a_stopped_prometheus_stops_the_moves_and_nothing_else(running: Running, scenario: Row) -> None:
    """Outage: no move while Prometheus is away, the cure afterwards."""
    prometheus, before = running.ground.prometheus, names(running.ground)
    assert prometheus is not None
    prometheus.stop()
    judge(running, before, outage(running, prometheus.start), scenario)


def test_a_prometheus_that_hangs_stops_the_moves_and_nothing_else(running: Running, scenario: Row) -> None:
    """Outage: no move while Prometheus answers nothing, the cure afterwards."""
    prometheus, before = running.ground.prometheus, names(running.ground)
    assert prometheus is not None
    with contextlib.ExitStack() as stack:
        stack.enter_context(prometheus.frozen())
        seen = outage(running, stack.close)
    judge(running, before, seen, scenario)


def test_a_slow_prometheus_makes_the_cure_later_and_nothing_else(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Every answer takes more than half of the time-out: no cycle ends for want of an answer, the nodes are cured."""
    with heated(plane, tmp_path) as own, slow_proxy(own.env["REBALANCER_PROMETHEUS__URL"], delay_s=SLOW_S) as url:
        before = names(own)
        arguments = ("run", "--mode", "evict", "--policy", own.policy(POLICY), "--listen", "127.0.0.1:0")
        with own.process(*arguments, env={**TIMEOUTS, "REBALANCER_PROMETHEUS__URL": url}) as process:
            running, began = Running(own, process), time.monotonic()
            running.cured()
            cycles = process.messages("cycle")
            evicted = [move for move in process.messages("move") if move["result"] == "evicted"]
            scenario.shows(
                f"each request {SLOW_S:g} s late: cured after {time.monotonic() - began:.0f} s by {len(evicted)} evictions, "
                f"{len(cycles)} cycles, {len(running.failures())} of them failed"
            )
            # Before the first windows are whole, a cycle says that too little is known; none may end for want of an answer.
            early = ("known for", "found no series")
            assert [line["error"] for line in running.failures() if not any(words in line["error"] for words in early)] == []
            assert len(before - names(own)) == len(evicted) > 0
            assert process.terminate() == 0
