"""What the extender tells Prometheus: how many questions, how they ended, how long they took, and how much it knew.

Labels come from closed sets and counters stand at 0 before anything happens, as those of the service.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from rebalancer.kube.watch import Restart
from rebalancer.runtime.exposition import exposition
from rebalancer.runtime.serving.certificate import Renewal
from rebalancer.runtime.serving.connections import Lost
from rebalancer.steer.extender import VerbAnswer

PREFIX = "rebalancer_extender_"
WATCHED = ("nodes", "pods", "configmaps")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Verb(Enum):
    """What kube-scheduler may ask; the closed set of ``{verb}``."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"


class Ended(Enum):
    """How a question ended; the closed set of ``requests_total{result}``."""

    OK = "ok"
    ABSTAINED = "abstained"
    """Nothing fresh was known: every node passed, all scored alike."""
    SPARED = "spared"
    """Every node would have been refused, so that none was."""
    UNREADABLE = "unreadable"
    FAILED = "failed"
    """A fault of ours; kube-scheduler was answered as if nothing was known."""


def end_of(answer: VerbAnswer) -> Ended:
    if answer.error:
        return Ended.UNREADABLE
    if answer.abstained:
        return Ended.ABSTAINED
    return Ended.SPARED if answer.spared else Ended.OK


class ExtenderMetrics:
    """Thread-safe. ``view_age_s``: asked at each scrape; NaN where nothing is known."""

    def __init__(self, *, view_age_s: Callable[[], float] = lambda: math.nan, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        at = self.registry
        self._requests = Counter(
            f"{PREFIX}requests_total", "Questions of kube-scheduler by how they ended.", ("verb", "result"), registry=at
        )
        self._seconds = Histogram(
            f"{PREFIX}duration_seconds", "Time to find an answer, without the network.", ("verb",), registry=at, buckets=_BUCKETS
        )
        self._nodes = Counter(f"{PREFIX}nodes_total", "Nodes in questions, by what the filter made of them.", ("result",), registry=at)
        self._lost = Counter(f"{PREFIX}connections_lost_total", "Connections that were ended before their time.", ("reason",), registry=at)
        words = "Changed certificates by whether they could be used; one that cannot leaves the last good one in force."
        self._renewals = Counter(f"{PREFIX}certificate_renewals_total", words, ("result",), registry=at)
        self._age = Gauge(f"{PREFIX}view_age_seconds", "Age of what is known of the nodes; NaN while nothing is.", registry=at)
        self._age.set_function(view_age_s)
        words = "Planned moves whose replacement is awaited, so that their room is kept."
        self._reservations = Gauge(f"{PREFIX}reservations", words, registry=at)
        words = "Pods just bound whose load the measured means do not hold yet."
        self._anticipated = Gauge(f"{PREFIX}anticipated_pods", words, registry=at)
        words = "Ends of watch connections."
        self._restarts = Counter(f"{PREFIX}watch_restarts_total", words, ("resource", "reason"), registry=at)
        self._preset()

    def _preset(self) -> None:
        for verb in Verb:
            self._seconds.labels(verb.value)
            for end in Ended:
                self._requests.labels(verb.value, end.value)
        for result in ("passed", "refused", "unknown"):
            self._nodes.labels(result)
        for resource in WATCHED:
            for reason in Restart:
                self._restarts.labels(resource, reason.value)
        for lost in Lost:
            self._lost.labels(lost.value)
        for renewal in Renewal:
            self._renewals.labels(renewal.value)

    def answered(self, verb: Verb, answer: VerbAnswer, *, ended: Ended, seconds: float) -> None:
        self._requests.labels(verb.value, ended.value).inc()
        self._seconds.labels(verb.value).observe(max(0.0, seconds))
        if verb is Verb.FILTER and ended in (Ended.OK, Ended.SPARED):
            self._nodes.labels("refused").inc(answer.refused)
            self._nodes.labels("unknown").inc(answer.unknown)
            self._nodes.labels("passed").inc(max(0, answer.nodes - answer.refused - answer.unknown))

    def lost(self, why: Lost) -> None:
        self._lost.labels(why.value).inc()

    def renewed(self, renewal: Renewal) -> None:
        self._renewals.labels(renewal.value).inc()

    def watch_restarted(self, resource: str, reason: Restart) -> None:
        self._restarts.labels(resource if resource in WATCHED else "other", reason.value).inc()

    def knows(self, *, reservations: int, anticipated: int) -> None:
        self._reservations.set(reservations)
        self._anticipated.set(anticipated)

    def exposition(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return exposition(self.registry)
