"""When the service counts as alive and as ready."""

from __future__ import annotations

import pytest

from rebalancer.runtime.health import Health


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def alive(health: Health) -> bool:
    return all(check.passed for check in health.live_checks())


def ready(health: Health) -> bool:
    return all(check.passed for check in health.ready_checks())


@pytest.mark.parametrize(("after", "expected"), [(0, True), (359, True), (361, False)])
def test_a_loop_that_was_silent_for_three_intervals_is_dead(clock: Clock, after: float, expected: bool) -> None:
    """The start counts as the first heartbeat."""
    health = Health(interval_s=120, clock=clock)
    clock.now += after
    assert alive(health) is expected


def test_a_heartbeat_starts_the_wait_anew(clock: Clock) -> None:
    """And may tell a new interval."""
    health = Health(interval_s=120, clock=clock)
    clock.now += 300
    health.beat(interval_s=600)
    clock.now += 1700
    assert alive(health)


def test_a_cycle_may_take_its_time_out_on_top(clock: Clock) -> None:
    """A slow cycle is given up by its own deadline, not by kubelet."""
    health = Health(interval_s=30, patience_s=300, clock=clock)
    clock.now += 389
    assert alive(health)
    clock.now += 2
    assert not alive(health)


def test_a_short_interval_leaves_a_minute(clock: Clock) -> None:
    """Three times ten seconds would kill a loop that merely waits for a list."""
    health = Health(interval_s=10, clock=clock)
    clock.now += 59
    assert alive(health)


def test_the_death_of_a_thread_is_the_death_of_the_process(clock: Clock) -> None:
    """Without the one that renews the Lease, nothing may be evicted any more."""
    running = [True]
    health = Health(interval_s=120, clock=clock)
    health.watch("leader", lambda: running[0])
    before = alive(health)
    running[0] = False
    assert (before, alive(health)) == (True, False)
    assert "[-] leader: stopped" in [str(check) for check in health.live_checks()]


def test_it_is_ready_after_the_first_observation(clock: Clock) -> None:
    """Not before the policy was read, nor before the cluster was seen."""
    health = Health(interval_s=120, clock=clock)
    start = ready(health)
    health.policy_valid()
    with_policy = ready(health)
    health.observed()
    assert (start, with_policy, ready(health)) == (False, False, True)


def test_without_prometheus_it_is_not_ready_and_says_why(clock: Clock) -> None:
    """The words of the failure are shown to whoever asks."""
    health = Health(interval_s=120, clock=clock)
    health.policy_valid()
    health.observed()
    health.prometheus_failed("no connection")
    assert not ready(health)
    assert "[-] prometheus: no connection" in [str(check) for check in health.ready_checks()]


def test_a_declared_degradation_is_ready_until_prometheus_is_back(clock: Clock) -> None:
    """It goes on reporting; the next whole observation ends it."""
    health = Health(interval_s=120, clock=clock)
    health.policy_valid()
    health.prometheus_failed("no connection")
    health.degraded("reporting requests only")
    assert ready(health)
    health.observed()
    assert "[+] prometheus: reachable" in [str(check) for check in health.ready_checks()]


def test_a_standby_is_ready(clock: Clock) -> None:
    """It observes nothing and could take over at once; a roll-out waits for it."""
    health = Health(interval_s=120, clock=clock)
    health.policy_valid()
    health.standby(True)
    standing_by = ready(health)
    health.standby(False)
    assert (standing_by, ready(health)) == (True, False)
