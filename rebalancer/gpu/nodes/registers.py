"""The registers of virtual GPUs that HAMi and Volcano write on their nodes, in their three forms.

A JSON list of objects (HAMi today); ``uuid,count,mem,core,type,numa,health[,index,mode]`` ended by colons (HAMi before); and
``uuid,count,mem,type,health,mode`` ended by colons (Volcano). Memory is MiB that are handed out, which scaling may make more than there
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rebalancer.gpu.unreadable import Unreadable, shown
from rebalancer.state.gpu import MIB

_LONGEST = 256 * 1024
"""Annotations of one object together are not longer."""
_MOST = 1024
_TRUE = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Registered:
    """``index`` -1: not told. ``count``: virtual GPUs of the device."""

    uuid: str
    index: int
    count: int
    memory_bytes: float
    model: str
    healthy: bool


class _Entry(msgspec.Struct, frozen=True):
    id: str
    count: int
    devmem: int
    type: str = ""
    index: int = -1
    health: bool = True


_decode = msgspec.json.Decoder(list[_Entry]).decode


def hami_register(name: str, text: str) -> tuple[Registered, ...]:
    """Raises Unreadable that names the annotation ``name``."""
    if not text.lstrip().startswith("["):
        return tuple(_old_hami(name, entry) for entry in _entries(name, text))
    try:
        entries = _decode(text[:_LONGEST].encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreadable(f"annotation {name} is no list of devices ({error})") from error
    return _checked(
        name,
        tuple(Registered(each.id, each.index, each.count, _bytes(name, each.devmem), each.type, each.health) for each in entries),
    )


def volcano_register(name: str, text: str) -> tuple[Registered, ...]:
    """Raises Unreadable."""
    found = []
    for entry in _entries(name, text):
        if len(entry) < 5:
            raise Unreadable(f"annotation {name} holds an entry of {len(entry)} parts: {shown(','.join(entry))}")
        uuid, count, memory, model, health = entry[:5]
        found.append(Registered(uuid, -1, _int(name, count), _bytes(name, _int(name, memory)), model, _flag(name, health)))
    return _checked(name, tuple(found))


def _old_hami(name: str, entry: list[str]) -> Registered:
    if len(entry) < 7:
        raise Unreadable(f"annotation {name} holds an entry of {len(entry)} parts: {shown(','.join(entry))}")
    uuid, count, memory, _, model, _, health, *rest = entry
    index = _int(name, rest[0]) if rest else -1
    return _checked(name, (Registered(uuid, index, _int(name, count), _bytes(name, _int(name, memory)), model, _flag(name, health)),))[0]


def _entries(name: str, text: str) -> list[list[str]]:
    """Each ended by a colon; the last one may do without."""
    found = [part.split(",") for part in text[:_LONGEST].split(":") if part.strip()]
    if len(found) > _MOST:
        raise Unreadable(f"annotation {name} holds {len(found)} devices, more than any node has")
    return found


def _checked(name: str, found: tuple[Registered, ...]) -> tuple[Registered, ...]:
    for each in found:
        if not each.uuid.strip() or each.count < 0 or not -1 <= each.index < _MOST:
            raise Unreadable(f"annotation {name} holds a device without uuid, or with a negative number: {shown(each.uuid)}")
    if len({each.uuid for each in found}) < len(found):
        raise Unreadable(f"annotation {name} holds one uuid twice")
    return found


def _bytes(name: str, mib: int) -> float:
    if not 0 < mib < 1 << 40:
        raise Unreadable(f"annotation {name} holds a device of {mib} MiB")
    return mib * MIB


def _int(name: str, text: str) -> int:
    plain = text.strip()
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= 12):
        raise Unreadable(f"annotation {name} holds {shown(text)} where a number belongs")
    return int(plain)


def _flag(name: str, text: str) -> bool:
    found = _TRUE.get(text.strip().lower())
    if found is None:
        raise Unreadable(f"annotation {name} holds {shown(text)} where true or false belongs")
    return found
