"""Two real processes: one is killed or asked to end in the middle of its work, and the other goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.simulate.faults import Act, Fault
from tests.leadership.kit import give_back
from tests.leadership.replicas import ELECTED, holder
from tests.support.embedded import Process, Stage, eventually, merged, spawned, stage

RUN = ("run", "--listen", "127.0.0.1:0", "--log-format", "json")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own, own.ticking():
        give_back(own.cluster.world, namespace="default")
        yield own


@contextlib.contextmanager
def started(scene: Stage, name: str, policy: Path) -> Iterator[Process]:
    folder = scene.folder / name
    folder.mkdir()
    with spawned(*RUN, "--policy", policy, env=merged(scene.env, ELECTED), folder=folder) as process:
        yield process


@contextlib.contextmanager
def pair(scene: Stage) -> Iterator[tuple[Process, Process]]:
    """A leader, and a standby that has found it."""
    policy = scene.policy("  interval: 10s\n  events: false\n")
    with started(scene, "first", policy) as first:
        eventually(lambda: first.messages("leading"), seconds=60)
        with started(scene, "second", policy) as second:
            eventually(lambda: second.messages("campaigning"), seconds=60)
            yield first, second


def identity(process: Process) -> str:
    return str(process.messages("campaigning")[0]["identity"])


def gone_pods(scene: Stage) -> list[str]:
    """UIDs of the pods that an eviction was asked for."""
    asked = scene.cluster.api.requests.of("POST", "/eviction")
    return [request.json()["deleteOptions"]["preconditions"]["uid"] for request in asked]  # type: ignore[index, call-overload]


def test_a_leader_killed_in_the_middle_of_a_plan_is_followed_by_the_other(scene: Stage) -> None:
    """No pod is evicted twice, and the standby leads once the lease has ended, and runs a cycle at once."""
    # The first eviction is carried out, the second hangs at the server: there the leader is killed.
    scene.cluster.faults.add(Fault(Act.HANG, method="POST", path="/eviction", count=1, skip=1, seconds=60.0))
    with pair(scene) as (first, second):
        eventually(lambda: len(scene.evictions) >= 2, seconds=60)
        assert identity(first) == holder(scene)
        first.popen.kill()
        first.wait()
        scene.cluster.faults.clear()
        eventually(lambda: holder(scene) == identity(second), seconds=60)
        eventually(lambda: second.messages("cycle"), seconds=60)
        assert second.terminate(seconds=20) == 0
        uids = gone_pods(scene)
        assert len(uids) == len(set(uids))
        assert scene.cluster.world.get("leases", "rebalancer", "default")["spec"]["leaseTransitions"] == 2
        assert holder(scene) == ""


def test_sigterm_hands_over_before_the_lease_ends(scene: Stage) -> None:
    """The leader ends with status 0 and an empty holder; the standby takes the lease and goes on, and evicts nothing twice."""
    with pair(scene) as (first, second):
        eventually(lambda: first.messages("cycle"), seconds=60)
        assert scene.evictions
        assert second.messages("cycle") == []
        assert first.terminate(seconds=20) == 0
        assert first.messages("the lease is given back")
        eventually(lambda: second.messages("leading"), seconds=60)
        eventually(lambda: second.messages("cycle"), seconds=60)
        puts = [r.json()["spec"]["holderIdentity"] for r in scene.cluster.api.requests.of("PUT", "/leases/")]  # type: ignore[index, call-overload]
        released = puts.index("")
        assert set(puts[:released]) == {identity(first)}
        assert set(puts[released + 1 :]) == {identity(second)}
        uids = gone_pods(scene)
        assert len(uids) == len(set(uids))
        assert second.terminate(seconds=20) == 0
