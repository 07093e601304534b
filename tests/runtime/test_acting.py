"""Written down before it is tried, struck out when it did not happen: no crash, stop or conflict makes an eviction forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from structlog.testing import capture_logs

from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesUnreachable
from rebalancer.plan.hinting import EXTENDER, HINT
from rebalancer.plan.model import Move, Plan
from rebalancer.runtime.acting import Acting, open_move
from rebalancer.runtime.hint_port import NoHints
from rebalancer.runtime.memory import MOST_OPEN, Memory, OpenMove
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.act.plans import AT, FakeActuator, move, plan, report
from tests.support.builder import cluster, node, pod

NODES = (report("hot", 0.9), report("cool", 0.2))
STATE = cluster(
    nodes=[node("hot", load={"cpu": 0.9}), node("cool")],
    pods=[pod(f"web-{i}", on="hot", namespace="shop", workload="web", uid=f"uid-web-{i}", controller="rs-1") for i in (1, 2, 3)],
)
PLAN = plan(move("web-1", before=0.9, after=0.7), move("web-2", before=0.7, after=0.55), nodes=NODES)


@dataclass
class FakeStore:
    """Keeps every state of the memory that was saved, in ``saved``; ``fails`` may raise by the number of the save (from 1)."""

    fails: Callable[[int], None] = lambda number: None
    saved: list[Memory] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def load(self, *, deadline: Deadline) -> Memory:
        return Memory()

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        deadline.remaining()
        self.fails(len(self.saved) + 1)
        self.saved.append(memory)
        self.log.append(f"save {' '.join(e.pod for e in memory.evictions)}".strip())


def failing(at: int, error: KubernetesError) -> Callable[[int], None]:
    """Fails from the ``at``-th save on."""

    def fail(number: int) -> None:
        if number >= at:
            raise error

    return fail


def acted(
    actuator: FakeActuator, store: FakeStore, deadline: Deadline, *, made: Plan = PLAN, memory: Memory | None = None
) -> tuple[Acting, list[Outcome]]:
    acting = Acting(actuator, store, plan=made, state=STATE, memory=memory or Memory())
    _, outcomes = acting.run(at=AT, deadline=deadline)
    return acting, outcomes


def pods(memory: Memory) -> list[str]:
    assert [m.eviction.pod for m in memory.open_moves] == [e.pod for e in memory.evictions]
    return [e.pod for e in memory.evictions]


def test_each_eviction_is_written_down_before_it_is_tried(deadline: Deadline) -> None:
    """After the memory was saved once, and after the taints: a crash at any point forgets nothing."""
    store = FakeStore()
    actuator = FakeActuator(calls=store.log)
    acting, outcomes = acted(actuator, store, deadline)
    assert store.log == ["save", "prepare", "save web-1", "web-1", "save web-1 web-2", "web-2"]
    assert [outcome.result for outcome in outcomes] == [Result.EVICTED, Result.EVICTED]
    assert acting.memory == store.saved[-1]


def test_an_eviction_in_doubt_stays_remembered(deadline: Deadline) -> None:
    """No answer is not "no": the pod may leave yet."""
    store = FakeStore()
    acting, _ = acted(FakeActuator(results={"web-1": Result.UNKNOWN}, stops=()), store, deadline)
    assert [pods(memory) for memory in store.saved] == [[], ["web-1"], ["web-1", "web-2"]]
    assert pods(acting.memory) == ["web-1", "web-2"]


@pytest.mark.parametrize(
    "error", [KubernetesUnreachable("no answer"), KubernetesError("the store is slow", status=500)], ids=["silence", "500"]
)
def test_a_move_that_may_have_been_written_down_is_struck_out_when_it_is_not_tried(error: KubernetesError, deadline: Deadline) -> None:
    """Else the next cycle would wait for a pod to leave that nobody has evicted."""
    store = FakeStore()

    def lose(number: int) -> None:
        if number == 2 and "lost" not in store.log:
            store.log.append("lost")
            raise error

    store.fails = lose
    acting, outcomes = acted(FakeActuator(calls=store.log), store, deadline)
    assert store.log == ["save", "prepare", "lost", "save"]
    assert {outcome.result for outcome in outcomes} == {Result.ABANDONED}
    assert pods(acting.memory) == []


@pytest.mark.parametrize("result", [r for r in Result if not r.counts])
def test_what_did_not_happen_is_struck_out(result: Result, deadline: Deadline) -> None:
    """A refused eviction starts no cooldown, fills no budget, and holds no workload in flight."""
    store = FakeStore()
    acting, _ = acted(FakeActuator(results={"web-1": result}, stops=()), store, deadline)
    assert [pods(memory) for memory in store.saved] == [[], ["web-1"], [], ["web-2"]]
    assert pods(acting.memory) == ["web-2"]


def test_a_memory_that_cannot_be_saved_at_first_evicts_and_taints_nothing(deadline: Deadline) -> None:
    """The cycle fails as a whole."""
    actuator = FakeActuator()
    with pytest.raises(KubernetesUnreachable):
        acted(actuator, FakeStore(fails=failing(1, KubernetesUnreachable("no answer"))), deadline)
    assert actuator.calls == []


def test_an_eviction_that_cannot_be_written_down_is_not_tried_nor_any_after_it(deadline: Deadline) -> None:
    """Without memory, no eviction."""
    actuator = FakeActuator()
    error = KubernetesConflict("ConfigMap a/b was changed by somebody else", remedy="run only one controller")
    acting, outcomes = acted(actuator, FakeStore(fails=failing(3, error)), deadline)
    assert actuator.calls == ["prepare", "web-1"]
    assert [outcome.result for outcome in outcomes] == [Result.EVICTED, Result.ABANDONED]
    assert outcomes[1].reason == "not tried: ConfigMap a/b was changed by somebody else: run only one controller"
    assert pods(acting.memory) == ["web-1"]


def test_a_failed_strike_out_is_told_and_errs_on_the_side_of_rest(deadline: Deadline) -> None:
    """The store still holds the eviction: a cooldown too long, never one too short."""
    store = FakeStore(fails=failing(3, KubernetesUnreachable("no answer")))
    with capture_logs() as logs:
        acting, outcomes = acted(FakeActuator(results={"web-1": Result.BLOCKED}), store, deadline)
    assert [outcome.result for outcome in outcomes] == [Result.BLOCKED, Result.ABANDONED]
    assert pods(store.saved[-1]) == ["web-1"]
    assert pods(acting.memory) == []
    told = {entry["event"] for entry in logs if entry["log_level"] == "warning"}
    assert told == {"an eviction that did not happen may stay remembered"}


def test_an_eviction_that_a_stop_prevented_is_struck_out_all_the_same() -> None:
    """The stop ends the cycle's deadline, so striking out has a time of its own."""
    stop = threading.Event()
    store = FakeStore()
    actuator = FakeActuator(results={"web-1": Result.ABANDONED}, on_carry_out=lambda move: stop.set())
    acting, outcomes = acted(actuator, store, Deadline.after(20, stop=stop))
    assert [pods(memory) for memory in store.saved] == [[], ["web-1"], []]
    assert [outcome.result for outcome in outcomes] == [Result.ABANDONED, Result.ABANDONED]
    assert pods(acting.memory) == []


