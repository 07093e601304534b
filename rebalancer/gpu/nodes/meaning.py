"""What asks mean on a node, from what the node says of its devices."""

from __future__ import annotations

from rebalancer.gpu.asks.mig import PREFIX, profile_of
from rebalancer.gpu.asks.shared import SUFFIX, shared_family
from rebalancer.gpu.meaning import UNKNOWN_UNIT, WHOLE_DEVICE, Meaning, PlainUnit
from rebalancer.gpu.nodes.amd import plain_unit
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.gpushare import node_unit_bytes
from rebalancer.gpu.nodes.hami import hands_out_virtual
from rebalancer.gpu.nodes.nvidia_labels import STRATEGY, number_of, read_labels, sharing_unit
from rebalancer.gpu.unreadable import Unreadable
from rebalancer.state.gpu import UNKNOWN, Family


def meaning_of(node: NodeClues, context: NodeContext) -> Meaning:
    """What cannot be read is unknown here; that it cannot be is for the sources of devices to say."""
    shared = tuple((name, _shared_unit(node, name)) for name in node.resources if shared_family(name, context.names) is not None)
    return Meaning(
        nvidia=_nvidia(node, renamed=any(not name.startswith(PREFIX) for name, _ in shared)),
        amd=_amd(node),
        hami=hands_out_virtual(node),
        shared=shared,
        gpushare_unit_bytes=_gpushare(node, context),
    )


def _nvidia(node: NodeClues, *, renamed: bool) -> PlainUnit:
    """``renamed``: replicas have their own name, so what has the plain one is no replica."""
    try:
        unit = read_labels(node.labels).unit
    except Unreadable:
        return UNKNOWN_UNIT
    return WHOLE_DEVICE if renamed and not unit.profile else unit


def _amd(node: NodeClues) -> PlainUnit:
    try:
        return plain_unit(node.labels)
    except Unreadable:
        return UNKNOWN_UNIT


def _gpushare(node: NodeClues, context: NodeContext) -> float:
    try:
        return node_unit_bytes(node, context)
    except Unreadable:
        return UNKNOWN


def _shared_unit(node: NodeClues, resource: str) -> PlainUnit:
    """Of a resource whose name says that it counts replicas."""
    try:
        if not resource.startswith(PREFIX):
            return read_labels(node.labels).unit if _family_is_nvidia(resource) else UNKNOWN_UNIT
        stem = resource.removesuffix(SUFFIX)
        return sharing_unit(
            strategy=node.labels.get(f"{stem}.sharing-strategy", node.labels.get(STRATEGY, "")),
            replicas=number_of(node.labels, f"{stem}.replicas"),
            profile=profile_of(stem),
            names=f"{stem}.sharing-strategy",
        )
    except Unreadable:
        return UNKNOWN_UNIT


def _family_is_nvidia(resource: str) -> bool:
    return resource.startswith(f"{Family.NVIDIA.value}.com/")
