"""Campaigns against an API server that drops, hangs, refuses and forgets. Names carry the ids of the faults they are free of."""

from __future__ import annotations

import threading

import msgspec
import pytest
import structlog

from rebalancer.kube.lease import LeaseRecord
from rebalancer.kube.limiter import TokenBucket
from rebalancer.runtime.election import Timing
from rebalancer.runtime.leadership import new_identity, steady_clock
from rebalancer.simulate.http_server import Request
from tests.leadership.kit import LEASES, NAME, NAMESPACE, PATH, Candidate, Cluster, give_back
from tests.support.embedded import eventually

CALM = Timing(lease_s=9.0, renew_s=6.0, retry_s=0.3)
"""Long enough that a busy machine loses nothing by itself."""


class HandClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def leads(candidate: Candidate) -> None:
    eventually(candidate.began.is_set)
    assert candidate.leads


@pytest.fixture(autouse=True)
def _free(cluster: Cluster) -> None:
    give_back(cluster.world)


def renewals(cluster: Cluster, holder: str) -> list[Request]:
    """The writes of one candidate over an existing record."""
    return [r for r in cluster.api.requests.of("PUT", PATH) if msgspec.json.decode(r.body)["spec"]["holderIdentity"] == holder]


def test_the_first_candidate_leads_at_once(cluster: Cluster) -> None:
    """Its last holder gave it back."""
    first = cluster.candidate("a", timing=CALM).start()
    leads(first)
    assert cluster.holder == "a"
    assert first.leadership.valid_for(3.0)


def test_the_second_candidate_stands_by(cluster: Cluster) -> None:
    """It reads, writes nothing, and may write nothing."""
    leads(cluster.candidate("a", timing=CALM).start())
    second = cluster.candidate("b", timing=CALM).start()
    eventually(lambda: len(cluster.api.requests.of("GET", PATH)) > 4)
    assert second.leadership.term is None
    assert not second.leadership.valid_for(0.0)
    assert renewals(cluster, "b") == []


def test_kl1_a_leader_whose_connections_all_drop_stops_once_and_campaigns_again(cluster: Cluster) -> None:
    """Within the renew deadline its cycle is stopped and it may write no more; when the server is back it leads a new term."""
    candidate = cluster.candidate("a").start()
    leads(candidate)
    term = candidate.leadership.term
    assert term is not None
    assert term.refusal() == ""
    cluster.faults.drop(path=LEASES)
    assert term.stop.wait(20)
    eventually(candidate.ended.is_set)
    assert candidate.told == ["began", "ended: it could not be renewed for 1 s"]
    assert term.refusal() == "the lease was lost: it could not be renewed for 1 s"
    assert not candidate.leads
    cluster.faults.clear()
    eventually(lambda: candidate.leads)
    assert candidate.leadership.term is not term
    assert term.refusal() == "the lease was lost: it could not be renewed for 1 s"


def test_kl2_a_follower_survives_a_dropped_connection(cluster: Cluster) -> None:
    """It stays a follower and takes the lease when it is free."""
    leader = cluster.candidate("a", timing=CALM).start()
    leads(leader)
    follower = cluster.candidate("b", timing=CALM).start()
    cluster.faults.drop(method="GET", path=LEASES, count=2)
    eventually(lambda: len(cluster.api.requests.of("GET", PATH)) > 6)
    assert follower.told == []
    leader.stop()
    leads(follower)


def test_kl3_a_leader_whose_server_hangs_knows_that_it_leads_no_more(cluster: Cluster) -> None:
    """The request is still open when the renew deadline passes, well before the lease ends."""
    clock = HandClock()
    candidate = cluster.candidate("a", timing=Timing(lease_s=15, renew_s=10, retry_s=2), clock=clock).start()
    leads(candidate)
    cluster.faults.hang(path=LEASES)
    term = candidate.leadership.term
    assert term is not None
    clock.now += 9.9
    assert candidate.leadership.valid_for(5.0)
    assert not candidate.leadership.valid_for(5.2)
    clock.now += 0.2
    assert not candidate.leadership.valid_for(0.0)
    assert term.stop.is_set()
    assert term.refusal() == "the lease was lost: it could not be renewed for 10 s"


