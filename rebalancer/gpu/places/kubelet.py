"""What the kubelet says it has given to a container: ``allocatedResourcesStatus``, for the resources of device plugins.

An id is the uuid of a device, with ``::<replica>`` behind it where devices are shared, or GKE's ``nvidia<index>`` with a part behind it.
The ids of gpushare and HAMi are made up and stand for no device, so those schemes are never read here; nor are ids that name no NVIDIA
device, which nothing else calls by that name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rebalancer.gpu.places.clues import KubeletDevice, PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import UNKNOWN, GpuAsk, Scheme

_UUID = re.compile(r"((?:GPU|MIG)-[0-9A-Za-z./-]+)(?:::[0-9]+)?")
_GKE = re.compile(r"nvidia([0-9]{1,4})(/.*)?")
_INSTANCE_OF_GKE = "/gi"


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is given says how much
    units: Counter[int] = Counter()
    for given in pod.kubelet:
        place = place_of(given, node)
        if place is not None:
            units[place] += 1
    for place, count in sorted(units.items()):
        cut = node.devices[place].replicas
        shares = node.devices[place].scheme is Scheme.MPS or cut == 1
        part = min(1.0, count / cut) if cut == cut else UNKNOWN
        yield Held(device=place, confidence=Confidence.ALLOCATED, compute=part, memory_share=part if shares else UNKNOWN)


def place_of(given: KubeletDevice, node: NodeView) -> int | None:
    """None for an id that names no device. Raises Misplaced for one that the node does not have."""
    where = f"the kubelet's status of {given.resource}"
    uuid = uuid_of(given.id)
    if uuid:
        return node.find_uuid(uuid)
    gke = _GKE.fullmatch(given.id)
    if gke is None or (gke.group(2) or "").startswith(_INSTANCE_OF_GKE):
        return None
    return node.at_index(int(gke.group(1)), where=where)


def uuid_of(device_id: str) -> str:
    """The uuid in the id of a device; empty when it holds none."""
    match = _UUID.fullmatch(device_id)
    return match.group(1) if match is not None else ""