@pytest.mark.parametrize(("mode", "result"), [("dry-run", Result.RECORDED), ("annotate", Result.ANNOTATED)])
def test_only_evict_mode_remembers_moves(mode: str, result: Result, deadline: Deadline) -> None:
    """What was only shown or marked starts no cooldown."""
    store = FakeStore()
    actuator = FakeActuator(results={"web-1": result, "web-2": result})
    acting, _ = acted(actuator, store, deadline, made=plan(move("web-1"), move("web-2"), mode=mode))
    assert store.saved == [Memory()]
    assert acting.memory == Memory()


def test_too_many_moves_under_way_stop_further_ones(deadline: Deadline) -> None:
    """The memory has a bound, and beyond it nothing could be followed."""
    one = open_move(move("web-1"), STATE, at=AT, loads={})
    actuator = FakeActuator()
    _, outcomes = acted(actuator, FakeStore(), deadline, memory=Memory(open_moves=(one,) * MOST_OPEN))
    assert actuator.calls == ["prepare"]
    assert {outcome.result for outcome in outcomes} == {Result.ABANDONED}
    assert f"{MOST_OPEN} earlier moves wait for their replacements" in outcomes[0].reason


def test_a_gang_is_not_begun_that_could_not_be_followed_to_its_end(deadline: Deadline) -> None:
    """Room in the memory for one of two: neither is evicted."""
    one, two = (move(f"web-{i}", gang="job-set shop/llm") for i in (1, 2))
    memory = Memory(open_moves=(open_move(one, STATE, at=AT, loads={}),) * (MOST_OPEN - 1))
    actuator = FakeActuator()
    _, outcomes = acted(actuator, FakeStore(), deadline, made=plan(one, two, nodes=NODES), memory=memory)
    assert actuator.calls == ["prepare"]
    assert {outcome.result for outcome in outcomes} == {Result.ABANDONED}


