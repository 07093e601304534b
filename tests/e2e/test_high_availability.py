"""Two replicas on a real Lease: the leader dies by SIGKILL in the middle of its plan, the other one goes on and repeats nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.api import until
from tests.e2e.audit import Audit, audited
from tests.e2e.ground import Ground
from tests.e2e.heat import REPLICAS, SHOP, heated, hot
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row
from tests.e2e.test_cure import POLICY
from tests.support.embedded import Process

NAMESPACE = "e2e-replicas"
ELECTED = {
    "REBALANCER_NAMESPACE": NAMESPACE,
    "REBALANCER_LEADER_ELECTION__ENABLED": "true",
    "REBALANCER_LEADER_ELECTION__LEASE_DURATION": "4s",
    "REBALANCER_LEADER_ELECTION__RENEW_DEADLINE": "2.5s",
    "REBALANCER_LEADER_ELECTION__RETRY_PERIOD": "0.5s",
    # So few requests a second that the moves of a plan take seconds, in which the leader can be killed.
    "REBALANCER_KUBERNETES__QPS": "4",
    "REBALANCER_KUBERNETES__BURST": "4",
}
TAKEOVER_S = 20.0
CURE_S = 240.0
COOLDOWN_S = 30.0
"""What the policy lets a workload rest."""


@dataclass(frozen=True)
class Pair:
    ground: Ground
    audit: Audit
    replicas: tuple[Process, Process]

    @property
    def leaders(self) -> list[Process]:
        return [replica for replica in self.replicas if replica.popen.poll() is None and replica.messages("leading")]


@pytest.fixture
def pair(plane: ControlPlane, tmp_path: Path) -> Iterator[Pair]:
    """Two replicas that run beside each other on a hot cluster; one of them leads."""
    with audited(plane) as audit, heated(plane, tmp_path) as own:
        own.namespace(NAMESPACE)
        arguments = ("run", "--mode", "evict", "--policy", own.policy(POLICY), "--listen", "127.0.0.1:0")
        with own.process(*arguments, env=ELECTED) as first, own.process(*arguments, env=ELECTED) as second:
            yield Pair(own, audit, (first, second))


def test_a_leader_that_is_killed_in_the_middle_of_a_plan_has_a_successor(pair: Pair, scenario: Row) -> None:
    """Availability: the leader is killed in the middle of a plan; the other goes on and evicts no pod twice."""
    own = pair.ground
    (leader,) = until(lambda: pair.leaders, "one of two leads", seconds=60)
    (standby,) = (replica for replica in pair.replicas if replica is not leader)
    until(lambda: evicted(leader), "the first eviction of a plan", seconds=CURE_S, step=0.02)
    leader.popen.kill()
    killed = time.monotonic()
    leader.wait()
    before = pair.audit.evictions()
    assert hot(own), "the plan was finished before its leader was killed"
    until(lambda: standby.messages("leading"), "the other one leads", seconds=TAKEOVER_S)
    until(lambda: standby.messages("cycle"), "its first cycle", seconds=TAKEOVER_S)
    after_s = time.monotonic() - killed
    scenario.shows(f"killed after {len(before)} evictions with nodes hot; the other's first cycle ended {after_s:.1f} s later")
    assert after_s <= TAKEOVER_S
    try:
        until(lambda: not hot(own), "the cure by the other one", seconds=CURE_S, step=0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}: {standby.err.read_text()[-4000:]}") from error
    own.settled(SHOP, REPLICAS)
    assert standby.terminate() == 0
    evictions = pair.audit.evictions()
    scenario.shows(f"cured by {len(evictions) - len(before)} more; {len(evictions)} evictions of {len(of_pods(pair))} pods")
    assert set(of_pods(pair).values()) == {1}, "a pod was evicted twice"
    assert hasty(pair) == []


def evicted(replica: Process) -> bool:
    return any(move["result"] == "evicted" for move in replica.messages("move"))


def of_pods(pair: Pair) -> Counter[str]:
    """Pod -> successful evictions; the names of a ReplicaSet's pods never come back."""
    return Counter(each.name for each in pair.audit.evictions())


def hasty(pair: Pair) -> list[str]:
    """Workloads that were evicted from again before their cooldown was over, whoever led."""
    last: dict[str, float] = {}
    found = []
    for each in pair.audit.evictions():
        workload, at = each.name.rsplit("-", 2)[0], each.seconds
        if at - last.get(workload, -COOLDOWN_S) < COOLDOWN_S:
            found.append(each.words)
        last[workload] = at
    return found
