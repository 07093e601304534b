"""A few jobs at a time, and nobody waits for one that hangs."""

from __future__ import annotations

import threading

import pytest

from rebalancer.collect.in_flight import run_jobs
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, MetricsMissing


def test_results_come_in_the_order_of_the_jobs() -> None:
    """Whichever ends first."""
    first = threading.Event()

    def slow() -> str:
        first.wait(10)
        return "slow"

    def quick() -> str:
        first.set()
        return "quick"

    assert run_jobs([slow, quick], in_flight=2, deadline=Deadline.after(10)) == ["slow", "quick"]


def test_no_more_jobs_run_at_once_than_allowed() -> None:
    """With room for two, the third waits."""
    lock, running, most = threading.Lock(), [0], [0]

    def job() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.01)
        with lock:
            running[0] -= 1

    run_jobs([job] * 8, in_flight=2, deadline=Deadline.after(10))
    assert most[0] <= 2


def test_a_job_that_hangs_past_the_deadline_is_left_behind() -> None:
    """Its result is None, the others have theirs."""
    release = threading.Event()

    def hanging() -> str:
        release.wait(10)
        return "late"

    clock = iter(range(10_000))
    deadline = Deadline(at=3.0, clock=lambda: float(next(clock)))
    assert run_jobs([lambda: "done", hanging], in_flight=2, deadline=deadline) == ["done", None]
    release.set()


def test_a_stop_does_not_wait_for_a_job_that_hangs() -> None:
    """SIGTERM must not wait for a socket."""
    release, deadline = threading.Event(), Deadline.after(60)

    def hanging() -> None:
        deadline.stop.set()
        release.wait(10)

    with pytest.raises(Interrupted):
        run_jobs([hanging], in_flight=1, deadline=deadline)
    release.set()


def test_the_first_error_in_the_order_of_the_jobs_is_raised() -> None:
    """Not the first in time."""

    def fail(name: str) -> None:
        raise MetricsMissing(name)

    with pytest.raises(MetricsMissing, match="a"):
        run_jobs([lambda: fail("a"), lambda: fail("b")], in_flight=2, deadline=Deadline.after(10))


def test_no_jobs_are_no_work() -> None:
    """An empty list is answered at once."""
    assert run_jobs([], in_flight=2, deadline=Deadline.after(10)) == []
