"""A cycle with everything around it: counted, told once, never raising, and following what the operator changes."""

from __future__ import annotations

import datetime
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from rebalancer.act.actuator import Actuator
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import (
    ConfigurationError,
    Interrupted,
    KubernetesForbidden,
    KubernetesUnreachable,
    MetricsMissing,
    PrometheusUnreachable,
)
from rebalancer.plan.model import Move
from rebalancer.policy.model import Mode, Spec
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.health import Health
from rebalancer.runtime.load_watching import LoadWatch
from rebalancer.runtime.memory import Memory, remember
from rebalancer.runtime.metrics import Metrics
from rebalancer.runtime.service import JOB, Parts, Service
from rebalancer.runtime.serving.messages import Request
from rebalancer.runtime.session import open_session
from tests.act.plans import FakeActuator
from tests.runtime.test_memory import opened
from tests.support.builder import NOW, cluster, node, pod, workload


def state(*, hot: bool = True) -> Any:
    uses = {"cpu": 2.5 if hot else 1.0, "memory": 2.0**30}
    return cluster(
        nodes=[node("hot", load={"cpu": 0.8 if hot else 0.4, "memory": 0.3}), *(node(f"cool-{i}") for i in range(3))],
        pods=[pod("web-1", on="hot", workload="web", uses=uses), *(pod(f"a-{i}", on="cool-0", workload="web", uses=uses) for i in (1,))],
        workloads=[workload("web", replicas=2)],
    )


def result_of(orders: Orders, *results: Result, hot: bool = True, memory: Memory | None = None, notes: tuple[str, ...] = ()) -> CycleResult:
    """What a cycle would have come to; each of ``results`` is the outcome of one planned move."""
    verdict = consider(state(hot=hot), memory or Memory(), orders)
    moves = verdict.decision.plan.moves
    made: list[Move] = [replace_pod(moves[0], number) for number in range(len(results))] if results else []
    outcomes = tuple(Outcome(move, result, f"move {result.value}") for move, result in zip(made, results, strict=True))
    return CycleResult(verdict=verdict, outcomes=outcomes, memory=memory or Memory(), seconds={"plan": 0.25}, notes=notes)


def replace_pod(move: Move, number: int) -> Move:
    return msgspec.structs.replace(move, pod=msgspec.structs.replace(move.pod, name=f"web-{number}"))


@dataclass
class FakeController:
    """Gives what ``answers`` says, one after the other; the last is repeated. An exception is raised."""

    answers: list[Exception | Callable[[Orders], CycleResult]]
    asked: list[Orders] = field(default_factory=list)

    def cycle(self, orders: Orders, *, deadline: Deadline, **limits: object) -> CycleResult:
        self.asked.append(orders)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(orders)


class FixedClock:
    def now(self) -> float:
        return NOW


