"""The token bucket: never faster than allowed, and fair to all threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.kube.limiter import TokenBucket


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(
    qps=st.floats(min_value=0.5, max_value=50),
    burst=st.integers(min_value=1, max_value=20),
    pauses=st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=60),
)
def test_no_window_sees_more_than_burst_and_rate(qps: float, burst: int, pauses: list[float]) -> None:
    """Between any two tokens, burst + qps x time bounds how many were given."""
    clock = Clock()
    bucket = TokenBucket(qps, burst, clock=clock, sleep=clock.sleep)
    deadline = Deadline.after(1e9, clock=clock)
    given_at = []
    for pause in pauses:
        clock.sleep(pause)
        assert bucket.take(deadline)
        given_at.append(clock.now)
    for first, start in enumerate(given_at):
        for last in range(first, len(given_at)):
            assert last - first + 1 <= burst + qps * (given_at[last] - start) + 1e-6


def test_a_token_after_the_deadline_is_not_taken() -> None:
    """The refused one leaves the bucket as it was."""
    clock = Clock()
    bucket = TokenBucket(1.0, 1, clock=clock, sleep=clock.sleep)
    assert bucket.take(Deadline.after(10.0, clock=clock))
    assert not bucket.take(Deadline.after(0.5, clock=clock))
    clock.sleep(1.0)
    assert bucket.try_take()
    assert not bucket.try_take()


def test_a_held_bucket_gives_nothing_until_the_time_is_over() -> None:
    """Tokens that were there do not help; a shorter hold does not shorten a longer one."""
    clock = Clock()
    bucket = TokenBucket(10.0, 10, clock=clock, sleep=clock.sleep)
    bucket.hold(5.0)
    bucket.hold(1.0)
    assert not bucket.try_take()
    assert bucket.take(Deadline.after(60.0, clock=clock))
    assert clock.now == 105.0


def test_threads_share_one_rate() -> None:
    """Twenty takes by five threads: as much waiting as if one had taken them all."""
    lock, waits = threading.Lock(), []

    def sleep(seconds: float) -> None:
        with lock:
            waits.append(seconds)

    bucket = TokenBucket(2.0, 4, clock=lambda: 0.0, sleep=sleep)
    threads = [threading.Thread(target=lambda: [bucket.take(Deadline.after(60.0)) for _ in range(4)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [0.5 * turn for turn in range(1, 17)]


def test_a_stop_ends_the_wait_for_a_token(stopped: Deadline) -> None:
    """No thread hangs in the bucket when the process ends."""
    with pytest.raises(Interrupted):
        TokenBucket(1.0, 1).take(stopped)


@pytest.mark.parametrize(("qps", "burst"), [(0.0, 1), (-1.0, 1), (float("nan"), 1), (1.0, 0)])
def test_a_bucket_that_could_never_give_is_refused(qps: float, burst: int) -> None:
    """Rates are positive numbers."""
    with pytest.raises(ValueError, match="qps > 0"):
        TokenBucket(qps, burst)