class _MuteHints(NoHints):
    def announce(self, moves: Sequence[OpenMove], *, deadline: Deadline) -> str:
        return "nobody could be told"


def test_a_gang_with_one_replacement_that_gets_no_hint_stays_whole(deadline: Deadline) -> None:
    """Its other moves do not count on hints, and wait with it; a pod that stands alone goes."""
    made = plan(move("web-1", gang="g", steered_by=HINT), move("web-2", gang="g"), move("web-3"), nodes=NODES)
    actuator = FakeActuator()
    acting = Acting(actuator, FakeStore(), plan=made, state=STATE, memory=Memory(), hints=_MuteHints())
    _, outcomes = acting.run(at=AT, deadline=deadline)
    assert actuator.calls == ["prepare", "web-3"]
    assert {outcome.move.pod.name: outcome.result for outcome in outcomes} == {
        "web-1": Result.ABANDONED,
        "web-2": Result.ABANDONED,
        "web-3": Result.EVICTED,
    }


def test_every_move_is_logged_once_with_its_answer(deadline: Deadline) -> None:
    """One line a move, whatever became of it."""
    with capture_logs() as logs:
        acted(FakeActuator(results={"web-2": Result.FAILED}), FakeStore(), deadline)
    lines = [entry for entry in logs if entry["event"] == "move"]
    assert [(line["pod"], line["result"], line["answer"]) for line in lines] == [
        ("shop/web-1", "evicted", "web-1 evicted"),
        ("shop/web-2", "failed", "web-2 failed"),
    ]


def test_the_notes_of_preparing_are_handed_on(deadline: Deadline) -> None:
    """Taints put or failed are part of what the cycle tells."""
    notes, _ = Acting(FakeActuator(notes=("soft taint put on hot",)), FakeStore(), plan=PLAN, state=STATE, memory=Memory()).run(
        at=AT, deadline=deadline
    )
    assert notes == ("soft taint put on hot",)


