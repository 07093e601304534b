"""An ask for so many units of a resource, by what a unit is on the node: the arithmetic of replicas, in one place.

A replica is a turn or a part of a device, not a device: two replicas may be of one device or of two, and only uuids tell. Of the sharing
strategies only MPS divides the memory among replicas; under time-slicing each may take all of it.
"""

from __future__ import annotations

from rebalancer.gpu.meaning import PlainUnit
from rebalancer.state.gpu import ANY_MODEL, UNKNOWN, Family, GpuAsk, ModelConstraint, Scheme


def ask_of_units(
    count: int, unit: PlainUnit, *, family: Family, container: str, scheme: Scheme | None = None, model: ModelConstraint = ANY_MODEL
) -> GpuAsk:
    """``count`` at least 1. ``scheme``: when it is another than the unit's."""
    cut = unit.replicas
    single = count == 1 or cut == 1
    return GpuAsk(
        family=family,
        scheme=scheme or unit.scheme,
        devices=float(count) if single and cut == cut else UNKNOWN,
        compute=1 / cut if single and cut == cut else UNKNOWN,
        memory_share=_memory_share(unit) if single and cut == cut else UNKNOWN,
        gpus=count / cut if cut == cut else UNKNOWN,
        slots=float(count),
        mig_profile=unit.profile,
        model=model,
        container=container,
    )


def _memory_share(unit: PlainUnit) -> float:
    if unit.replicas == 1:
        return 1.0
    return 1 / unit.replicas if unit.scheme is Scheme.MPS else UNKNOWN
