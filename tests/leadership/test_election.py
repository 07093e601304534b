"""The rules of the election, one observation at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.kube.lease import LeaseClaim, LeaseRecord
from rebalancer.runtime.election import Action, Due, Election, Outrun, Read, Seen, Standing, Timing, Unknown, Wait, Write, Written

ELECTION = Election("me", Timing(lease_s=15, renew_s=10, retry_s=2))
OTHERS = LeaseRecord(holder="other", duration_s=15, acquired="t0", renewed="t0", transitions=3, version="7")
MINE = replace(OTHERS, holder="me", version="8")
MADE = replace(OTHERS, holder="nobody, made by me", transitions=0, version="1")


def leading(*, renewed_at: float = 100.0) -> Standing:
    standing, _ = ELECTION.step(Standing(), Written(MINE, sent_at=renewed_at), now=renewed_at + 0.1)
    assert ELECTION.leads(standing, now=renewed_at + 0.1)
    return standing


def claimed(action: Action) -> LeaseClaim:
    assert isinstance(action, Write), action
    return action.claim


def following(*, seen_at: float = 100.0) -> Standing:
    standing, action = ELECTION.step(Standing(), Seen(OTHERS), now=seen_at)
    assert isinstance(action, Wait)
    return standing


def test_a_candidate_begins_by_reading() -> None:
    """It knows nothing, so it claims nothing."""
    assert ELECTION.step(Standing(), Due(), now=100.0)[1] == Read()


def test_a_lease_that_is_not_there_is_made_for_nobody() -> None:
    """A new installation, and one whose Lease was deleted while its leader still leads, look the same."""
    standing, action = ELECTION.step(Standing(), Seen(None), now=100.0)
    claim = claimed(action)
    assert claim == LeaseClaim(over=None, holder="nobody, made by me", duration_s=15, transitions=0, acquires=False)
    standing, action = ELECTION.step(standing, Written(MADE, sent_at=100.0), now=100.1)
    assert isinstance(action, Wait)
    assert not ELECTION.leads(standing, now=100.1)
    assert ELECTION.release(standing) is None


@pytest.mark.parametrize("maker", ["me", "other"])
def test_a_lease_that_was_made_for_nobody_is_taken_after_its_duration(maker: str) -> None:
    """By its maker as by any other; and its first holder is no change of holders."""
    made = replace(MADE, holder=f"nobody, made by {maker}")
    standing, _ = ELECTION.step(Standing(), Seen(made), now=100.0)
    assert isinstance(ELECTION.step(standing, Seen(made), now=114.9)[1], Wait)
    claim = claimed(ELECTION.step(standing, Seen(made), now=115.0)[1])
    assert claim == LeaseClaim(over=made, holder="me", duration_s=15, transitions=0, acquires=True)


def test_a_released_lease_is_taken_at_once() -> None:
    """An empty holder has nothing to lose."""
    released = replace(OTHERS, holder="", duration_s=1)
    claim = claimed(ELECTION.step(Standing(), Seen(released), now=100.0)[1])
    assert (claim.over, claim.transitions, claim.acquires) == (released, 4, True)


def test_a_record_that_was_just_met_is_waited_for_however_old_its_times_are() -> None:
    """Nobody's wall clock is compared with ours: what counts is how long the record stays the same before our eyes."""
    assert isinstance(ELECTION.step(Standing(), Seen(replace(OTHERS, renewed="1970-01-01T00:00:00.000000Z")), now=100.0)[1], Wait)


@pytest.mark.parametrize(("after_s", "taken"), [(14.9, False), (15.0, True), (60.0, True)])
def test_a_record_that_does_not_change_is_taken_after_its_duration(after_s: float, taken: bool) -> None:
    """From the moment at which it was first seen as it is."""
    action = ELECTION.step(following(), Seen(OTHERS), now=100.0 + after_s)[1]
    assert isinstance(action, Write) is taken


def test_a_take_over_counts_a_transition_and_names_the_record_it_replaces() -> None:
    """So that it is refused when the holder renews in the same moment."""
    claim = claimed(ELECTION.step(following(), Seen(OTHERS), now=116.0)[1])
    assert (claim.over, claim.transitions, claim.acquires) == (OTHERS, 4, True)