def test_a_move_that_only_a_missing_taint_makes_worth_while_is_not_tried(deadline: Deadline) -> None:
    """Its pod might come straight back; the others go, and nothing is written down for it."""
    store = FakeStore()
    actuator = FakeActuator(calls=store.log, untainted=("hot",))
    asked: list[object] = []

    def without(made: Plan, nodes: Collection[str]) -> dict[str, str]:
        asked.append((made, tuple(nodes)))
        return {"uid-web-1": "it would come back"}

    acting = Acting(actuator, store, plan=PLAN, state=STATE, memory=Memory(), without_taints=without)
    _, outcomes = acting.run(at=AT, deadline=deadline)
    assert asked == [(PLAN, ("hot",))]
    assert store.log == ["save", "prepare", "save web-2", "web-2"]
    assert [(outcome.move.pod.name, outcome.result) for outcome in outcomes] == [("web-1", Result.ABANDONED), ("web-2", Result.EVICTED)]
    assert outcomes[0].reason == "not tried: the soft taint of hot could not be put, and without it it would come back"


def opened(made: Move, loads: dict[str, float]) -> OpenMove:
    return open_move(made, STATE, at=AT, loads=loads)


def test_an_open_move_holds_what_later_cycles_need() -> None:
    """Who, from where, to where, when, how much."""
    kept = opened(move("web-1"), {"cpu": 0.9})
    assert kept.eviction == PastEviction(
        at=AT,
        pod_uid="uid-web-1",
        namespace="shop",
        pod="web-1",
        workload=WorkloadRef("Deployment", "shop", "web"),
        controller_uid="rs-1",
        tenant=None,
        source="hot",
        destination="cool",
        usage={"cpu": 2.0},
    )


def test_the_predicted_falls_of_a_plan_add_up_from_one_start() -> None:
    """The second move's loads in the plan include the first; remembered, each stands for itself, since the first may be refused."""
    second = opened(move("web-2", before=0.7, after=0.55), {"cpu": 0.9})
    assert second.source_before == {"cpu": 0.9}
    assert second.predicted_fall("cpu") == pytest.approx(0.15)
    assert second.predicted_fall("memory") != second.predicted_fall("memory")


def test_an_unknown_load_of_the_source_predicts_nothing() -> None:
    """Absent, not zero."""
    kept = opened(move("web-1"), {})
    assert (kept.source_before, kept.predicted_source_after) == ({}, {})


class Waits(threading.Event):
    """A stop that notes how long it is waited for, and waits no time; it is set at the first wait if ``stops``."""

    def __init__(self, log: list[str], *, stops: bool = False) -> None:
        super().__init__()
        self._log, self._stops = log, stops

    def wait(self, timeout: float | None = None) -> bool:
        self._log.append("waits")
        if self._stops:
            self.set()
        return self.is_set()


def led(*names: str) -> Plan:
    """Moves that count on room that the extender reserves."""
    moves = (move(name, before=0.9, after=0.8) for name in names)
    return plan(*(msgspec.structs.replace(each, steered_by=EXTENDER) for each in moves), nodes=NODES)


def test_the_extender_hears_of_a_move_before_the_pod_is_evicted() -> None:
    """The replacement is scheduled at once, and would be placed as if no room was reserved."""
    store = FakeStore()
    made = Deadline.after(60.0, stop=Waits(store.log))
    acted(FakeActuator(calls=store.log), store, made, made=led("web-1", "web-2"))
    assert store.log == ["save", "prepare", "save web-1", "waits", "web-1", "save web-1 web-2", "waits", "web-2"]


def test_nobody_waits_for_the_extender_where_it_does_not_lead(deadline: Deadline) -> None:
    """Other moves go on at once."""
    store = FakeStore()
    acted(FakeActuator(calls=store.log), store, Deadline.after(60.0, stop=Waits(store.log)))
    assert "waits" not in store.log


def test_a_stop_while_the_news_travels_evicts_nobody_and_leaves_nothing_remembered() -> None:
    """The move is struck out again."""
    store = FakeStore()
    actuator = FakeActuator(calls=store.log)
    acting, outcomes = acted(actuator, store, Deadline.after(60.0, stop=Waits(store.log, stops=True)), made=led("web-1"))
    assert [outcome.result for outcome in outcomes] == [Result.ABANDONED]
    assert "web-1" not in store.log
    assert pods(acting.memory) == []
