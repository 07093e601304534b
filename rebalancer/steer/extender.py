"""The verbs filter and prioritize of kube-scheduler's HTTP extender, from bytes to bytes.

Whatever goes wrong here must never keep a pod from running. No view, no judge, an unknown node, a stale load: every node passes, and all
score alike. A filter answer without nodes means "none fits" to kube-scheduler, so abstaining is to return them all. If every node would be
refused, none is: somewhere the pod must go, and the scores still say where it does the least harm (`Steering.may_refuse_all` is the
Dynamic-Scheduler's way).

A body that cannot be read is answered with a sentence. Of filter, kube-scheduler logs the field ``Error`` of an answer with status 200 and
nothing of any other; prioritize has no such field, so that its status must speak.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import compress

import msgspec
import numpy as np

from rebalancer.state.arrays import IntArray
from rebalancer.steer.extender_wire import (
    ErrorBody,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    NodeList,
    ask_of,
    name_of,
)
from rebalancer.steer.judging import Judge, PodAsk, Verdict
from rebalancer.steer.node_view import NodeView
from rebalancer.steer.own_score import EXTENDER_MAXIMUM
from rebalancer.steer.reservations import NOTHING_RESERVED, Reservation, Reservations, steered_scores, steered_verdict

NEUTRAL = EXTENDER_MAXIMUM // 2
OK = 200
BAD_REQUEST = 400

_decode_args = msgspec.json.Decoder(ExtenderArgs).decode
_encode = msgspec.json.Encoder().encode
_PLACE = re.compile(r"\s+")
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Steering:
    """What requests are answered with: a snapshot of the nodes, and who judges them. Either may be missing: then we abstain."""

    view: NodeView | None
    judge: Judge | None
    may_refuse_all: bool = False
    oldest_view_s: float = 600.0
    """A view older than that is no view: whoever feeds it has stopped."""
    reservations: Reservations = NOTHING_RESERVED

    def ready(self, *, now: float) -> bool:
        return self.view is not None and self.judge is not None and now - self.view.made_at <= self.oldest_view_s


@dataclass(frozen=True, slots=True)
class Chosen:
    """A reservation by its key, and the pod that is to take it up."""

    reservation: str
    pod_uid: str


@dataclass(frozen=True, slots=True)
class VerbAnswer:
    """``body`` is JSON. The numbers are for metrics."""

    status: int
    body: bytes
    nodes: int = 0
    refused: int = 0
    unknown: int = 0
    """Nodes of which nothing was known."""
    spared: bool = False
    """Every node would have been refused, so none was."""
    abstained: bool = False
    """Nothing was known to judge by."""
    error: str = ""
    chosen: Chosen | None = None
    """What the scores count on: to be held for the pod (`Reservations.with_hold`) before they are sent."""


@dataclass(frozen=True, slots=True)
class _Question:
    pod: PodAsk
    names: list[str]
    nodes: list[msgspec.Raw] | None
    """The whole objects, when they were sent instead of names."""


class _Unreadable(Exception):
    pass


def filter_nodes(body: bytes, *, steering: Steering, now: float) -> VerbAnswer:
    """The verb filter. Always status 200; ``Error`` is set when the body cannot be read. ``now`` in Unix seconds."""
    try:
        asked = _question(body)
    except _Unreadable as problem:
        words = f"rebalancer extender, filter: {problem}"
        return VerbAnswer(OK, _encode(FilterResult(error=words)), error=words)
    view, judge = steering.view, steering.judge
    if asked.pod.exempt or view is None or judge is None or not steering.ready(now=now):
        return VerbAnswer(OK, _encode(_all(asked)), nodes=len(asked.names), abstained=not asked.pod.exempt)
    verdict = steered_verdict(judge, steering.reservations, view, asked.names, asked.pod, now=now)
    refused = int(np.count_nonzero(verdict.refused))
    spared = 0 < refused == len(asked.names) and not steering.may_refuse_all
    result = _all(asked) if spared or not refused else _passing(asked, verdict)
    unknown = int(np.count_nonzero(~verdict.known))
    return VerbAnswer(OK, _encode(result), nodes=len(asked.names), refused=0 if spared else refused, unknown=unknown, spared=spared)


def prioritize_nodes(body: bytes, *, steering: Steering, now: float) -> VerbAnswer:
    """The verb prioritize: a score in 0..10 for every node that was sent. Status 400 when the body cannot be read."""
    try:
        asked = _question(body)
    except _Unreadable as problem:
        words = f"rebalancer extender, prioritize: {problem}"
        return VerbAnswer(BAD_REQUEST, _encode(ErrorBody(words)), error=words)
    scores, own = _scores(asked, steering, now=now)
    whose = asked.pod.lineage
    chosen = None if own is None or whose is None else Chosen(own.key, whose.uid)
    body = _encode(list(map(HostPriority, asked.names, scores.tolist())))
    return VerbAnswer(OK, body, nodes=len(asked.names), abstained=not steering.ready(now=now), chosen=chosen)


def _scores(asked: _Question, steering: Steering, *, now: float) -> tuple[IntArray, Reservation | None]:
    view, judge = steering.view, steering.judge
    if view is None or judge is None or not steering.ready(now=now):
        return np.full(len(asked.names), NEUTRAL, dtype=np.int64), None
    return steered_scores(judge, steering.reservations, view, asked.names, asked.pod, now=now)


def _all(asked: _Question) -> FilterResult:
    """Every node passes."""
    if asked.nodes is None:
        return FilterResult(node_names=asked.names)
    return FilterResult(nodes=NodeList(asked.nodes))


def _passing(asked: _Question, verdict: Verdict) -> FilterResult:
    """The answer in the kind of the question: names for names, nodes for nodes."""
    places = np.flatnonzero(verdict.refused)
    failed = dict(zip([asked.names[place] for place in places.tolist()], verdict.why(places), strict=True))
    keep = (~verdict.refused).tolist()
    if asked.nodes is None:
        return FilterResult(node_names=list(compress(asked.names, keep)), failed_nodes=failed)
    return FilterResult(nodes=NodeList(list(compress(asked.nodes, keep))), failed_nodes=failed)


def _question(body: bytes) -> _Question:
    """Raises _Unreadable with what to tell."""
    try:
        args = _decode_args(body)
        if args.pod is None:
            raise _Unreadable("the request has no Pod; the extender API v1 of kube-scheduler is expected")
        if args.node_names is not None:
            return _Question(ask_of(args.pod), args.node_names, None)
        if args.nodes is None:
            raise _Unreadable("the request has neither NodeNames nor Nodes; the extender API v1 of kube-scheduler is expected")
        nodes = args.nodes.items or []
        return _Question(ask_of(args.pod), list(map(name_of, nodes)), nodes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        words = _PLACE.sub(" ", str(problem))[:_LONGEST_WORDS]
        raise _Unreadable(f"the request of {len(body)} bytes cannot be read, {words}") from None
