"""Which device a pod holds, by its annotations: written at its binding, read by everybody.

The protocol's own annotations name one device and an amount. A newer one, which other schedulers of the same family write and which is
read first, names amounts for each container and device. What is not known is kept as that: a pod that holds memory on some device, but on
which one nobody can tell, may hold it on any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rebalancer.steer.gpushare.devices import whole_number

INDEX = "ALIYUN_COM_GPU_MEM_IDX"
OF_DEVICE = "ALIYUN_COM_GPU_MEM_DEV"
OF_POD = "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUMED_AT = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
ALLOCATION = "scheduler.framework.gpushare.allocation"
_LONGEST = 65536

_decode_allocation = msgspec.json.Decoder(dict[str, dict[str, int]]).decode


@dataclass(frozen=True, slots=True)
class Share:
    """What a pod holds, in the unit of the node. ``of_device``: (device, amount) in the order of devices, each device once.

    ``somewhere``: what it holds beside that on a device that is not known. ``oddity``: why, or what else is odd, as the end of a sentence.
    """

    of_device: tuple[tuple[int, int], ...] = ()
    somewhere: int = 0
    oddity: str = ""

    def on(self, count: int) -> Share:
        """The same on a node of so many devices: a device that it does not have is not known."""
        beyond = [(device, held) for device, held in self.of_device if device >= count]
        if not beyond:
            return self
        return Share(
            of_device=tuple((device, held) for device, held in self.of_device if device < count),
            somewhere=self.somewhere + sum(held for _, held in beyond),
            oddity=f"is said to hold device {beyond[0][0]}, and its node has {count}",
        )


def bind_annotations(*, device: int, of_pod: int, of_device: int, at: float) -> dict[str, str]:
    """What is written at the binding of a pod. ``of_device``: memory of one device; ``at``: Unix seconds."""
    return {
        INDEX: str(device),
        OF_DEVICE: str(of_device),
        OF_POD: str(of_pod),
        ASSIGNED: "false",
        ASSUMED_AT: str(round(at * 1e6) * 1000),
    }


def share_of(annotations: Mapping[str, str], *, asked: int) -> Share:
    """What a pod holds that asks for ``asked`` (0: nothing). The larger of what it asks for and what is annotated counts.

    A pod that asks for nothing, with annotations that make no sense, holds nothing: no device plugin has given it a device.
    """
    if ALLOCATION in annotations:
        return _of_allocation(annotations[ALLOCATION], asked=asked)
    index, amount = whole_number(annotations.get(INDEX)), whole_number(annotations.get(OF_POD))
    oddity = _oddity(annotations, index=index, amount=amount)
    held = max(asked, amount or 0)
    if held == 0:
        return Share(oddity=oddity)
    if index is None or index < 0:
        return Share(somewhere=held, oddity=oddity or f"has no annotation {INDEX}")
    return Share(of_device=((index, held),), oddity=oddity)


def _oddity(annotations: Mapping[str, str], *, index: int | None, amount: int | None) -> str:
    if INDEX in annotations and (index is None or index < 0):
        return f"has the annotation {INDEX}: {_quoted(annotations[INDEX])}, which is no device"
    if OF_POD in annotations and (amount is None or amount < 0):
        return f"has the annotation {OF_POD}: {_quoted(annotations[OF_POD])}, which is no amount"
    return ""


def _of_allocation(text: str, *, asked: int) -> Share:
    """``{"<container>": {"<device>": amount}}``."""
    no_sense = Share(somewhere=asked, oddity=f"has the annotation {ALLOCATION}: {_quoted(text)}, which makes no sense")
    if len(text) > _LONGEST:
        return no_sense
    try:
        of_containers = _decode_allocation(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return no_sense
    held: dict[int, int] = {}
    for of_devices in of_containers.values():
        for name, amount in of_devices.items():
            device = whole_number(name)
            if device is None or device < 0 or amount < 0:
                return no_sense
            held[device] = held.get(device, 0) + amount
    rest = asked - sum(held.values())
    oddity = f"asks for {asked}, and the annotation {ALLOCATION} speaks of {asked - rest}" if rest > 0 else ""
    return Share(of_device=tuple(sorted(held.items())), somewhere=max(0, rest), oddity=oddity)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
