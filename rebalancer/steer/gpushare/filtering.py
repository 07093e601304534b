"""The verb filter, from bytes to bytes: which nodes have one device with room for the pod.

A body that cannot be read is answered with status 200 and a sentence in ``Error``, of which kube-scheduler makes an event. Before the
cluster has been read, every node passes: what is not known refuses nothing, and the verb bind, which decides, reads the node anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat

import msgspec

from rebalancer.steer.extender_wire import FilterResult, NodeHead, NodeList, NodeListArgs
from rebalancer.steer.gpushare.devices import GpuAsk, ask_of
from rebalancer.steer.gpushare.ledger import NOT_SHARED

OK = 200
NO_ROOM = "Insufficient GPU Memory in one device"
_PLACE = re.compile(r"\s+")
_LONGEST_WORDS = 300


class _Resources(msgspec.Struct, frozen=True, gc=False):
    limits: dict[str, str] | None = None


class _Container(msgspec.Struct, frozen=True, gc=False):
    resources: _Resources | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None


class _Meta(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class _Args(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: _Pod | None = None
    nodes: NodeListArgs | None = None
    node_names: list[str] | None = None


_decode = msgspec.json.Decoder(_Args).decode
_decode_node = msgspec.json.Decoder(NodeHead).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """``body`` is JSON, the status always 200. The numbers are for metrics."""

    body: bytes
    nodes: int = 0
    refused: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """``nodes``: the whole objects, when they were sent instead of names."""

    uid: str
    ask: GpuAsk
    names: list[str]
    nodes: list[msgspec.Raw] | None


class Unreadable(Exception):
    """A request that is not what kube-scheduler sends, with what to tell."""


def not_shared(node: str) -> str:
    """The words of the protocol for a node without devices to share."""
    return f"The node {node} is not for GPU share, need skip"


def read_question(body: bytes) -> Question:
    """Raises Unreadable."""
    try:
        args = _decode(body)
        if args.pod is None:
            raise Unreadable("the request has no Pod; the extender API v1 of kube-scheduler is expected")
        ask = ask_of(_limits(args.pod.spec.containers), _limits(args.pod.spec.init_containers))
        if args.node_names is not None:
            return Question(args.pod.metadata.uid, ask, args.node_names, None)
        if args.nodes is None:
            raise Unreadable("the request has neither NodeNames nor Nodes; the extender API v1 of kube-scheduler is expected")
        nodes = args.nodes.items or []
        return Question(args.pod.metadata.uid, ask, [_decode_node(node).metadata.name for node in nodes], nodes)
    except (ValueError, OverflowError, RecursionError) as problem:  # what msgspec raises is a ValueError
        raise unreadable(body, problem) from None


def unreadable(body: bytes, problem: Exception) -> Unreadable:
    """The sentence for a body that does not decode."""
    return Unreadable(f"the request of {len(body)} bytes cannot be read, {_PLACE.sub(' ', str(problem))[:_LONGEST_WORDS]}")


def _limits(containers: tuple[_Container, ...] | None) -> list[Mapping[str, str] | None]:
    return [each.resources.limits if each.resources else None for each in containers or ()]


def filter_nodes(body: bytes, *, most_free: Mapping[str, int] | None, own: Mapping[str, Mapping[str, int]] | None = None) -> FilterAnswer:
    """Answer the verb.

    ``most_free``: node -> the most that is free on one healthy device (`NodeLedger.most_free`), for nodes that share devices; None while
    the cluster has not been read. ``own``: uid -> node -> the same without what the pod of that uid holds there, for pods that are being
    bound and are asked about again.
    """
    try:
        asked = read_question(body)
    except Unreadable as problem:
        words = f"rebalancer gpushare, filter: {problem}"
        return FilterAnswer(_encode(FilterResult(error=words)), error=words)
    if most_free is None or not asked.ask.asks:
        return FilterAnswer(_encode(_result(asked, {})), nodes=len(asked.names))
    if asked.ask.obstacle:
        never = dict.fromkeys(asked.names, f"the pod {asked.ask.obstacle}")
        return FilterAnswer(_encode(_result(asked, never, for_good=True)), nodes=len(asked.names), refused=len(asked.names))
    failed = _failed(asked, most_free, (own or {}).get(asked.uid, {}))
    return FilterAnswer(_encode(_result(asked, failed)), nodes=len(asked.names), refused=len(failed))


def _failed(asked: Question, most_free: Mapping[str, int], own: Mapping[str, int]) -> dict[str, str]:
    """Refused node -> why. One look-up a node, which is most of what an answer costs."""
    names, ask = asked.names, asked.ask.memory
    known = {**most_free, **own} if own else most_free
    room = map(known.get, names, repeat(NOT_SHARED))
    return {name: not_shared(name) if free == NOT_SHARED else NO_ROOM for name, free in zip(names, room, strict=True) if free < ask}


def _result(asked: Question, failed: dict[str, str], *, for_good: bool = False) -> FilterResult:
    """The answer in the kind of the question. ``for_good``: removing other pods would not help."""
    kept = [name not in failed for name in asked.names]
    refusals = ({}, failed) if for_good else (failed, {})
    if asked.nodes is None:
        names = [name for name, keep in zip(asked.names, kept, strict=True) if keep]
        return FilterResult(node_names=names, failed_nodes=refusals[0], failed_and_unresolvable_nodes=refusals[1])
    nodes = [node for node, keep in zip(asked.nodes, kept, strict=True) if keep]
    return FilterResult(nodes=NodeList(nodes), failed_nodes=refusals[0], failed_and_unresolvable_nodes=refusals[1])
