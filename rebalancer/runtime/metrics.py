"""Every metric that the service exports, in one block, and the few verbs that change them.

The registry is an object of ours, so two controllers in one process do not share counts. Labels come from closed sets: a word that is
not in its set counts as ``other``, so that no mistake elsewhere can make a series for every pod. Counters stand at 0 before anything
happens: an alert on an increase would else miss the first one.
"""

from __future__ import annotations

import math
import platform
from collections import Counter as Tally
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from rebalancer import __version__
from rebalancer.act.annotating_nodes import Kind, PatchResult
from rebalancer.act.outcome import Outcome, Result
from rebalancer.act.tainting import TaintResult
from rebalancer.collect.sanity import DropReason
from rebalancer.detect.findings import Findings
from rebalancer.detect.tenants.accounts import Accounts
from rebalancer.guard.breaker import BreakerCause
from rebalancer.guard.catalogue import gate_names
from rebalancer.guard.landings import NOTHING_LANDED, LandingRate
from rebalancer.kube.events import EventResult
from rebalancer.kube.gates import WATCH_NAME
from rebalancer.kube.resources import BINDINGS, WATCHED
from rebalancer.kube.watch import Restart
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.plan.model import Plan
from rebalancer.plan.reasons import PlanGate
from rebalancer.policy.model import Mode
from rebalancer.policy.reload import Reload
from rebalancer.runtime.exposition import exposition
from rebalancer.runtime.memory import Landing, LandingResult
from rebalancer.runtime.metric_snapshot import PREFIX, SnapshotCollector, families_of
from rebalancer.runtime.stopwatch import STAGES
from rebalancer.state.cluster import ClusterState
from rebalancer.steer.hinting import Ungated

OTHER = "other"
METHODS = ("balance", "reclaim", "relieve", "defragment", "improve")
PLANNED, NAMED = "planned", "named"
TOTAL = "total"
_WATCHED_NAMES = (*(resource.name for resource in (*WATCHED, BINDINGS)), WATCH_NAME)
_WAIT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_DURATION_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class CycleEnd(Enum):
    """How a cycle ended; the closed set of ``cycles_total{result}``."""

    BALANCED = "balanced"
    """No node is hot, nothing is proposed."""
    PROPOSED = "proposed"
    """Moves were found and, by the mode, only shown or annotated."""
    MOVED = "moved"
    """At least one pod was evicted."""
    BLOCKED = "blocked"
    """Something is hot and nothing may or can be moved."""
    FAILED = "failed"
    """The cluster could not be read, or metrics were missing; nothing was done."""
    ABANDONED = "abandoned"
    """Stopped on request or at its deadline."""


