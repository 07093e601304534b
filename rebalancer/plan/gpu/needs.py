"""What a replacement needs of the devices of a node: the asks of its pod, put together by the devices that may serve them.

An ask of a device plugin is served by whatever the plugin of the node hands out under that name, so that a whole device may turn into a
replica of one elsewhere; which of the kinds of devices would be right is said apart from which could be given. Every other scheme serves
from its own devices alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalancer.state.gpu import Family, GpuAsk, ModelConstraint, Scheme

BY_PLUGIN = frozenset((Scheme.PLAIN, Scheme.SHARED, Scheme.TIME_SLICING, Scheme.MPS, Scheme.MIG, Scheme.PARTITION, Scheme.KAI_RESERVATION))
"""Handed out by a device plugin, which kube-scheduler counts by the node and nobody by the device."""
IN_REPLICAS = frozenset((Scheme.SHARED, Scheme.TIME_SLICING, Scheme.MPS))
VIRTUAL = frozenset((Scheme.HAMI, Scheme.VOLCANO_VGPU))
"""Where all of the compute of a device means that nobody else is on it."""
_OF_THE_SAME_NAME = frozenset((Scheme.HAMI, Scheme.KOORDINATOR))
"""Schemes that hand out what pods ask of the device plugin's resource; koordinator does it as the plugin would."""
BY_BEST_FIT = frozenset((Scheme.GPUSHARE,))
"""Where the device is known that a pod gets: the fitting one with the least free memory, the first of those that are alike."""
_ALIKE = 1e-6


@dataclass(frozen=True, slots=True)
class Kind:
    """What devices have in common whatever is on them."""

    family: Family
    scheme: Scheme
    mig_profile: str
    model: str
    replicas: float


@dataclass(frozen=True, slots=True)
class Need:
    """One ask, or several for the same devices, as one. ``compute``, ``memory_bytes``, ``memory_share``: on each device, added up over the
    containers, which may all get the same one; 0 asks for nothing, NaN is unknown. ``largest``: the same three of the greatest single ask.
    """

    family: Family
    scheme: Scheme
    mig_profile: str
    model: ModelConstraint
    replica: float
    """Share of a device that one unit is, where the device plugin counts units; NaN unknown."""
    devices: int
    """How many distinct devices at least."""
    alone: bool
    """Nobody else may be on them."""
    compute: float
    memory_bytes: float
    memory_share: float
    largest: tuple[float, float, float]

    @property
    def by_plugin(self) -> bool:
        return self.scheme in BY_PLUGIN

    @property
    def in_replicas(self) -> bool:
        return self.scheme in IN_REPLICAS

    def served_by(self, kind: Kind) -> bool:
        """Whether the scheme may give a device of that kind."""
        if kind.family is not self.family:
            return False
        if self.by_plugin:
            return kind.mig_profile == self.mig_profile and (kind.scheme in BY_PLUGIN or kind.scheme in _OF_THE_SAME_NAME)
        if self.scheme is Scheme.KAI:
            return kind.scheme is Scheme.PLAIN
        # HAMi and Volcano read the hints of the pod; a model that they cannot tell is given all the same.
        return kind.scheme is self.scheme and (self.scheme not in VIRTUAL or self.model.admits(model=kind.model) is not False)

    def right_on(self, kind: Kind) -> bool:
        """Whether such a device means the same to the pod as what it asks for, its model apart."""
        if not self.by_plugin:
            return True
        if kind.scheme is not self.scheme:
            return self.scheme is Scheme.PLAIN and kind.scheme is Scheme.KOORDINATOR
        return not self.in_replicas or abs(kind.replicas * self.replica - 1) < _ALIKE


@dataclass(frozen=True, slots=True)
class Needs:
    """Of a pod. ``obstacle``: why no device can be promised to it whatever is free, as a clause; empty when one can."""

    each: tuple[Need, ...] = ()
    obstacle: str = ""


def needs_of(asks: Sequence[GpuAsk]) -> Needs:
    """Asks for the same devices are one need: whole devices are counted together, parts of one are added up."""
    if any(ask.scheme is Scheme.KAI_RESERVATION for ask in asks):
        return Needs(obstacle="it reserves a device for other pods")
    if any(ask.scheme is Scheme.DRA for ask in asks):
        return Needs(obstacle="free devices of its resource claims are not known")
    if len({ask.scheme for ask in asks}) > 1:
        return Needs(obstacle=f"it asks for devices by {' and by '.join(sorted({ask.scheme.value for ask in asks}))} at once")
    if any(ask.devices != ask.devices and ask.slots != ask.slots for ask in asks):
        return Needs(obstacle="how many devices it asks for is not known")
    together: dict[tuple[Family, str, ModelConstraint], list[GpuAsk]] = {}
    for ask in asks:
        together.setdefault((ask.family, ask.mig_profile, ask.model), []).append(ask)
    if any(len({_alone(ask) for ask in same}) > 1 for same in together.values()):
        return Needs(obstacle="it asks for whole devices and for parts of such at once")
    return Needs(each=tuple(_need(same) for same in together.values()))


def _need(asks: Sequence[GpuAsk]) -> Need:
    first, alone = asks[0], _alone(asks[0])
    counts = [int(ask.devices) if ask.devices == ask.devices else 1 for ask in asks]
    amounts = [_amounts(ask) for ask in asks]
    sums = (_sum(each[0] for each in amounts), _sum(each[1] for each in amounts), _sum(each[2] for each in amounts))
    most = (_most(each[0] for each in amounts), _most(each[1] for each in amounts), _most(each[2] for each in amounts))
    on_each = most if alone else sums
    return Need(
        family=first.family,
        scheme=first.scheme,
        mig_profile=first.mig_profile,
        model=first.model,
        replica=first.gpus / first.slots if first.slots else first.slots,
        devices=sum(counts) if alone else max(counts),
        alone=alone,
        compute=on_each[0],
        memory_bytes=on_each[1],
        memory_share=on_each[2],
        largest=most,
    )


def _alone(ask: GpuAsk) -> bool:
    return ask.whole or (ask.scheme in VIRTUAL and ask.compute == 1.0)


def _amounts(ask: GpuAsk) -> tuple[float, float, float]:
    """Compute that nobody asked for is none; memory is asked for in bytes or as a share, and where it is neither, not known."""
    compute = ask.compute if ask.compute == ask.compute else 0.0
    in_bytes, in_share = ask.memory_bytes == ask.memory_bytes, ask.memory_share == ask.memory_share
    if in_bytes or in_share:
        return compute, ask.memory_bytes if in_bytes else 0.0, 0.0 if in_bytes else ask.memory_share
    counted = ask.scheme not in BY_PLUGIN and not (ask.scheme in _MEMORY_OPTIONAL and ask.compute == ask.compute)
    return compute, ask.memory_bytes if counted else 0.0, 0.0


_MEMORY_OPTIONAL = frozenset((Scheme.KOORDINATOR, Scheme.TENCENT))
"""Where an ask for compute alone is an ask."""


def _sum(values: Iterable[float]) -> float:
    return float(sum(values))


def _most(values: Iterable[float]) -> float:
    """NaN where one is: an unknown one may be the greatest."""
    known = list(values)
    return next((value for value in known if value != value), max(known))