def test_kl3_the_watch_ends_the_term_while_the_campaign_is_stuck(cluster: Cluster) -> None:
    """Even in what has no time-out at all, such as a name look-up or a credential plugin."""
    candidate = cluster.candidate("a")
    stuck, lease = threading.Event(), candidate.leadership._lease
    write = lease.write

    def hang_when_renewing(claim: object, *, at: float) -> LeaseRecord:
        if cluster.holder:
            stuck.wait(60)
        return write(claim, at=at)  # type: ignore[arg-type]

    lease.write = hang_when_renewing  # type: ignore[method-assign]
    candidate.start()
    try:
        assert candidate.ended.wait(20)
        assert not candidate.leads
        assert candidate.told == ["began", "ended: it could not be renewed for 1 s"]
    finally:
        stuck.set()


def test_kl3_two_candidates_never_lead_at_once_while_the_server_misbehaves(cluster: Cluster) -> None:
    """Hangs, drops before and after the write, conflicts: looked at all the time, on real connections."""
    pair = [cluster.candidate(name).start() for name in "ab"]
    overlaps = []
    for fault in (
        lambda: cluster.faults.hang(1.5, path=LEASES, count=2),
        lambda: cluster.faults.drop(path=LEASES, after=True, count=6),
        lambda: cluster.faults.status(409, method="PUT", path=LEASES, count=4),
        lambda: cluster.faults.hang(3.0, method="PUT", path=LEASES, count=1),
        lambda: cluster.faults.drop(path=LEASES, count=12),
    ):
        fault()
        until = steady_clock() + 2.0
        while steady_clock() < until:
            # The first is asked again after the second: only if it led all the while did both lead at once.
            if pair[0].leads and pair[1].leads and pair[0].leads:
                overlaps.append(steady_clock())
            threading.Event().wait(0.002)
    cluster.faults.clear()
    eventually(lambda: pair[0].leads or pair[1].leads)
    assert overlaps == []


def test_kl4_a_leader_that_ends_gives_the_lease_back(cluster: Cluster) -> None:
    """The holder is empty for the shortest duration, and the standby's next look takes it."""
    leader, standby = cluster.candidate("a", timing=CALM).start(), cluster.candidate("b", timing=CALM)
    leads(leader)
    standby.start()
    eventually(lambda: len(cluster.api.requests.of("GET", PATH)) > 3)
    leader.stop(release=True)
    leads(standby)
    requests = cluster.api.requests.all()
    released = next(i for i, r in enumerate(requests) if r.method == "PUT" and msgspec.json.decode(r.body)["spec"]["holderIdentity"] == "")
    assert msgspec.json.decode(requests[released].body)["spec"]["leaseDurationSeconds"] == 1
    after = [r.method for r in requests[released + 1 :]]
    assert after[: after.index("PUT")] in (["GET"], [])


def test_a_leader_that_ends_with_work_under_way_keeps_the_lease(cluster: Cluster) -> None:
    """Nobody may lead before it has run out."""
    leader = cluster.candidate("a", timing=CALM).start()
    leads(leader)
    leader.stop(release=False)
    assert not leader.leads
    assert cluster.holder == "a"


def test_a_lease_that_was_edited_meanwhile_is_given_back_all_the_same(cluster: Cluster) -> None:
    """The release is refused once, looked at, and sent again."""
    leader = cluster.candidate("a", timing=Timing(lease_s=60, renew_s=50, retry_s=40)).start()
    leads(leader)
    cluster.edit(metadata={"labels": {"team": "platform"}})
    leader.stop(release=True)
    assert cluster.holder == ""
    assert cluster.stored["metadata"]["labels"] == {"team": "platform"}


def test_a_standby_that_ends_leaves_the_lease_alone(cluster: Cluster) -> None:
    """It is another's."""
    leads(cluster.candidate("a", timing=CALM).start())
    standby = cluster.candidate("b", timing=CALM).start()
    eventually(lambda: len(cluster.api.requests.of("GET", PATH)) > 2)
    standby.stop(release=True)
    assert cluster.holder == "a"