@dataclass
class Bench:
    service: Service
    controller: FakeController
    metrics: Metrics
    health: Health
    stop: threading.Event
    policy: Path
    actuators: Mapping[Mode, FakeActuator]
    loads: LoadWatch

    def write(self, spec: str) -> None:
        write_policy(self.policy, spec)

    def count(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(f"rebalancer_{name}", labels)
        assert value is not None, name
        return value

    def ends(self) -> dict[str, float]:
        """How cycles ended: those that happened."""
        found = {
            sample.labels["result"]: sample.value
            for metric in self.metrics.registry.collect()
            for sample in metric.samples
            if sample.name == "rebalancer_cycles_total"
        }
        return {end: value for end, value in found.items() if value}


def write_policy(path: Path, spec: str) -> None:
    path.write_text(f"apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {{name: mine}}\nspec: {spec}\n")


Make = Callable[..., Bench]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def bench(*answers: Exception | Callable[[Orders], CycleResult], spec: str = "{mode: evict, interval: 1m}") -> Bench:
        policy = tmp_path / "policy.yaml"
        write_policy(policy, spec)
        flags = {"policy_file": policy}
        session = open_session(settings_file=None, flags=flags, environ={})
        controller = FakeController(list(answers) or [result_of])
        actuators = {mode: FakeActuator() for mode in Mode}
        metrics, health, stop = Metrics(), Health(interval_s=60), threading.Event()
        loads = LoadWatch(FixedClock())
        given: dict[Mode, Actuator] = dict(actuators)
        parts = Parts(
            session=session,
            controller=controller,  # type: ignore[arg-type]
            actuators=given,
            metrics=metrics,
            health=health,
            loads=loads,
            clock=FixedClock(),
        )
        return Bench(Service(parts, stop=stop), controller, metrics, health, stop, policy, actuators, loads)

    return bench


def ready(health: Health) -> dict[str, bool]:
    return {check.name: check.passed for check in health.ready_checks()}


@pytest.mark.parametrize(
    ("results", "hot", "end"),
    [
        ((Result.EVICTED, Result.FAILED), True, "moved"),
        ((Result.RECORDED,), True, "proposed"),
        ((Result.ANNOTATED, Result.GONE), True, "proposed"),
        ((Result.BLOCKED, Result.GONE), True, "blocked"),
        ((Result.ABANDONED, Result.ABANDONED), True, "abandoned"),
        ((Result.FORBIDDEN, Result.ABANDONED), True, "blocked"),
        ((), True, "blocked"),
        ((), False, "balanced"),
    ],
)
def test_every_way_in_which_a_cycle_can_end_is_counted_once(results: tuple[Result, ...], hot: bool, end: str, make: Make) -> None:
    """What was done decides, then what was proposed, then whether anything is hot."""
    bench = make(lambda orders: result_of(orders, *results, hot=hot))
    assert bench.service.tick() is not None
    assert bench.ends() == {end: 1}
    assert ready(bench.health) == {"policy": False, "observation": True, "prometheus": True}


def test_what_a_cycle_saw_is_told_to_load_watchers_clients(make: Make) -> None:
    """From the first cycle on, and not before."""
    bench, ask = make(), Request("GET", "/watcher")
    answer = bench.loads.routes["GET", "/watcher"]
    assert answer(ask).status == 500
    bench.service.tick()
    assert answer(ask).status == 200


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (KubernetesUnreachable("no answer from https://api"), "failed"),
        (KubernetesForbidden("may not list pods"), "failed"),
        (MetricsMissing("signal cpu is known for 1 of 9 nodes"), "failed"),
        (PrometheusUnreachable("no answer from http://prometheus"), "failed"),
        (ConfigurationError("the remembered evictions cannot be read"), "failed"),
        (Interrupted("stopped on request"), "abandoned"),
        (ZeroDivisionError("a defect"), "failed"),
    ],
)
def test_a_cycle_that_fails_is_counted_and_told_and_never_raises(error: Exception, end: str, make: Make) -> None:
    """The next one starts from nothing but the cluster."""
    bench = make(error, result_of)
    with capture_logs() as logs:
        assert bench.service.tick() is None
    assert bench.ends() == {end: 1}
    assert ready(bench.health)["prometheus"] is False
    assert len([entry for entry in logs if entry["event"].startswith("cycle")]) == 1
    assert bench.service.tick() is not None
    assert ready(bench.health)["prometheus"] is True


def test_prometheus_that_is_lost_is_said_by_the_readiness(make: Make) -> None:
    """After a good cycle too, and with the reason."""
    bench = make(result_of, PrometheusUnreachable("no answer from http://prometheus"))
    bench.service.tick()
    bench.service.tick()
    (check,) = [check for check in bench.health.ready_checks() if check.name == "prometheus"]
    assert (check.passed, check.words) == (False, "no answer from http://prometheus")


def test_an_api_server_that_is_lost_is_said_by_the_readiness(make: Make) -> None:
    """After a good cycle too; a good one later says that it is back."""
    bench = make(result_of, KubernetesUnreachable("no answer from https://api"), result_of)
    passed = []
    for _ in range(3):
        bench.service.tick()
        (check,) = [check for check in bench.health.ready_checks() if check.name == "observation"]
        passed.append((check.passed, check.words))
    assert passed == [(True, "done"), (False, "no answer from https://api"), (True, "done")]


