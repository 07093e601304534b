"""One cycle: observe, settle what was moved before, detect, plan, act. The whole path of the data in one readable place.

A cycle that cannot see the cluster whole raises and does nothing. What it decides it decides by the pure code alone; dry run differs only
in the actuator that it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rebalancer.act.actuator import Actuator
from rebalancer.act.outcome import Outcome
from rebalancer.collect.cluster import ClusterSource
from rebalancer.collect.prometheus import Prometheus
from rebalancer.deadline import Deadline
from rebalancer.detect.findings import NodeClass
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Mode
from rebalancer.runtime.acting import Acting, tell_rests
from rebalancer.runtime.clock import Clock
from rebalancer.runtime.considering import Orders, Verdict, consider, without_taints
from rebalancer.runtime.hint_port import Hints, NoHints
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.node_annotations import NOTHING_DONE, NodeAnnotations, NodesAnnotated
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.runtime.store import MemoryStore, ReadOnlyStore


@dataclass(frozen=True, slots=True)
class CycleResult:
    verdict: Verdict
    outcomes: tuple[Outcome, ...]
    memory: Memory
    """After acting."""
    seconds: Mapping[str, float]
    """stage -> duration."""
    notes: tuple[str, ...]
    """What was prepared, steered, or went wrong beside the moves."""
    annotated: NodesAnnotated = NOTHING_DONE
    """What was done about node load annotations; what is to be told of it is among the notes."""


class Controller:
    """Holds the connections and the memory; `cycle` may be called for as long as the process lives.

    ``store`` is written to in evict mode alone, and only read in the others, whatever mode the service began with. ``source``: where the
    cluster's objects come from, instead of lists by ``client``. ``annotations``: None writes no node load annotations. ``hints``: who gives
    replacements their nodes in evict mode.
    """

    def __init__(
        self,
        *,
        client: KubeClient,
        prometheus: Prometheus,
        actuators: Mapping[Mode, Actuator],
        store: MemoryStore,
        clock: Clock,
        source: ClusterSource | None = None,
        annotations: NodeAnnotations | None = None,
        hints: Hints | None = None,
        on_stage: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._client, self._source = client, source
        self._prometheus = prometheus
        self._actuators = actuators
        self._store, self._reading = store, ReadOnlyStore(store)
        self._clock = clock
        self._annotations = annotations
        self._hints: Hints = hints or NoHints()
        self._on_stage = on_stage

    def rest(self) -> None:
        """Observe nothing until the next cycle. Called by the thread that runs the cycles."""
        if self._source is not None:
            self._source.rest()
        if self._annotations is not None:
            self._annotations.rest()
        self._prometheus.rest()

    def cycle(
        self,
        orders: Orders,
        *,
        deadline: Deadline,
        allowed: Callable[[], str] = lambda: "",
        move_limit_s: float = math.inf,
    ) -> CycleResult:
        """Raises KubernetesError, MetricsError, ConfigurationError or Interrupted; then nothing further was written.

        ``allowed`` and ``move_limit_s``: see `Acting`.
        """
        stopwatch, spec, at = Stopwatch(), orders.policy.spec, self._clock.now()
        self._on_stage("reading the cluster")
        actuator = self._actuators[orders.mode]
        store: MemoryStore = self._store if orders.mode is Mode.EVICT else self._reading
        memory = store.load(deadline=deadline)
        state = observe(
            client=self._client,
            prometheus=self._prometheus,
            spec=spec,
            at=at,
            deadline=deadline,
            stopwatch=stopwatch,
            source=self._source,
            seen=None if self._annotations is None else self._annotations.see,
        )
        require_coverage(state, spec)
        self._on_stage("deciding")
        orders, unhinted = self._hinted(orders, deadline=deadline)
        verdict = consider(state, memory, orders, stopwatch=stopwatch)
        if orders.mode is Mode.EVICT:
            self._hints.show(verdict.memory.open_moves, hot=_hot_nodes(verdict))
        self._on_stage("acting")
        annotating = _Annotating(self._annotations, stopwatch, allowed)
        annotating.begin(verdict, orders, deadline=deadline)
        with stopwatch.stage("act"):
            acting = Acting(
                actuator,
                store,
                plan=verdict.decision.plan,
                state=state,
                memory=verdict.memory,
                allowed=allowed,
                move_limit_s=move_limit_s,
                without_taints=partial(without_taints, verdict=verdict, orders=orders),
                hints=self._hints,
            )
            notes, outcomes = acting.run(at=at, deadline=deadline)
            rests = tell_rests(actuator, before=memory, after=verdict.memory, at=at, deadline=deadline)
        annotated = annotating.finish(deadline=deadline)
        return CycleResult(
            verdict=verdict,
            outcomes=tuple(outcomes),
            memory=acting.memory,
            seconds=stopwatch.seconds,
            notes=(*unhinted, *notes, *rests, *annotated.notes),
            annotated=annotated,
        )

    def _hinted(self, orders: Orders, *, deadline: Deadline) -> tuple[Orders, tuple[str, ...]]:
        """The orders, without hints where nobody would give them, and why. Dry run predicts as evict mode would act."""
        if not orders.hints or orders.mode is not Mode.EVICT:
            return orders, ()
        why = self._hints.unready(deadline=deadline)
        return (replace(orders, hints=False), (why,)) if why else (orders, ())


@dataclass(frozen=True, slots=True)
class _Annotating:
    """The annotations of one cycle around its moves, as a stage of their own. Without any, nothing."""

    annotations: NodeAnnotations | None
    stopwatch: Stopwatch
    allowed: Callable[[], str]

    def begin(self, verdict: Verdict, orders: Orders, *, deadline: Deadline) -> None:
        if self.annotations is None:
            return
        with self.stopwatch.stage("annotate"):
            self.annotations.begin(verdict.state, orders, deadline=deadline)
            if not self.allowed():
                self.annotations.plan_nodes_first(verdict.decision.plan, deadline=deadline)

    def finish(self, *, deadline: Deadline) -> NodesAnnotated:
        if self.annotations is None:
            return NOTHING_DONE
        with self.stopwatch.stage("annotate"):
            return self.annotations.finish(deadline=deadline, allowed=not self.allowed())


def _hot_nodes(verdict: Verdict) -> frozenset[str]:
    """By name: nodes that no replacement is sent to."""
    names = verdict.state.nodes.names
    return frozenset(names[row] for row in np.flatnonzero(verdict.findings.node_class == NodeClass.HOT).tolist())
