"""The register of a node: which pods are being bound to it at this moment, and to which device. What keeps binders apart.

Several processes may bind to the same node at the same time, and a pod whose binding is under way is nowhere else to be seen. So each
binder writes down what it is going to do before it does it, in an object that can only be written by whoever has read its latest state;
and whoever reads it counts what is written down.

An entry names the version of the pod that its binding is bound to (the API server refuses it for every other one). That settles, without a
clock, when an entry is void: as soon as the pod is seen in another version, or gone, a binding that may still be on its way cannot take
effect any more. Then the pod itself tells where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from rebalancer.steer.gpushare.allocations import Share
from rebalancer.steer.gpushare.ledger import Holder

REGISTER_KEY = "binding"


@dataclass(frozen=True, slots=True)
class Entry:
    """``version``: resourceVersion of the pod. ``at``: Unix seconds, for people and for patience, never for a decision.

    ``repeated``: more than one request for this binding may be on its way.
    """

    uid: str
    namespace: str
    name: str
    version: str
    device: int
    memory: int
    at: float
    repeated: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def holder(self) -> Holder:
        return Holder(self.uid, self.namespace, self.name, Share(of_device=((self.device, self.memory),)))


class _EntryWire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    uid: str
    namespace: str
    name: str
    version: str
    device: int
    memory: int
    at: float
    repeated: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_EntryWire]).decode
_FIELDS = ("uid", "namespace", "name", "version", "device", "memory", "at", "repeated")


def format_register(entries: Iterable[Entry]) -> str:
    ordered = sorted(entries, key=lambda entry: (entry.namespace, entry.name, entry.uid))
    return _encode([_EntryWire(*(getattr(entry, name) for name in _FIELDS)) for entry in ordered]).decode()


def parse_register(text: str) -> tuple[Entry, ...] | None:
    """None for what is no register: somebody has written it by hand, and what was in it is not known."""
    try:
        found = _decode(text)
    except (ValueError, RecursionError):
        return None
    if any(wire.device < 0 or wire.memory < 0 for wire in found):
        return None
    return tuple(Entry(*(getattr(wire, name) for name in _FIELDS)) for wire in found)
