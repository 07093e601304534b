"""The one normaliser: the asks of a pod, by all schemes together, and what could not be read of them.

Each scheme is read on its own, so a text that one cannot read hides nothing of what another says. Where one cannot be read, the pod asks
for something that nobody can tell: an ask of which nothing but the scheme is known, so that it never passes for a pod without GPUs. A pod
that asks in two ways for devices of one family holds both sorts or, more likely, is a mistake: the asks stand, and the pod is named.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.gpu.asks import (
    amd_partitions,
    dra,
    gpushare,
    hami,
    kai,
    koordinator,
    mig,
    plain,
    shared,
    tencent,
    volcano_gpushare,
    volcano_vgpu,
)
from rebalancer.gpu.asks.context import Context, Reader
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.unreadable import Unreadable
from rebalancer.state.gpu import UNKNOWN, Family, GpuAsk, Scheme

READERS: tuple[tuple[Scheme, Reader], ...] = (
    (Scheme.PLAIN, plain.read),
    (Scheme.SHARED, shared.read),
    (Scheme.MIG, mig.read),
    (Scheme.GPUSHARE, gpushare.read),
    (Scheme.HAMI, hami.read),
    (Scheme.VOLCANO_VGPU, volcano_vgpu.read),
    (Scheme.VOLCANO_GPUSHARE, volcano_gpushare.read),
    (Scheme.KOORDINATOR, koordinator.read),
    (Scheme.TENCENT, tencent.read),
    (Scheme.KAI, kai.read),
    (Scheme.PARTITION, amd_partitions.read),
    (Scheme.DRA, dra.read),
)
"""Every scheme, in the order in which asks are given."""
_DEVICE_PLUGIN = frozenset(
    (Scheme.PLAIN, Scheme.SHARED, Scheme.TIME_SLICING, Scheme.MPS, Scheme.MIG, Scheme.PARTITION, Scheme.KAI_RESERVATION)
)
"""Resources of one device plugin, which a pod may mix."""


_FAMILY = {Scheme.PARTITION: Family.AMD, Scheme.DRA: Family.OTHER}
"""Of an ask that cannot be read; NVIDIA for all other schemes."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What could not be read, or does not go together, as a clause for a sentence."""

    scheme: Scheme
    clause: str


@dataclass(frozen=True, slots=True)
class Asked:
    """``unreadable``: schemes by which the pod asks for something that nobody can tell. ``mixed``: schemes that do not go together."""

    asks: tuple[GpuAsk, ...] = ()
    unreadable: tuple[Trouble, ...] = ()
    mixed: tuple[Scheme, ...] = ()


NOTHING_ASKED = Asked()


def asks_of(pod: PodClues, context: Context) -> Asked:
    """What the pod asks for. Never raises: what cannot be read is in the answer."""
    asks: list[GpuAsk] = []
    unreadable: list[Trouble] = []
    for scheme, read in READERS:
        try:
            found = list(read(pod, context))  # all that a scheme says, or nothing of it
        except Unreadable as error:
            unreadable.append(Trouble(scheme, str(error)))
            found = [GpuAsk(family=_FAMILY.get(scheme, Family.NVIDIA), scheme=scheme, devices=UNKNOWN)]
        asks.extend(found)
    if not asks:
        return NOTHING_ASKED
    return Asked(asks=tuple(asks), unreadable=tuple(unreadable), mixed=_mixed(asks))


def _mixed(asks: list[GpuAsk]) -> tuple[Scheme, ...]:
    """Of the first family that is asked for in several ways; of a claim that is not there no family is known."""
    by_family: dict[Family, dict[Scheme, Scheme]] = {}
    for each in asks:
        system = Scheme.PLAIN if each.scheme in _DEVICE_PLUGIN else each.scheme
        if each.family is not Family.OTHER:
            by_family.setdefault(each.family, {})[system] = each.scheme
    return next((tuple(systems.values()) for systems in by_family.values() if len(systems) > 1), ())
