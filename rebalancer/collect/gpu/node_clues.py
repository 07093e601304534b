"""What a node says about GPUs, taken from its wire struct; None of a node that says nothing.

Nothing else of its labels and annotations: they change with every heartbeat and every load that somebody writes, and what is read of
devices with them would have to be read again.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.gpu.nodes import hami, volcano
from rebalancer.gpu.nodes.clues import NodeClues, ObjectDevice, SliceDevice
from rebalancer.gpu.nodes.nvidia_labels import COUNT
from rebalancer.kube.wire import NodeWire

_NATIVE = ("kubernetes.io/", "attachable-volumes-", "hugepages-")
_LABELS = (
    "nvidia.com/",
    "amd.com/",
    "beta.amd.com/",
    "cloud.google.com/gke-",
    "node.koordinator.sh/",
    "gaia.tencent.com/",
)
_ANNOTATIONS = (hami.REGISTER, hami.CORDON, volcano.REGISTER, volcano.UNHEALTHY)
_REGISTERS = (hami.REGISTER, volcano.REGISTER)
_NOTHING: Mapping[str, str] = {}


def node_clues(
    wire: NodeWire, *, objects: tuple[ObjectDevice, ...] | None, slices: tuple[SliceDevice, ...], unhealthy: str = ""
) -> NodeClues | None:
    labels, annotations = wire.metadata.labels or _NOTHING, wire.metadata.annotations or _NOTHING
    capacity, allocatable = _extended(wire.status.capacity), _extended(wire.status.allocatable)
    told = capacity or allocatable or objects or slices or COUNT in labels
    if not told and not any(name in annotations for name in _REGISTERS):
        return None
    return NodeClues(
        name=wire.metadata.name,
        labels={key: text for key, text in labels.items() if key.startswith(_LABELS)},
        annotations={key: annotations[key] for key in _ANNOTATIONS if key in annotations},
        capacity=capacity,
        allocatable=allocatable,
        objects=objects,
        slices=slices,
        unhealthy=unhealthy,
    )


def _extended(quantities: Mapping[str, str] | None) -> Mapping[str, str]:
    if not quantities:
        return _NOTHING
    return {name: text for name, text in quantities.items() if "/" in name and not name.startswith(_NATIVE)} or _NOTHING
