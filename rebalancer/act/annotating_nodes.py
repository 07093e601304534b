"""Annotating nodes: carries load annotations to the API server, one merge patch a node, at a limited rate, by a few threads, in its time.

What is to be written is decided elsewhere (`steer.annotation_work`); here it is done, as much of it as the time allows, in the order given.
A patch that fails is counted and left to the next cycle, which sees the node as it is and decides anew. What would fail for every node (a
missing right, the fence, a server that asks for quiet, no time left) ends the work, and is told once, until something succeeds again.

Removing knows whose an annotation is: our own by its key, crane's by what the API server remembers of who wrote it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from rebalancer.deadline import Deadline
from rebalancer.detect.pools import claimed
from rebalancer.errors import Interrupted, KubernetesError, KubernetesForbidden, KubernetesNotFound, KubernetesThrottled
from rebalancer.kube.client import KubeClient
from rebalancer.kube.field_managers import AnnotatedNode, annotated_nodes
from rebalancer.kube.limiter import TokenBucket
from rebalancer.kube.operations import node_path
from rebalancer.kube.patches import FIELD_MANAGER, annotate
from rebalancer.policy.model import Pool
from rebalancer.steer.annotation_work import CRANE_KEYS, NodePatch
from rebalancer.steer.own_annotation import LOAD

THREADS = 4
HURRYING_THREADS = 8
MOST_FAILURES = 8
"""Of other kinds, after which the rest is left to the next cycle: the server is not well."""
_QUIET_S = 1.0
_WIND_UP_S = 2.0
"""How long requests under way may take to end after a stop."""
_INVALID = 422
"""What a ValidatingAdmissionPolicy answers when it names no reason of its own."""


class Kind(Enum):
    """Whose format a value has; the closed set of ``node_annotations_total{kind}``."""

    OWN = "own"
    CRANE = "crane"


class PatchResult(Enum):
    """What became of a patch; the closed set of ``node_annotations_total{result}``."""

    WRITTEN = "written"
    REMOVED = "removed"
    GONE = "gone"
    """The node is not there any more, which needs nothing."""
    REFUSED = "refused"
    """The right is missing, or the fence does not let it through."""
    FAILED = "failed"
    LEFT = "left"
    """Not tried: no time, or the server is not well. The next cycle decides anew."""
    FOREIGN = "foreign"
    """Not tried: somebody else writes there."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """``counts``: patches by the kinds of value in them and what became of them. ``done``: those that stand on their nodes now; ``tried``:
    those that may. ``left``: how many were not tried."""

    counts: Mapping[tuple[Kind, PatchResult], int] = field(default_factory=dict)
    done: tuple[NodePatch, ...] = ()
    tried: tuple[NodePatch, ...] = ()
    left: int = 0
    notes: tuple[str, ...] = ()


class AnnotatingNodes:
    """``per_second``: patches on average, of all threads. One call at a time."""

    def __init__(self, client: KubeClient, *, per_second: float = 50.0, threads: int = THREADS) -> None:
        self._client, self._threads = client, threads
        self._bucket = TokenBucket(per_second, max(1, round(per_second)))
        self._told = ""
        """The last trouble that was told and is not over."""
        self.put: set[str] = set()
        """Nodes that this process has annotated and not cleaned since."""

    def write(self, patches: Sequence[NodePatch], *, deadline: Deadline, hurry: bool = False) -> Annotated:
        """Do what can be done until the deadline or a stop. ``hurry``: without the limit of rate. Raises nothing of ours."""
        if not patches:
            return Annotated()
        run = _Run(patches)
        threads = [
            threading.Thread(target=self._work, args=(run, deadline, hurry), name=f"annotate-{number}", daemon=True)
            for number in range(min(HURRYING_THREADS if hurry else self._threads, len(patches)))
        ]
        for thread in threads:
            thread.start()
        _join(threads, deadline=deadline)
        return self._told_of(run, patches)

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None, hurry: bool = False) -> tuple[str, ...]:
        """Take everything of ours off the nodes of ``pools`` and off those that this process has annotated; None: off every node.

        Raises KubernetesError when the nodes cannot be listed.
        """
        nodes = annotated_nodes(self._client, (LOAD, *CRANE_KEYS), deadline=deadline)
        mine = [node for node in nodes if pools is None or claimed(pools, node.labels) or node.name in self.put]
        patches = [NodePatch(row, node.name, dict.fromkeys(keys), 0.0) for row, node in enumerate(mine) if (keys := _removable(node))]
        done = self.write(patches, deadline=deadline, hurry=hurry)
        notes = list(done.notes)
        removed = len(done.done)
        if removed:
            notes.append(f"load annotations taken off {removed} node{'s' if removed != 1 else ''}")
        if removed < len(patches):
            rest = len(patches) - removed
            notes.append(f"load annotations of {rest} node{'s' if rest != 1 else ''} are left; they go stale by themselves")
        return (*notes, *_foreign_notes(mine))

    def _work(self, run: _Run, deadline: Deadline, hurry: bool) -> None:
        for patch in run.taken():
            try:
                if deadline.remaining() <= 0 or not (hurry or self._bucket.take(deadline)):
                    run.end(patch, PatchResult.LEFT)
                    run.stop("")
                    return
                annotate(self._client, node_path(patch.node), patch.values, deadline=deadline)
                run.end(patch, PatchResult.REMOVED if patch.removes_only else PatchResult.WRITTEN)
            except Interrupted:
                run.end(patch, PatchResult.LEFT)
                run.stop("")
                return
            except KubernetesNotFound:
                run.end(patch, PatchResult.GONE)
            except KubernetesThrottled as error:
                self._bucket.hold(error.retry_after_s or _QUIET_S)
                run.end(patch, PatchResult.LEFT)
                run.stop(error.message)
            except KubernetesForbidden as error:
                run.end(patch, PatchResult.REFUSED)
                run.stop(str(error))
            except KubernetesError as error:
                fenced = error.status == _INVALID
                run.end(patch, PatchResult.REFUSED if fenced else PatchResult.FAILED)
                run.failed(f"{error}{_FENCE if fenced else ''}", hopeless=fenced)

    def _told_of(self, run: _Run, patches: Sequence[NodePatch]) -> Annotated:
        done = run.close(patches)
        for patch in done.done:
            if patch.removes_only:
                self.put.discard(patch.node)
            else:
                self.put.add(patch.node)
        trouble = run.trouble
        notes: tuple[str, ...] = ()
        if trouble and trouble != self._told:
            missing = len(patches) - len(done.done)
            notes = (f"load annotations of {missing} node{'s' if missing != 1 else ''} could not be written, the first: {trouble}",)
        if trouble or done.done:
            self._told = trouble
        return replace(done, notes=notes)


_FENCE = "; the fence of the chart allows crane's keys where policy.spec.steering.annotateNodes of the chart says crane or both"


class _Run:
    """What the threads of one call share."""

    def __init__(self, patches: Sequence[NodePatch]) -> None:
        self._patches = iter(patches)
        self._lock = threading.Lock()
        self._stopped = False
        self._why = ""
        self._failures = 0
        self.done: list[NodePatch] = []
        self.tried: list[NodePatch] = []
        self.counts: Counter[tuple[Kind, PatchResult]] = Counter()

    def taken(self) -> Iterator[NodePatch]:
        while True:
            with self._lock:
                patch = None if self._stopped else next(self._patches, None)
            if patch is None:
                return
            yield patch

    def end(self, patch: NodePatch, result: PatchResult) -> None:
        with self._lock:
            for kind in kinds_of(patch):
                self.counts[kind, result] += 1
            if result in (PatchResult.WRITTEN, PatchResult.REMOVED):
                self.done.append(patch)
                self._failures = 0
            if result is not PatchResult.LEFT:
                self.tried.append(patch)

    def stop(self, why: str) -> None:
        with self._lock:
            self._stopped = True
            self._why = self._why or why

    def failed(self, why: str, *, hopeless: bool) -> None:
        with self._lock:
            self._failures += 1
            self._why = self._why or why
            self._stopped = self._stopped or hopeless or self._failures >= MOST_FAILURES

    def close(self, patches: Sequence[NodePatch]) -> Annotated:
        """What came of them; what no thread has taken by now is left."""
        with self._lock:
            self._stopped = True
            for patch in self._patches:
                for kind in kinds_of(patch):
                    self.counts[kind, PatchResult.LEFT] += 1
            return Annotated(dict(self.counts), tuple(self.done), tuple(self.tried), left=len(patches) - len(self.tried))

    @property
    def trouble(self) -> str:
        """The first reason why something did not succeed; empty when it was only the time."""
        with self._lock:
            return self._why


def kinds_of(patch: NodePatch) -> tuple[Kind, ...]:
    own, crane = LOAD in patch.values, any(key != LOAD for key in patch.values)
    return tuple(kind for kind, there in ((Kind.OWN, own), (Kind.CRANE, crane)) if there)


def _join(threads: Sequence[threading.Thread], *, deadline: Deadline) -> None:
    """Until all are through; after the deadline or a stop, only for what is under way."""
    until: float | None = None
    while any(thread.is_alive() for thread in threads):
        if until is None and (deadline.stop.is_set() or deadline.clock() > deadline.at):
            until = time.monotonic() + _WIND_UP_S
        if until is not None and time.monotonic() > until:
            return
        for thread in threads:
            thread.join(0.02)


def _removable(node: AnnotatedNode) -> list[str]:
    """Our own annotation, and of crane's those that the API server knows to be ours."""
    ours = node.written_by(FIELD_MANAGER)
    return [key for key in node.values if key == LOAD or key in ours]


def _foreign_notes(nodes: Sequence[AnnotatedNode]) -> tuple[str, ...]:
    foreign = [node for node in nodes if any(key not in _removable(node) for key in node.values)]
    if not foreign:
        return ()
    return (f"crane annotations of {len(foreign)} node{'s' if len(foreign) != 1 else ''} stay: {writers_in_words(foreign)} wrote them",)


def writers_in_words(nodes: Sequence[AnnotatedNode]) -> str:
    """Who else wrote there."""
    names = sorted({name for node in nodes for writers in node.writers.values() for name in writers if name != FIELD_MANAGER})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else "somebody else"
