"""Two replicas of the service: one acts, one stands by, and what happens between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from rebalancer.errors import SettingsError
from rebalancer.runtime.session import candidacy, open_session
from rebalancer.simulate.world import updated
from tests.leadership.kit import give_back
from tests.leadership.replicas import ELECTED, LEASE, Replica, holder, replica, writes
from tests.support.embedded import Stage, bare_environment, eventually, stage

TAINT = {"key": "rebalancer.dev/hot", "value": "true", "effect": "PreferNoSchedule"}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own, own.ticking():
        give_back(own.cluster.world, namespace="default")
        yield own


def leading(made: Replica) -> Replica:
    made.start()
    eventually(lambda: made.leads)
    return made


def tainted(scene: Stage) -> list[str]:
    nodes = scene.cluster.world.objects("nodes")
    return [node["metadata"]["name"] for node in nodes if any(t["key"] == TAINT["key"] for t in node["spec"].get("taints") or [])]


def test_one_acts_and_the_other_stands_by(scene: Stage) -> None:
    """The standby is alive and ready, says that it does not lead, runs no cycle, and asks the API server for the Lease alone."""
    with replica(scene) as first, replica(scene) as second:
        leading(first)
        second.start()
        first.did_cycles()
        evicted = scene.evictions
        assert len(evicted) == len(set(evicted)) > 0
        assert (first.value("leader"), second.value("leader")) == (1, 0)
        eventually(lambda: second.ready() and second.alive())
        assert second.cycles() == 0
        assert second.service.tick() is None
        assert second.value("nodes", pool="default", **{"class": "hot"}) is None
        assert (first.watcher().status, second.watcher().status) == (200, 500)
        assert b"this replica stands by" in second.watcher().body
        assert holder(scene) == first.leadership.identity
        first.terminate()
        scene.forget()
        second.stop.set()
        eventually(lambda: second.finished)


def test_the_standby_asks_for_nothing_but_the_lease(scene: Stage) -> None:
    """It could take over, and costs next to nothing until then."""
    with replica(scene) as second:
        scene.cluster.world.replace(
            "leases",
            {"metadata": {"name": "rebalancer", "namespace": "default"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 600}},
        )
        second.start()
        eventually(lambda: len(scene.cluster.api.requests.all()) >= 4)
        assert {(r.method, r.path) for r in scene.cluster.api.requests.all()} == {("GET", LEASE)}
        assert scene.cluster.prometheus.requests.all() == []


def test_a_leader_that_ends_hands_over_at_once(scene: Stage) -> None:
    """The standby leads long before the lease would have ended, runs a cycle at once, and remembers what the first one moved."""
    with replica(scene) as first, replica(scene, settings={"REBALANCER_LEADER_ELECTION__LEASE_DURATION": "600s"}) as second:
        leading(first)
        second.start()
        first.did_cycles()
        moved = scene.evictions
        assert moved
        first.terminate()
        assert first.finished is True
        eventually(lambda: second.leads)
        second.did_cycles()
        assert second.value("leader") == 1
        assert len(scene.evictions) == len(set(scene.evictions))
        assert scene.cluster.world.get("leases", "rebalancer", "default")["spec"]["leaseTransitions"] == 2


def test_kl5_a_lease_lost_in_the_middle_of_a_plan_stops_before_the_next_write(scene: Stage) -> None:
    """The eviction under way is followed to its answer; then neither another one, nor the memory, nor an Event is written.

    The process lives on and campaigns again.
    """
    scene.cluster.faults.latency(2.5, method="POST", path="/eviction", count=1)
    with replica(scene) as only, structlog.testing.capture_logs() as logs:
        leading(only)
        eventually(lambda: scene.evictions, seconds=60)
        lease = scene.cluster.world.get("leases", "rebalancer", "default")
        with scene.cluster.world.lock:
            scene.cluster.world.replace("leases", updated(lease, "spec", {"holderIdentity": "thief", "leaseDurationSeconds": 600}))
        eventually(lambda: only.leadership.term is None)
        before = [f"{r.method} {r.path}" for r in writes(scene)]
        only.did_cycles()
        assert [f"{r.method} {r.path}" for r in writes(scene)] == before
        assert len(scene.evictions) == 1
        eventually(lambda: only.value("leader") == 0 and only.value("nodes", pool="default", **{"class": "hot"}) is None)
        assert only.ready()
        assert only.alive()
        assert only.watcher().status == 500
        with scene.cluster.world.lock:
            lease = scene.cluster.world.get("leases", "rebalancer", "default")
            scene.cluster.world.replace("leases", updated(lease, "spec", {"holderIdentity": ""}))
        eventually(lambda: only.leads)
        only.did_cycles(2)
        assert len(scene.evictions) == len(set(scene.evictions))
    told = [entry for entry in logs if entry.get("event") == "move" and entry["result"] == "abandoned"]
    assert told
    # The plan ends at whichever is known first: that the lease was lost, or that the eviction under way has no answer in time.
    assert all("the lease was lost" in entry["answer"] or "may yet be evicted" in entry["answer"] for entry in told)


def test_kl1_no_eviction_follows_when_every_connection_to_the_server_drops(scene: Stage) -> None:
    """A cycle that has its plan and writes the memory for long finds that it may not evict any more."""
    scene.cluster.faults.latency(8.0, method="POST", path="/configmaps", count=1)
    with replica(scene) as only:
        leading(only)
        eventually(lambda: scene.cluster.api.requests.of("POST", "/configmaps"), seconds=60)
        scene.cluster.faults.drop(path="/leases")
        eventually(lambda: only.leadership.term is None)
        only.did_cycles()
        assert scene.evictions == []
        assert only.value("cycles_total", result="abandoned") == 1


def test_a_standby_that_ends_leaves_the_leaders_taints_on_their_nodes(scene: Stage) -> None:
    """They are the leader's to judge."""
    with replica(scene) as first, replica(scene) as second:
        leading(first)
        second.start()
        first.did_cycles()
        marked = tainted(scene)
        assert marked
        second.terminate()
        assert second.finished is True
        assert tainted(scene) == marked
        first.terminate()
        assert tainted(scene) == []