def test_a_defect_in_telling_does_not_end_the_loop(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cycle is counted; the trace is in the log; the heartbeat goes on."""
    bench = make(result_of)
    monkeypatch.setattr(bench.metrics, "planned", lambda plan: 1 / 0)
    with capture_logs() as logs:
        assert bench.service.tick() is None
    assert bench.ends() == {"blocked": 1}
    assert [entry["log_level"] for entry in logs if "defect" in entry["event"]] == ["error"]


def test_nothing_is_begun_after_a_stop_request(make: Make) -> None:
    """The schedule may fire once more while the process ends."""
    bench = make()
    bench.stop.set()
    assert bench.service.tick() is None
    assert (bench.controller.asked, bench.ends()) == ([], {})


def test_e3_a_workload_that_is_moved_again_is_a_repeat(make: Make) -> None:
    """Loops are visible: a move of a workload that the memory knows of counts, a first one does not."""
    known = remember(Memory(), opened(NOW - 3600))
    memory = replace(known, open_moves=())
    bench = make(
        lambda orders: result_of(orders, Result.EVICTED),
        lambda orders: result_of(orders, Result.EVICTED, memory=memory),
        lambda orders: result_of(orders, Result.BLOCKED, memory=memory),
    )
    counts = []
    for _ in range(3):
        bench.service.tick()
        counts.append(bench.count("repeat_moves_total"))
    assert counts == [0, 1, 1]


def test_moves_that_were_not_carried_out_are_one_warning_with_the_first_reason(make: Make) -> None:
    """What a moving cluster does by itself (a pod that is gone, a budget) is none."""
    bench = make(
        lambda orders: result_of(orders, Result.FORBIDDEN, Result.ABANDONED), lambda orders: result_of(orders, Result.GONE, Result.BLOCKED)
    )
    with capture_logs() as logs:
        bench.service.tick()
        bench.service.tick()
    warnings = [entry for entry in logs if entry["event"] == "moves were not carried out"]
    assert [(entry["moves"], entry["first"]) for entry in warnings] == [(2, "move forbidden")]


def test_notes_and_one_line_a_cycle_are_logged(make: Make) -> None:
    """Nothing twice."""
    bench = make(lambda orders: result_of(orders, notes=("soft taint put on hot",)))
    with capture_logs() as logs:
        bench.service.tick()
    assert [entry["text"] for entry in logs if entry["event"] == "note"] == ["soft taint put on hot"]
    (line,) = [entry for entry in logs if entry["event"] == "cycle"]
    assert (line["mode"], line["hot_nodes"], line["seconds"]) == ("evict", 1, {"plan": 0.25})


def test_a_broken_edit_is_told_once_and_the_last_good_policy_stays(make: Make) -> None:
    """Counted at every refresh, since an alert watches the rate."""
    bench = make()
    bench.write("{modus: evict}")
    with capture_logs() as logs:
        for _ in range(3):
            bench.service.tick()
    assert len([entry for entry in logs if entry["event"].startswith("policy not reloaded")]) == 1
    assert bench.count("policy_reload_total", result="failed") == 3
    assert {orders.mode for orders in bench.controller.asked} == {Mode.EVICT}
    bench.write("{mode: evict, interval: 1m}")
    with capture_logs() as logs:
        bench.service.tick()
    assert logs[0]["event"] == "policy file is as it was before the broken edit"


def test_an_edit_that_could_never_act_is_a_broken_edit(make: Make) -> None:
    """The start refuses it, so a reload must not take it."""
    bench = make()
    bench.write("{mode: evict, confirm: {windows: 120, atLeast: 120, step: 6h}}")
    with capture_logs() as logs:
        bench.service.tick()
    assert [entry["log_level"] for entry in logs if entry["event"].startswith("policy not reloaded")] == ["error"]
    assert bench.controller.asked[0].policy.spec.confirm == Spec().confirm


def test_a_good_edit_is_in_force_from_the_next_cycle_on_and_told_once(make: Make) -> None:
    """With the mode that it brings."""
    bench = make()
    bench.service.tick()
    bench.write("{mode: dry-run}")
    with capture_logs() as logs:
        bench.service.tick()
        bench.service.tick()
    assert [orders.mode for orders in bench.controller.asked] == [Mode.EVICT, Mode.DRY_RUN, Mode.DRY_RUN]
    assert len([entry for entry in logs if entry["event"] == "policy reloaded"]) == 1
    assert (bench.count("mode", mode="dry-run"), bench.count("mode", mode="evict")) == (1, 0)


def test_leaving_a_mode_takes_off_what_it_left_in_the_cluster(make: Make) -> None:
    """Evict to annotate to dry run: taints, then marks; once each, and nothing at the first cycle."""
    bench = make()
    for spec in ("{mode: evict}", "{mode: annotate}", "{mode: dry-run}", "{mode: dry-run, interval: 3m}"):
        bench.write(spec)
        bench.service.tick()
    assert {mode: actuator.calls for mode, actuator in bench.actuators.items()} == {
        Mode.EVICT: ["clean up"],
        Mode.ANNOTATE: ["clean up"],
        Mode.DRY_RUN: [],
    }


def test_a_stop_while_a_mode_is_left_leaves_the_rest_to_the_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the taints of the old mode would stay for good."""
    bench = make()
    bench.service.tick()
    bench.write("{mode: dry-run}")

    def interrupted(*, deadline: Deadline) -> tuple[str, ...]:
        raise Interrupted("stopped on request")

    with monkeypatch.context() as stopped:
        stopped.setattr(bench.actuators[Mode.EVICT], "clean_up", interrupted)
        assert bench.service.tick() is None
    bench.stop.set()
    bench.service.run()
    assert bench.actuators[Mode.EVICT].calls == ["clean up"]


def scheduled(service: Service) -> datetime.timedelta:
    job = service._scheduler.get_job(JOB)
    assert job is not None
    interval: datetime.timedelta = job.trigger.interval
    return interval


@dataclass
class Running:
    """`Service.run` on a thread of its own, and what it returned."""

    bench: Bench
    finished: list[bool] = field(default_factory=list)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=lambda: self.finished.append(self.bench.service.run()))
        self.thread.start()

    def end(self) -> bool:
        self.bench.stop.set()
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.finished[0]


