"""The routes that kube-scheduler asks, over whatever knows the nodes.

Here the pure verbs meet the clock, the metrics and their own defects. Whatever goes wrong in them, kube-scheduler gets the answer of one
who knows nothing: every node passes, and all score alike.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import structlog

from rebalancer.runtime.clock import Clock
from rebalancer.runtime.extender_metrics import Ended, ExtenderMetrics, Verb, end_of
from rebalancer.runtime.health import Check
from rebalancer.runtime.serving.messages import Answer, Handler, Request
from rebalancer.runtime.serving.pages import metrics as metrics_page
from rebalancer.runtime.serving.pages import probe
from rebalancer.steer.extender import Chosen, Steering, VerbAnswer, filter_nodes, prioritize_nodes

KNOWING_NOTHING = Steering(None, None)
CHOICES = 3
"""How often scores are found anew when another pod has taken the reservation that they count on."""
TELL_EVERY_S = 60.0
"""What goes wrong for every pod is in the log once a minute, and in the metrics each time."""

log = structlog.get_logger(__name__)

Checks = Callable[[], Iterable[Check]]


class Verbs(Protocol):
    def __call__(self, body: bytes, *, steering: Steering, now: float) -> VerbAnswer: ...


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Where answers come from. ``steering`` is asked at each request and must be quick; ``hold`` takes a reservation for a pod before its
    scores are sent, and is False when another pod has it."""

    steering: Callable[[], Steering]
    hold: Callable[[Chosen], bool] = lambda chosen: True

    def age_s(self, *, now: float) -> float:
        """Of what is known of the nodes; NaN while nothing is."""
        view = self.steering().view
        return math.nan if view is None else max(0.0, now - view.made_at)

    def check(self, *, now: float) -> Check:
        """Whether there is anything to judge nodes by; a replica that has nothing should not be asked."""
        steering, age = self.steering(), self.age_s(now=now)
        if math.isnan(age):
            return Check("nodes", False, "nothing is known of the nodes yet")
        if steering.judge is None:
            return Check("nodes", False, "there is nothing to judge nodes by yet")
        return Check("nodes", steering.ready(now=now), f"known as of {age:.0f} s ago, at most {steering.oldest_view_s:.0f} s")


def extender_routes(
    knowledge: Knowledge,
    *,
    clock: Clock,
    metrics: ExtenderMetrics,
    live: Checks = lambda: (),
    ready: Checks = lambda: (),
    timer: Callable[[], float] = time.perf_counter,
) -> dict[tuple[str, str], Handler]:
    """(method, path) -> handler, for `ExtenderServer`, to which others may add theirs.

    ``live`` and ``ready``: what else probes depend on, beside the server that answers and the knowledge of nodes.
    """
    asked = _Asked(knowledge, clock, metrics, timer, _Rarely(timer))
    filter_, prioritize = asked.handler(Verb.FILTER, filter_nodes), asked.handler(Verb.PRIORITIZE, prioritize_nodes)
    return {
        ("POST", "/filter"): filter_,
        ("POST", "/prioritize"): prioritize,
        ("POST", "/prioritise"): prioritize,
        ("GET", "/healthz"): probe(lambda: (Check("http", True, "answering"), *live())),
        ("GET", "/readyz"): probe(lambda: (knowledge.check(now=clock.now()), *ready())),
        ("GET", "/metrics"): metrics_page(metrics.exposition),
    }


@dataclass(frozen=True, slots=True)
class _Asked:
    knowledge: Knowledge
    clock: Clock
    metrics: ExtenderMetrics
    timer: Callable[[], float]
    rarely: _Rarely

    def handler(self, verb: Verb, verbs: Verbs) -> Handler:
        def answer(request: Request) -> Answer:
            began = self.timer()
            try:
                found = self._found(verbs, request.body)
                ended = end_of(found)
            except Exception as error:
                if self.rarely(verb, Ended.FAILED):
                    log.exception(
                        "an extender verb met a defect of this program, and abstained", verb=verb.value, error=type(error).__name__
                    )
                found, ended = verbs(request.body, steering=KNOWING_NOTHING, now=self.clock.now()), Ended.FAILED
            if ended is Ended.UNREADABLE and self.rarely(verb, ended):
                log.warning("a question cannot be read; is it kube-scheduler that asks?", verb=verb.value, reason=found.error)
            self.metrics.answered(verb, found, ended=ended, seconds=self.timer() - began)
            return Answer(HTTPStatus(found.status), found.body)

        return answer

    def _found(self, verbs: Verbs, body: bytes) -> VerbAnswer:
        """By what is known at the moment; anew when another pod was faster."""
        for _ in range(CHOICES):
            found = verbs(body, steering=self.knowledge.steering(), now=self.clock.now())
            if found.chosen is None or self.knowledge.hold(found.chosen):
                break
        return found


class _Rarely:
    """True at most once in `TELL_EVERY_S` for each verb and end."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._next: dict[tuple[Verb, Ended], float] = {}

    def __call__(self, verb: Verb, ended: Ended) -> bool:
        now = self._timer()
        with self._lock:
            if now < self._next.get((verb, ended), -math.inf):
                return False
            self._next[verb, ended] = now + TELL_EVERY_S
            return True