class Metrics:
    """Thread-safe. ``gates``: the closed set of ``refusals_total{gate}``, plan-level ones included."""

    def __init__(self, *, gates: Iterable[str] | None = None, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        names = (*gate_names(), *(gate.value for gate in PlanGate)) if gates is None else tuple(gates)
        self._gates = frozenset(names)
        self._snapshot = SnapshotCollector()
        self.registry.register(self._snapshot)
        self._declare()
        self._preset()

    def _declare(self) -> None:
        at = self.registry
        build = Gauge(f"{PREFIX}build_info", "1, with what is running as labels.", ("version", "python"), registry=at)
        build.labels(__version__, platform.python_version()).set(1)
        self._mode = Gauge(f"{PREFIX}mode", "1 for the mode in force.", ("mode",), registry=at)
        self._cycles = Counter(f"{PREFIX}cycles_total", "Cycles by how they ended.", ("result",), registry=at)
        self._missed = Counter(f"{PREFIX}cycles_missed_total", "Cycles that were due while the one before still ran.", registry=at)
        self._last = Gauge(f"{PREFIX}last_cycle_timestamp_seconds", "When the last cycle ended that could read the cluster.", registry=at)
        self._seconds = Histogram(
            f"{PREFIX}cycle_duration_seconds", "Time of a cycle by stage.", ("stage",), registry=at, buckets=_DURATION_BUCKETS
        )
        words = "Moves by the method that planned them, mode and what became of them; planned ones are counted before they are tried."
        self._moves = Counter(f"{PREFIX}moves_total", words, ("reason", "mode", "outcome"), registry=at)
        self._repeats = Counter(f"{PREFIX}repeat_moves_total", "Moves of a workload that had been moved not long before.", registry=at)
        self._refusals = Counter(f"{PREFIX}refusals_total", "Candidates that stay, by the gate that refused.", ("gate",), registry=at)
        self._dropped = Counter(f"{PREFIX}samples_dropped_total", "Samples that were not used.", ("reason",), registry=at)
        words = "Where replacements went; as-planned: to the planned node or one that the plan named beside it."
        self._landings = Counter(f"{PREFIX}move_landing_total", words, ("result",), registry=at)
        words = (
            "Share of the last replacements that landed on a node that their plan named, or on the planned one itself; "
            "of moves whose plan was definite, NaN with fewer than breaker.minMoves."
        )
        self._hits = Gauge(f"{PREFIX}landing_hit_ratio", words, ("on",), registry=at)
        self._gain = Gauge(
            f"{PREFIX}move_gain_ratio",
            "Fall of the source's load by moves, predicted and realised, last ones' mean.",
            ("kind",),
            registry=at,
        )
        self._hot = Gauge(f"{PREFIX}plan_hot_nodes", "Hot nodes before and after the last plan.", ("when",), registry=at)
        self._worst = Gauge(f"{PREFIX}plan_max_load_ratio", "Worst load before and after the last plan.", ("when",), registry=at)
        self._breaker = Gauge(f"{PREFIX}breaker_open", "1 while the breaker is open for that reason.", ("reason",), registry=at)
        self._leader = Gauge(f"{PREFIX}leader", "1 while this replica leads.", registry=at)
        self._watches = Counter(
            f"{PREFIX}watch_restarts_total", "Connections of watches that ended, by why.", ("resource", "reason"), registry=at
        )
        words = "Objects that a list had to correct, since the watch had missed a change; any is a reason to look closer."
        self._disagreements = Counter(f"{PREFIX}watch_disagreements_total", words, ("resource",), registry=at)
        self._annotations = Counter(
            f"{PREFIX}node_annotations_total",
            "Patches of node load annotations by the kind of value in them and what became of them.",
            ("kind", "result"),
            registry=at,
        )
        words = "Age of the oldest five-minute mean that stands on a node of ours, as a cycle found it; NaN where there is none."
        self._oldest = Gauge(f"{PREFIX}node_annotation_oldest_seconds", words, ("kind",), registry=at)
        self._events = Counter(f"{PREFIX}events_total", "Events of Kubernetes by what became of them.", ("result",), registry=at)
        words = "Nodes whose soft taints were to be changed, each in one patch, by what became of it."
        self._taint_patches = Counter(f"{PREFIX}soft_taint_patches_total", words, ("result",), registry=at)
        self._gated = Counter(f"{PREFIX}gated_pods_total", "Pods that were seen at our scheduling gate.", registry=at)
        self._ungated = Counter(f"{PREFIX}ungated_pods_total", "Pods that were let go, by why.", ("result",), registry=at)
        self._at_the_gate = Gauge(f"{PREFIX}pods_at_gate", "Pods that wait at our scheduling gate now.", registry=at)
        words = "How long pods waited at our gate: since their creation, in whole seconds, and since they were seen."
        self._waited = Histogram(f"{PREFIX}gate_seconds", words, ("since",), registry=at, buckets=_WAIT_BUCKETS)
        self._reloads = Counter(f"{PREFIX}policy_reload_total", "Refreshes of the policy file.", ("result",), registry=at)

    def _preset(self) -> None:
        self._preset_steering()
        for end in CycleEnd:
            self._cycles.labels(end.value)
        for stage in (*STAGES, TOTAL):
            self._seconds.labels(stage)
        for mode in Mode:
            self._mode.labels(mode.value).set(0)
            for outcome in (PLANNED, *(result.value for result in Result)):
                self._moves.labels("balance", mode.value, outcome)
        for gate in self._gates:
            self._refusals.labels(gate)
        for reason in DropReason:
            self._dropped.labels(reason.value)
        for landing in LandingResult:
            self._landings.labels(landing.value)
        for cause in BreakerCause:
            self._breaker.labels(cause.value).set(0)
        self.landed(NOTHING_LANDED, min_moves=0)
        for reload in Reload:
            self._reloads.labels(reload.value)
        for event in EventResult:
            self._events.labels(event.value)
        self._preset_watches_and_gates()

    def _preset_watches_and_gates(self) -> None:
        for result in Ungated:
            self._ungated.labels(result.value)
        for since in ("creation", "sight"):
            self._waited.labels(since)
        for resource in WATCHED:
            self._disagreements.labels(resource.name)
        for name in _WATCHED_NAMES:
            for restart in Restart:
                self._watches.labels(name, restart.value)

    def _preset_steering(self) -> None:
        for taint in TaintResult:
            self._taint_patches.labels(taint.value)
        for kind in Kind:
            self._oldest.labels(kind.value).set(math.nan)
            for patch in PatchResult:
                self._annotations.labels(kind.value, patch.value)
        for result in Ungated:
            self._ungated.labels(result.value)
        for since in ("creation", "sight"):
            self._waited.labels(since)

    def cycle_ended(self, end: CycleEnd, *, at: float, seconds: Mapping[str, float]) -> None:
        """``seconds``: stage -> duration, of the stages that were reached. ``at``: unix seconds."""
        self._cycles.labels(end.value).inc()
        for stage, duration in seconds.items():
            self._seconds.labels(_one_of(stage, STAGES)).observe(duration)
        self._seconds.labels(TOTAL).observe(sum(seconds.values()))
        if end not in (CycleEnd.FAILED, CycleEnd.ABANDONED):
            self._last.set(at)

    def cycle_missed(self) -> None:
        self._missed.inc()

    def observed(self, state: ClusterState, findings: Findings, gpus: GpuReport | None = None, accounts: Accounts | None = None) -> None:
        """Replace everything that is said about nodes, pools, tenants, GPUs and coverage by what this cycle saw."""
        self._snapshot.replace(families_of(state, findings, gpus, accounts))
        for reason, count in state.coverage.dropped.items():
            self._dropped.labels(_one_of(reason, {known.value for known in DropReason})).inc(max(0, count))

    def planned(self, plan: Plan) -> None:
        """Count what a plan proposes and refuses, and show what it would do to the worst of the cluster."""
        self.mode_in_force(plan.mode)
        method, mode = _one_of(plan.method, METHODS), _one_of(plan.mode, {known.value for known in Mode})
        if plan.moves:
            self._moves.labels(method, mode, PLANNED).inc(len(plan.moves))
        for gate, count in Tally(refusal.gate for refusal in plan.refused).items():
            self._refusals.labels(_one_of(gate, self._gates)).inc(count)
        summary = plan.summary
        for when, hot, worst in (
            ("before", summary.hot_nodes, summary.max_load),
            ("after", summary.hot_nodes_after, summary.max_load_after),
        ):
            self._hot.labels(when).set(hot)
            self._worst.labels(when).set(math.nan if worst is None else worst)

    def moved(self, plan: Plan, outcomes: Iterable[Outcome], *, repeats: int = 0) -> None:
        """Count what became of a plan's moves; ``repeats`` of them moved a workload again."""
        method, mode = _one_of(plan.method, METHODS), _one_of(plan.mode, {known.value for known in Mode})
        for result, count in Tally(outcome.result for outcome in outcomes).items():
            self._moves.labels(method, mode, result.value).inc(count)
        self._repeats.inc(repeats)

    def settled(self, landings: Iterable[Landing]) -> None:
        """Count where replacements landed, and show the mean fall of load that was predicted and the one that came."""
        predicted: list[float] = []
        realised: list[float] = []
        for landing in landings:
            self._landings.labels(landing.result.value).inc()
            move = landing.move
            falls = [
                before - move.predicted_source_after[n] for n, before in move.source_before.items() if n in move.predicted_source_after
            ]
            if falls and math.isfinite(landing.realised_share):
                predicted.append(max(falls))
                realised.append(max(falls) * landing.realised_share)
        if predicted:
            self._gain.labels("predicted").set(sum(predicted) / len(predicted))
            self._gain.labels("realised").set(sum(realised) / len(realised))

    def annotated(self, counts: Mapping[tuple[Kind, PatchResult], int], *, oldest_s: Mapping[str, float]) -> None:
        """Count what became of the patches of a cycle, and show how old the annotations were that it found."""
        for (kind, result), count in counts.items():
            self._annotations.labels(kind.value, result.value).inc(count)
        for kind in Kind:
            self._oldest.labels(kind.value).set(oldest_s.get(kind.value, math.nan))

    def landed(self, rate: LandingRate, *, min_moves: int) -> None:
        """Show where replacements land, as far as so many moves say."""
        enough = rate.moves >= min_moves
        self._hits.labels(NAMED).set(rate.ratio if enough else math.nan)
        self._hits.labels(PLANNED).set(rate.planned_ratio if enough else math.nan)

    def breaker(self, open_for: Collection[BreakerCause]) -> None:
        """What holds the breaker open now; empty when it is closed."""
        for cause in BreakerCause:
            self._breaker.labels(cause.value).set(cause in open_for)

    def leads(self, leader: bool) -> None:
        self._leader.set(leader)

    def stood_down(self) -> None:
        """Another replica leads: only its numbers may be on show, and what was observed here is old news."""
        self.leads(False)
        self._snapshot.replace(())
        self.annotated({}, oldest_s={})
        for plan in (self._hot, self._worst):
            plan.clear()
        self.landed(NOTHING_LANDED, min_moves=0)
        self.breaker(())

    def reloaded(self, outcome: Reload) -> None:
        self._reloads.labels(outcome.value).inc()

    def event_ended(self, result: EventResult) -> None:
        self._events.labels(result.value).inc()

    def soft_taint_patched(self, result: TaintResult) -> None:
        self._taint_patches.labels(result.value).inc()

    def gated(self) -> None:
        self._gated.inc()

    def ungated(self, result: Ungated, *, since_creation_s: float, since_sight_s: float | None) -> None:
        self._ungated.labels(result.value).inc()
        self._waited.labels("creation").observe(since_creation_s)
        if since_sight_s is not None:
            self._waited.labels("sight").observe(since_sight_s)

    def at_the_gate(self, pods: int) -> None:
        self._at_the_gate.set(pods)

    def watch_restarted(self, resource: str, reason: Restart) -> None:
        self._watches.labels(_one_of(resource, _WATCHED_NAMES), reason.value).inc()

    def watch_disagreed(self, resource: str, objects: int) -> None:
        self._disagreements.labels(_one_of(resource, _WATCHED_NAMES)).inc(objects)

    def mode_in_force(self, mode: str) -> None:
        for known in Mode:
            self._mode.labels(known.value).set(known.value == mode)

    def exposition(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return exposition(self.registry)


def _one_of(word: str, known: Collection[str]) -> str:
    return word if word in known else OTHER
