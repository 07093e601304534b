"""The walk through a plan: in order, told as it goes, and abandoned cleanly."""

from __future__ import annotations

import threading

import pytest

from rebalancer.act.actuator import carry_out_plan
from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.act.recording import RecordingActuator
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.plan.model import Move
from rebalancer.state.tables import WorkloadRef
from tests.act.plans import AT, FakeActuator, move, plan

THREE = plan(move("a"), move("b"), move("c"))


def results(outcomes: list[Outcome]) -> list[Result]:
    return [outcome.result for outcome in outcomes]


def test_moves_are_carried_out_in_their_order_and_told_as_they_happen(deadline: Deadline) -> None:
    """`done` hears of each move before the next one begins."""
    heard: list[str] = []
    actuator = FakeActuator(on_carry_out=lambda move: heard.append(f"try {move.pod.name}"))
    outcomes = carry_out_plan(THREE, actuator, at=AT, deadline=deadline, done=lambda outcome: heard.append(f"done {outcome.move.pod.name}"))
    assert heard == ["try a", "done a", "try b", "done b", "try c", "done c"]
    assert results(outcomes) == [Result.EVICTED] * 3


@pytest.mark.parametrize("result", [Result.THROTTLED, Result.FORBIDDEN])
def test_an_outcome_that_says_stop_abandons_the_rest(result: Result, deadline: Deadline) -> None:
    """The next move would meet the same; each of the rest says why it was not tried."""
    actuator = FakeActuator(results={"b": result})
    outcomes = carry_out_plan(THREE, actuator, at=AT, deadline=deadline)
    assert actuator.calls == ["a", "b"]
    assert results(outcomes) == [Result.EVICTED, result, Result.ABANDONED]
    assert outcomes[2].reason == f"not tried: b {result.value}"


@pytest.mark.parametrize("result", [Result.GONE, Result.CHANGED, Result.BLOCKED, Result.FAILED])
def test_a_move_that_fails_alone_does_not_stop_the_plan(result: Result, deadline: Deadline) -> None:
    """One pod's budget or absence says nothing about the next pod."""
    outcomes = carry_out_plan(THREE, FakeActuator(results={"a": result}), at=AT, deadline=deadline)
    assert results(outcomes) == [result, Result.EVICTED, Result.EVICTED]


def test_a_stop_request_between_two_moves_abandons_the_rest() -> None:
    """What was done stays done and is reported; nothing further is tried."""
    stop = threading.Event()
    actuator = FakeActuator(on_carry_out=lambda move: stop.set())
    outcomes = carry_out_plan(THREE, actuator, at=AT, deadline=Deadline.after(20, stop=stop))
    assert actuator.calls == ["a"]
    assert results(outcomes) == [Result.EVICTED, Result.ABANDONED, Result.ABANDONED]
    assert "stopped on request" in outcomes[1].reason


def test_a_stop_request_during_a_move_is_an_outcome_of_that_move_and_not_an_error(deadline: Deadline) -> None:
    """The outcomes of the moves before are not lost with it."""

    def interrupt(move: Move) -> None:
        if move.pod.name == "b":
            raise Interrupted("stopped on request before the work was finished")

    heard: list[Outcome] = []
    outcomes = carry_out_plan(THREE, FakeActuator(on_carry_out=interrupt), at=AT, deadline=deadline, done=heard.append)
    assert results(outcomes) == [Result.EVICTED, Result.ABANDONED, Result.ABANDONED]
    assert heard == outcomes


def test_a_passed_deadline_is_seen_before_anything_is_written_down() -> None:
    """Neither the permission is asked for nor the actuator called."""
    asked: list[str] = []

    def allowed(move: Move) -> str:
        asked.append(move.pod.name)
        return ""

    now = [0.0]
    actuator = FakeActuator(on_carry_out=lambda move: now.__setitem__(0, 100.0))
    outcomes = carry_out_plan(THREE, actuator, at=AT, deadline=Deadline.after(50, clock=lambda: now[0]), allowed=allowed)
    assert asked == ["a"]
    assert results(outcomes) == [Result.EVICTED, Result.ABANDONED, Result.ABANDONED]
    assert outcomes[1].reason == "not tried: the deadline of the cycle has passed"


def test_a_refused_permission_stops_the_plan_and_is_asked_for_once(deadline: Deadline) -> None:
    """If nothing may be written any more, asking for each of the rest would only take time."""
    asked: list[str] = []

    def allowed(move: Move) -> str:
        asked.append(move.pod.name)
        return "the memory is not ours" if move.pod.name == "b" else ""

    outcomes = carry_out_plan(THREE, FakeActuator(), at=AT, deadline=deadline, allowed=allowed)
    assert asked == ["a", "b"]
    assert results(outcomes) == [Result.EVICTED, Result.ABANDONED, Result.ABANDONED]
    assert {outcome.reason for outcome in outcomes[1:]} == {"not tried: the memory is not ours"}


def test_dry_run_records_every_move_and_touches_nothing(deadline: Deadline) -> None:
    """It needs no client at all."""
    actuator = RecordingActuator()
    outcomes = carry_out_plan(THREE, actuator, at=AT, deadline=deadline)
    assert results(outcomes) == [Result.RECORDED] * 3
    assert outcomes[0].reason == "dry run: would be moved from hot to cool"
    assert actuator.prepare(THREE, at=AT, deadline=deadline) == Prepared()
    assert actuator.clean_up(deadline=deadline) == ()
    actuator.tell_rest(WorkloadRef("Deployment", "shop", "web"), "it rests", at=AT, deadline=deadline)


def test_every_result_is_done_or_trouble_or_neither_and_never_both() -> None:
    """What an operator must look at is apart from what a moving cluster does by itself."""
    assert not {result for result in Result if result.done and result.trouble}
    assert {result for result in Result if not result.done and not result.trouble} == {Result.GONE, Result.CHANGED, Result.BLOCKED}