def test_kl5_a_lease_that_another_takes_stops_the_term_at_the_next_renewal(cluster: Cluster) -> None:
    """Whatever is left of it by the own clock."""
    candidate = cluster.candidate("a", timing=CALM).start()
    leads(candidate)
    term = candidate.leadership.term
    assert term is not None
    cluster.edit(spec={"holderIdentity": "thief"})
    assert term.stop.wait(20)
    assert term.refusal() == "the lease was lost: thief holds it now"
    assert cluster.holder == "thief"


def test_kl6_hand_overs_are_counted_and_renewals_keep_the_time_of_acquisition(cluster: Cluster) -> None:
    """One transition for each holder."""
    wall = iter(range(1_800_000_000, 1_900_000_000))
    first = cluster.candidate("a", timing=CALM, wall=lambda: float(next(wall))).start()
    leads(first)
    acquired = cluster.stored["spec"]["acquireTime"]
    eventually(lambda: len(renewals(cluster, "a")) >= 2)
    spec = cluster.stored["spec"]
    assert (spec["acquireTime"], spec["leaseTransitions"]) == (acquired, 1)
    assert spec["renewTime"] > acquired
    first.stop()
    second = cluster.candidate("b", timing=CALM, wall=lambda: float(next(wall))).start()
    leads(second)
    assert cluster.stored["spec"]["acquireTime"] > acquired
    second.stop()
    leads(cluster.candidate("c", timing=CALM, wall=lambda: float(next(wall))).start())
    assert cluster.stored["spec"]["leaseTransitions"] == 3


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_kl7_a_wall_clock_that_jumps_changes_nothing(cluster: Cluster, jump_s: float) -> None:
    """The leader goes on, the standby stands by, whichever of them jumps."""
    walls = {"a": 1_800_000_000.0, "b": 1_800_000_000.0}
    leader = cluster.candidate("a", timing=CALM, wall=lambda: walls["a"]).start()
    leads(leader)
    standby = cluster.candidate("b", timing=CALM, wall=lambda: walls["b"]).start()
    for who in walls:
        walls[who] += jump_s
        count = len(renewals(cluster, "a"))
        eventually(lambda count=count: len(renewals(cluster, "a")) >= count + 3)
    assert (leader.told, standby.told) == (["began"], [])
    assert leader.leads


def test_kl8_requests_go_through_the_client_that_was_passed_in(cluster: Cluster) -> None:
    """Its host and its token; every request names them."""
    cluster.api.rights.token = "a-token"
    candidate = cluster.candidate("a", timing=CALM, client=cluster.client(token="a-token")).start()
    leads(candidate)
    assert {request.headers["authorization"] for request in cluster.api.requests.all()} == {"Bearer a-token"}


def test_kl8_renewals_do_not_wait_behind_an_empty_bucket(cluster: Cluster) -> None:
    """The limit of the cycle's own client is used up for minutes; the lease is renewed on time."""
    bucket = TokenBucket(0.01, 1)
    cluster.client(bucket=bucket)
    assert bucket.try_take()
    candidate = cluster.candidate("a", timing=CALM).start()
    leads(candidate)
    eventually(lambda: len(renewals(cluster, "a")) >= 3)
    assert not bucket.try_take()
    assert candidate.told == ["began"]


def test_a_right_that_is_missing_is_told_once_with_its_rule(cluster: Cluster) -> None:
    """Not at every try; and the campaign goes on until somebody grants it."""
    cluster.faults.status(403, path=LEASES)
    with structlog.testing.capture_logs() as logs:
        candidate = cluster.candidate("a").start()
        eventually(lambda: len(cluster.api.requests.all()) >= 4)
        cluster.faults.clear()
        leads(candidate)
    told = [entry["error"] for entry in logs if entry["event"] == "the lease cannot be read or written"]
    assert len(told) == 1
    assert 'apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]' in told[0]
    assert [entry["event"] for entry in logs if "again" in entry["event"]] == ["the lease can be read and written again"]