def test_a_former_leader_that_ends_leaves_them_too(scene: Stage) -> None:
    """Its own taints as well: whoever leads now has seen them."""
    with replica(scene) as only:
        leading(only)
        only.did_cycles()
        marked = tainted(scene)
        assert marked
        with scene.cluster.world.lock:
            lease = scene.cluster.world.get("leases", "rebalancer", "default")
            scene.cluster.world.replace("leases", updated(lease, "spec", {"holderIdentity": "other", "leaseDurationSeconds": 600}))
        eventually(lambda: only.leadership.term is None)
        only.terminate()
        assert tainted(scene) == marked
        assert holder(scene) == "other"


def test_a_former_leader_stops_watching(scene: Stage) -> None:
    """Once a tick has found that it only stands by, no connection is open and no new one is made."""
    with replica(scene) as only:
        leading(only)
        only.did_cycles()
        watched = lambda: [r for r in scene.cluster.api.requests.all() if r.query.get("watch")]  # noqa: E731
        eventually(watched)
        with scene.cluster.world.lock:
            lease = scene.cluster.world.get("leases", "rebalancer", "default")
            scene.cluster.world.replace("leases", updated(lease, "spec", {"holderIdentity": "other", "leaseDurationSeconds": 600}))
        eventually(lambda: only.leadership.term is None)
        assert only.service.tick() is None
        settled = len(watched())
        count = len(scene.cluster.api.requests.of("GET", LEASE))
        eventually(lambda: len(scene.cluster.api.requests.of("GET", LEASE)) >= count + 6)
        assert len(watched()) == settled


def test_kl8_renewals_do_not_wait_behind_the_limit_of_the_cycle(scene: Stage) -> None:
    """One request in a hundred seconds is all that a cycle may send; the lease is taken and renewed on time all the same."""
    with replica(scene, settings={"REBALANCER_KUBERNETES__QPS": "0.01", "REBALANCER_KUBERNETES__BURST": "1"}) as only:
        leading(only)
        eventually(lambda: len(scene.cluster.api.requests.of("PUT", LEASE)) >= 5)
        assert only.leads
        assert scene.evictions == []


def test_kl9_a_wrong_configuration_raises_our_own_error(tmp_path: Path) -> None:
    """Nothing but the command line ends the process."""
    session = open_session(settings_file=None, flags={"kubeconfig": tmp_path / "missing"}, environ=bare_environment(ELECTED))
    with pytest.raises(SettingsError), candidacy(session):
        pass


def test_without_leader_election_there_is_no_candidacy(tmp_path: Path) -> None:
    """Outside of a cluster there is no other replica; nothing is asked of the API server for it."""
    session = open_session(settings_file=None, flags={"kubeconfig": tmp_path / "missing"}, environ=bare_environment())
    with candidacy(session) as leadership:
        assert leadership is None