def test_any_write_of_another_starts_the_wait_anew() -> None:
    """Even one that changed nothing but the version: it is a sign of life."""
    standing, _ = ELECTION.step(following(), Seen(replace(OTHERS, version="8")), now=114.0)
    assert isinstance(ELECTION.step(standing, Seen(replace(OTHERS, version="8")), now=128.9)[1], Wait)
    assert isinstance(ELECTION.step(standing, Seen(replace(OTHERS, version="8")), now=129.0)[1], Write)


def test_the_duration_that_the_holder_promised_is_waited_for_not_ours() -> None:
    """Two versions with other settings may meet during a roll-out."""
    longer = replace(OTHERS, duration_s=60)
    standing, _ = ELECTION.step(Standing(), Seen(longer), now=100.0)
    assert isinstance(ELECTION.step(standing, Seen(longer), now=159.0)[1], Wait)
    assert isinstance(ELECTION.step(standing, Seen(longer), now=160.0)[1], Write)


def test_a_holder_that_names_no_duration_gets_ours() -> None:
    """Zero seconds would make its lease anybody's."""
    standing, _ = ELECTION.step(Standing(), Seen(replace(OTHERS, duration_s=0)), now=100.0)
    assert isinstance(ELECTION.step(standing, Seen(replace(OTHERS, duration_s=0)), now=114.0)[1], Wait)


@pytest.mark.parametrize("last_seen", [OTHERS, replace(OTHERS, holder="", duration_s=1), MINE])
def test_a_lease_that_was_deleted_is_made_anew_and_waited_for(last_seen: LeaseRecord) -> None:
    """Whoever held it when it was deleted, seen by us or not, may not know of it yet, and still be writing."""
    standing, action = ELECTION.step(replace(following(), record=last_seen), Seen(None), now=110.0)
    claim = claimed(action)
    assert (claim.over, claim.holder, claim.transitions) == (None, "nobody, made by me", 4)
    assert ELECTION.release(standing) is None


def test_a_lease_that_comes_back_after_its_deletion_is_a_record_like_any_other() -> None:
    """It has a version again, and a holder to wait for."""
    standing, _ = ELECTION.step(following(), Seen(None), now=110.0)
    standing, _ = ELECTION.step(standing, Seen(replace(OTHERS, version="9")), now=112.0)
    assert isinstance(ELECTION.step(standing, Seen(replace(OTHERS, version="9")), now=126.9)[1], Wait)
    assert isinstance(ELECTION.step(standing, Seen(replace(OTHERS, version="9")), now=127.0)[1], Write)


def test_leading_counts_from_when_the_write_was_sent() -> None:
    """An answer that took long is old when it comes."""
    standing, _ = ELECTION.step(Standing(), Written(MINE, sent_at=100.0), now=109.0)
    assert ELECTION.leads(standing, now=109.9)
    assert not ELECTION.leads(standing, now=110.0)


def test_a_confirmation_that_comes_too_late_begins_no_leadership() -> None:
    """The next read finds our own name, and the next write is confirmed in time."""
    standing, action = ELECTION.step(Standing(), Written(MINE, sent_at=100.0), now=110.0)
    assert not ELECTION.leads(standing, now=110.0)
    assert isinstance(action, Wait)
    assert claimed(ELECTION.step(standing, Seen(MINE), now=112.0)[1]).acquires is False


def test_a_leader_renews_over_the_record_it_wrote_without_reading_it() -> None:
    """One request a period, guarded by the version; neither the count nor the time of acquisition moves."""
    claim = claimed(ELECTION.step(leading(), Due(), now=102.0)[1])
    assert (claim.over, claim.transitions, claim.acquires) == (MINE, 3, False)


def test_a_leader_that_is_outrun_looks_who_it_was() -> None:
    """A label that somebody put on the Lease is no reason to give up."""
    standing, action = ELECTION.step(leading(), Outrun(), now=102.0)
    assert action == Read()
    labelled = replace(MINE, version="9")
    standing, action = ELECTION.step(standing, Seen(labelled), now=102.1)
    assert claimed(action).over == labelled
    assert ELECTION.leads(standing, now=102.1)