@pytest.mark.parametrize("spoil", ["login page", "truncated", "throttled", "500"])
def test_answers_that_are_no_lease_are_survived(cluster: Cluster, spoil: str) -> None:
    """Each costs a try, and none the campaign."""
    faults = {
        "login page": lambda: cluster.faults.login_page(path=LEASES, count=3),
        "truncated": lambda: cluster.faults.truncate(path=LEASES, count=3),
        "throttled": lambda: cluster.faults.status(429, path=LEASES, count=3, retry_after=1),
        "500": lambda: cluster.faults.status(500, path=LEASES, count=3),
    }
    faults[spoil]()
    leads(cluster.candidate("a").start())


def test_an_answer_that_is_lost_after_the_write_costs_no_leadership(cluster: Cluster) -> None:
    """The next write is refused, the record is read, and it names us."""
    candidate = cluster.candidate("a", timing=CALM).start()
    leads(candidate)
    cluster.faults.drop(method="PUT", path=LEASES, after=True, count=1)
    count = len(renewals(cluster, "a"))
    eventually(lambda: len(renewals(cluster, "a")) >= count + 4)
    assert candidate.told == ["began"]


def test_a_defect_in_a_callback_or_a_request_does_not_end_the_campaign(cluster: Cluster) -> None:
    """It is logged; a campaign that dies would leave nobody to lead."""
    candidate = cluster.candidate("a", timing=CALM)
    read, failures = candidate.leadership._lease.read, iter([True, False])

    def fail_once() -> LeaseRecord | None:
        if next(failures, False):
            raise RuntimeError("a defect")
        return read()

    def began() -> None:
        candidate.began.set()
        raise RuntimeError("a defect")

    candidate.leadership._lease.read = fail_once  # type: ignore[method-assign]
    with structlog.testing.capture_logs() as logs:
        candidate.leadership.start(began=began, ended=lambda reason: candidate.ended.set())
        leads(candidate)
        eventually(lambda: any("could not be followed" in entry["event"] for entry in logs))
    assert any("met a defect" in entry["event"] for entry in logs)
    assert candidate.leadership.alive()


def test_a_hung_campaign_counts_as_dead(cluster: Cluster) -> None:
    """So that the process is started anew, after a minute without a step."""
    clock = HandClock()
    candidate = cluster.candidate("a", clock=clock)
    assert not candidate.leadership.alive()
    candidate.start()
    leads(candidate)
    cluster.faults.hang(path=LEASES)
    eventually(lambda: renewals(cluster, "a"))
    assert candidate.leadership.alive()
    clock.now += 61.0
    assert not candidate.leadership.alive()


def test_a_refusal_says_how_long_the_lease_lasts_and_what_a_write_needs(cluster: Cluster) -> None:
    """Between the last moment for a write and the renew deadline lies nothing, unless the clock is exactly there."""
    clock = HandClock()
    candidate = cluster.candidate("a", timing=Timing(lease_s=15, renew_s=10, retry_s=2), clock=clock).start()
    leads(candidate)
    cluster.faults.hang(path=LEASES)
    term = candidate.leadership.term
    assert term is not None
    term.reserve_s = 9.0
    clock.now += 8.8
    assert term.refusal() == "the lease ends in 6.2 s, an eviction needs 9 s"


def test_interrupting_stops_the_cycle_and_keeps_the_lease(cluster: Cluster) -> None:
    """While the cycle ends, nobody else may lead."""
    candidate = cluster.candidate("a", timing=CALM).start()
    leads(candidate)
    term = candidate.leadership.term
    assert term is not None
    candidate.leadership.interrupt()
    assert term.stop.is_set()
    assert "stopped on request" in term.interruption().message
    count = len(renewals(cluster, "a"))
    eventually(lambda: len(renewals(cluster, "a")) > count)
    assert candidate.leads


def test_no_two_processes_bear_the_same_name() -> None:
    """A candidate knows its own writes by its name alone."""
    assert len({new_identity() for _ in range(100)}) == 100


def test_a_deleted_lease_ends_the_leadership_and_is_made_anew(cluster: Cluster) -> None:
    """For nobody at first: the others wait for it as long as for a holder, and so does whoever had it."""
    candidate = cluster.candidate("a").start()
    leads(candidate)
    with cluster.world.lock:
        cluster.world.remove("leases", NAME, NAMESPACE)
    assert candidate.ended.wait(20)
    assert candidate.told[:2] == ["began", "ended: it was deleted"]
    eventually(lambda: candidate.leads)
