"""HAMi: the list of what it has allocated, on the node that it has written beside it.

The list of what is still to be allocated can stay behind after binding, so it counts only where there is no list of what was. Where HAMi
cuts GPUs into MIG instances for its pods, it writes which instance of which GPU; it is the GPU that its node tells. The instance has uuids
once it is made. Its memory is taken from its profile, which rounds up what it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.places.lists import held_by_list
from rebalancer.gpu.unreadable import Unreadable, shown
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import GIB, GpuAsk

ALLOCATED, PLANNED = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate"
NODE, PHASE = "hami.io/vgpu-node", "hami.io/bind-phase"
INSTANCES = "hami.io/vgpu-mig-allocations"
_DONE, _FAILED = "success", "failed"
_LONGEST = 64 * 1024
_PROFILE = re.compile(r"(?:[0-9]+c\.)?[0-9]+g\.([0-9]{1,4})gb(?:\+.*)?")


class _Instance(msgspec.Struct, frozen=True, rename={"gpu": "gpuUUID", "uuid": "migUUID"}):
    gpu: str
    profile: str
    uuid: str = ""


_decode = msgspec.json.Decoder(list[_Instance]).decode


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is written says how much
    name = ALLOCATED if pod.annotations.get(ALLOCATED) else PLANNED
    text, phase = pod.annotations.get(name), pod.annotations.get(PHASE, "")
    instances = pod.annotations.get(INSTANCES)
    if phase == _FAILED or not (text or instances):
        return
    node.require_here(pod.annotations.get(NODE), where=f"annotation {NODE}")
    if instances:
        yield from _instances(instances, node)
        return
    confirmed = name == ALLOCATED and phase in (_DONE, "")
    yield from held_by_list(name, text or "", node, confidence=Confidence.ALLOCATED if confirmed else Confidence.DECLARED)


def _instances(text: str, node: NodeView) -> Iterator[Held]:
    """Raises Unreadable and Misplaced."""
    where = f"annotation {INSTANCES}"
    try:
        found = _decode(text[:_LONGEST].encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreadable(f"{where} is no list of instances ({error})") from error
    for each in found:
        size = _PROFILE.fullmatch(each.profile)
        if size is None:
            raise Unreadable(f"{where} names {shown(each.profile)}, which is no MIG profile")
        yield Held(
            device=node.of_uuid(each.gpu, where=where),
            confidence=Confidence.ALLOCATED if each.uuid else Confidence.DECLARED,
            memory_bytes=int(size.group(1)) * GIB,
        )