def test_a_leader_that_is_outrun_again_pauses() -> None:
    """Two writers must not race at the speed of the network."""
    standing, _ = ELECTION.step(leading(), Outrun(), now=102.0)
    standing, _ = ELECTION.step(standing, Seen(replace(MINE, version="9")), now=102.1)
    assert isinstance(ELECTION.step(standing, Outrun(), now=102.2)[1], Wait)


def test_a_leader_that_reads_another_name_has_lost() -> None:
    """At once, whatever its own clock says is left."""
    standing, _ = ELECTION.step(leading(), Seen(OTHERS), now=101.0)
    assert not ELECTION.leads(standing, now=101.0)
    assert standing.lost == "other holds it now"


def test_a_leader_whose_lease_was_deleted_has_lost() -> None:
    """At once, by its own look or by what another made of it; and it makes the Lease anew like anybody."""
    standing, action = ELECTION.step(leading(), Seen(None), now=101.0)
    assert not ELECTION.leads(standing, now=101.0)
    assert standing.lost == "it was deleted"
    assert claimed(action).holder == "nobody, made by me"
    standing, action = ELECTION.step(leading(), Seen(replace(MADE, holder="nobody, made by other")), now=101.0)
    assert not ELECTION.leads(standing, now=101.0)
    assert standing.lost == "it was deleted"
    assert isinstance(action, Wait)


def test_a_leader_without_answers_has_lost_at_the_renew_deadline() -> None:
    """Each try without an answer leaves the last confirmation as it is."""
    standing = leading(renewed_at=100.0)
    for now in (102.0, 104.0, 106.0, 108.0):
        standing, action = ELECTION.step(standing, Due(), now=now)
        assert isinstance(action, Write)
        standing, _ = ELECTION.step(standing, Unknown(), now=now + 1.8)
    assert ELECTION.leads(standing, now=109.99)
    standing, action = ELECTION.step(standing, Due(), now=110.0)
    assert action == Read()
    assert standing.lost == "it could not be renewed for 10 s"


def test_a_write_is_allowed_only_if_it_ends_before_the_lease() -> None:
    """Until the renew deadline the difference of the two is always left."""
    standing = leading(renewed_at=100.0)
    assert ELECTION.valid_for(standing, 5.0, now=109.9)
    assert not ELECTION.valid_for(standing, 5.2, now=109.9)
    assert not ELECTION.valid_for(standing, 0.0, now=110.0)


def test_a_failed_try_waits_for_the_rest_of_its_period() -> None:
    """Slow failures do not make tries rarer, fast ones not more frequent."""
    standing, _ = ELECTION.step(leading(), Due(), now=102.0)
    assert ELECTION.step(standing, Unknown(), now=103.5)[1] == Wait(0.5)
    assert ELECTION.step(standing, Unknown(), now=102.0)[1] == Wait(2.0)


def test_waits_are_shortened_at_random_and_never_vanish() -> None:
    """Candidates that start together drift apart, and none spins."""
    standing, _ = ELECTION.step(Standing(), Due(), now=100.0)
    assert ELECTION.step(standing, Seen(OTHERS), now=100.0, chance=0.5)[1] == Wait(pytest.approx(1.8))
    assert ELECTION.step(standing, Unknown(), now=500.0)[1] == Wait(0.2)


def test_our_own_name_is_claimed_at_once() -> None:
    """An answer of ours was lost, or a leadership ended by its deadline: nobody else may lead, and waiting helps nobody."""
    claim = claimed(ELECTION.step(Standing(), Seen(MINE), now=100.0)[1])
    assert (claim.over, claim.acquires, claim.transitions) == (MINE, False, 3)


def test_only_our_own_lease_is_given_back() -> None:
    """The record of another is never touched."""
    assert ELECTION.release(following()) is None
    assert ELECTION.release(Standing()) is None
    assert ELECTION.release(leading()) == LeaseClaim(over=MINE, holder="", duration_s=1.0, transitions=3, acquires=False)


@pytest.mark.parametrize("seconds", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (10, 15, 2), (float("nan"), 10, 2)])
def test_times_that_cannot_work_are_refused(seconds: tuple[float, float, float]) -> None:
    """A lease longer than the renew deadline, that longer than the retry period."""
    with pytest.raises(ValueError, match="cannot be kept"):
        Timing(*seconds)
