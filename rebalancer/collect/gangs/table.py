"""From marks and objects to the table of gangs.

Pods with the same marks are looked at once. A group that needs one member is no gang; of several groups that a pod is in (that of its
scheduler, that of its job) the first that is a gang gives it its name, and the one that needs the most says how many it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.collect.gangs.marks import GangMark
from rebalancer.collect.gangs.objects import GangKey, GangObjects, Said, said_by_objects
from rebalancer.kube.wire_workloads import JobWire
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.gangs import Gangs, GangSystem, MinimumSource

_ALONE_TOO = frozenset((GangSystem.JOB_SET, GangSystem.TRAINING, GangSystem.LEADER_WORKER_SET))
"""Made by a job that expects its pods to fail together: a gang even while it is one pod."""
_CALLED_CLASSES = frozenset(GangSystem) - {GangSystem.INDEXED_JOB, GangSystem.LEADER_WORKER_SET}
"""Gangs that are training unless something says otherwise; an indexed Job stays batch, a LeaderWorkerSet serving."""


@dataclass(frozen=True, slots=True)
class MarkedPods:
    """``rows``: of pods with marks, ascending; ``numbers``: of ``marks``, all tuples of marks that there are."""

    rows: IntArray
    numbers: IntArray
    marks: Sequence[tuple[GangMark, ...]]


@dataclass(slots=True)
class _Gang:
    pods: list[int] = field(default_factory=list)
    minimum: int = 0
    source: MinimumSource = MinimumSource.MEMBERS
    all_needed: bool = False
    elastic: bool = False
    backoff_limit: float = math.nan


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What one tuple of marks comes to. ``minimum`` 0: all members."""

    key: GangKey
    minimum: int
    source: MinimumSource
    elastic: bool
    backoff_limit: float


def gang_table(pods: MarkedPods, objects: GangObjects, jobs: Iterable[JobWire], *, unfinished: BoolArray) -> tuple[Gangs, tuple[str, ...]]:
    """The gangs, and notes about what is not known of them. ``unfinished`` (pods,): may be members."""
    if not len(pods.rows):
        return Gangs(told=True), ()
    said = said_by_objects(objects, jobs)
    meanings = {number: _meaning(pods.marks[number], said) for number in np.unique(pods.numbers).tolist()}
    gangs: dict[GangKey, _Gang] = {}
    for row, number in zip(pods.rows.tolist(), pods.numbers.tolist(), strict=True):
        meaning = meanings[number]
        if meaning is not None and unfinished[row]:
            _join(gangs.setdefault(meaning.key, _Gang()), row, meaning)
    kept = {
        key: gang
        for key, gang in gangs.items()
        if len(gang.pods) > 1 or gang.minimum > 1 or (key[0] in _ALONE_TOO and (gang.all_needed or gang.elastic))
    }
    return _columns(kept), _notes(kept, pods, objects)


def gang_classes(gangs: Gangs) -> IntArray:
    """Rows of the pods that are training because they are in a gang."""
    if not len(gangs):
        return gangs.pod
    trains = np.array([system in _CALLED_CLASSES for system in gangs.systems], dtype=np.bool_)
    return gangs.pod[trains[gangs.gang]]


def _meaning(marks: Sequence[GangMark], said: Mapping[GangKey, Said]) -> _Meaning | None:
    """None: no gang by any of the marks."""
    found = [(mark, *_asked(mark, said)) for mark in marks]
    gangs = [(mark, saying, source) for mark, saying, source in found if saying.minimum != 1 or saying.elastic]
    if not gangs:
        return None
    first = gangs[0][0]
    most = max(gangs, key=lambda each: (each[1].minimum == 0, each[1].minimum))
    limits = [saying.backoff_limit for _, saying, _ in gangs if not math.isnan(saying.backoff_limit)]
    return _Meaning(
        key=(first.system, first.namespace, first.name),
        minimum=most[1].minimum,
        source=most[2],
        elastic=any(saying.elastic for _, saying, _ in gangs),
        backoff_limit=min(limits, default=math.nan),
    )


def _asked(mark: GangMark, said: Mapping[GangKey, Said]) -> tuple[Said, MinimumSource]:
    """Objects know better than marks. An object that is not there makes no gang of an indexed Job: many of them are none."""
    name = f"{mark.kind}/{mark.name}" if mark.kind else mark.name
    saying = said.get((mark.system, mark.namespace, name))
    if saying is None and mark.system is GangSystem.KUBERNETES and name.count("/") == 2:
        saying = said.get((mark.system, mark.namespace, name.rpartition("/")[0]))  # of all replicas of the group
    if saying is not None:
        return saying, MinimumSource.OBJECT if saying.minimum else MinimumSource.MEMBERS
    if mark.system is GangSystem.INDEXED_JOB:
        return Said(1), MinimumSource.MEMBERS
    return Said(mark.minimum), MinimumSource.MARK if mark.minimum else MinimumSource.MEMBERS


def _join(gang: _Gang, row: int, meaning: _Meaning) -> None:
    gang.pods.append(row)
    gang.elastic |= meaning.elastic
    if math.isnan(gang.backoff_limit):
        gang.backoff_limit = meaning.backoff_limit
    if meaning.minimum == 0:
        gang.all_needed, gang.source = True, MinimumSource.MEMBERS
    elif not gang.all_needed and meaning.minimum > gang.minimum:
        gang.minimum, gang.source = meaning.minimum, meaning.source


def _columns(gangs: Mapping[GangKey, _Gang]) -> Gangs:
    keys = sorted(gangs, key=lambda key: (key[1], key[2], key[0].value))
    found = [gangs[key] for key in keys]
    pod = np.array([row for gang in found for row in gang.pods], dtype=np.int64)
    number = np.repeat(np.arange(len(found), dtype=np.int64), [len(gang.pods) for gang in found])
    order = np.argsort(pod, kind="stable")
    return Gangs(
        systems=tuple(key[0] for key in keys),
        namespaces=tuple(key[1] for key in keys),
        names=tuple(key[2] for key in keys),
        minimum=np.array([len(gang.pods) if gang.all_needed else gang.minimum for gang in found], dtype=np.int64),
        sources=tuple(gang.source for gang in found),
        elastic=tuple(gang.elastic for gang in found),
        backoff_limit=np.array([gang.backoff_limit for gang in found], dtype=np.float64),
        pod=pod[order],
        gang=number[order],
        told=True,
    )


def _notes(gangs: Mapping[GangKey, _Gang], pods: MarkedPods, objects: GangObjects) -> tuple[str, ...]:
    notes: list[str] = []
    if objects.forbidden:
        lists = ", ".join(sorted(objects.forbidden))
        guessed = sum(gang.source is MinimumSource.MEMBERS for gang in gangs.values())
        notes.append(f"gangs: {lists} may not be listed, so {guessed} gangs count as needing all of their members; grant the right to list")
    odd = sorted({(mark.namespace, mark.name, mark.odd) for number in np.unique(pods.numbers) for mark in pods.marks[number] if mark.odd})
    if odd:
        namespace, name, words = odd[0]
        more = f" (and {len(odd) - 1} more like it)" if len(odd) > 1 else ""
        notes.append(f"gangs: {namespace}/{name} counts as needing all of its members: {words}{more}")
    return tuple(notes)