def test_a_running_service_cycles_follows_the_interval_and_cleans_up_at_the_end(make: Make) -> None:
    """The first cycle at once; a new interval is taken over by the schedule; the taints come off when it is asked to stop."""
    first = threading.Event()

    def answer(orders: Orders) -> CycleResult:
        first.set()
        return result_of(orders)

    bench = make(answer)
    running = Running(bench)
    try:
        assert first.wait(20)
        assert scheduled(bench.service) == datetime.timedelta(minutes=1)
        bench.write("{mode: evict, interval: 7m}")
        bench.service.tick()
        assert scheduled(bench.service) == datetime.timedelta(minutes=7)
    finally:
        assert running.end() is True
    assert bench.actuators[Mode.EVICT].calls == ["clean up"]


def test_a_cycle_that_runs_when_the_stop_comes_is_waited_for(make: Make) -> None:
    """It ends by itself at its next look at the stop; only then is cleaned up."""
    begun, order = threading.Event(), list[str]()

    def answer(orders: Orders) -> CycleResult:
        begun.set()
        bench.stop.wait(20)
        order.append("cycle")
        raise Interrupted("stopped on request")

    bench = make(answer)
    bench.actuators[Mode.EVICT].calls = order
    running = Running(bench)
    assert begun.wait(20)
    assert running.end() is True
    assert order == ["cycle", "clean up"]
    assert bench.ends() == {"abandoned": 1}


def test_a_cycle_that_was_skipped_is_counted_and_told(make: Make) -> None:
    """The one before took longer than the interval."""
    bench = make()
    with capture_logs() as logs:
        bench.service._missed(None)  # type: ignore[arg-type]
    assert bench.count("cycles_missed_total") == 1
    assert [entry["log_level"] for entry in logs] == ["warning"]


def test_the_service_and_the_real_controller_agree_on_how_a_cycle_is_asked_for() -> None:
    """The double has the parameters that the service uses."""
    assert {"orders", "deadline"} <= set(inspect.signature(Controller.cycle).parameters)
