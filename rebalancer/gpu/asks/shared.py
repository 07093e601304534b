"""Replicas under a name that says so: ``nvidia.com/gpu.shared``, which device plugins give with ``renameByDefault``.

``nvidia.com/mig-1g.5gb.shared`` is a replica of a MIG instance. How many replicas a device has is for the node to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.mig import PREFIX, profile_of
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.asks.units import ask_of_units
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import Family, GpuAsk

SUFFIX = ".shared"


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    for container in pod.asking():
        for name in container.names:
            family = shared_family(name, context.names)
            if family is None:
                continue
            count = whole(name, container.asked(name) or "")
            if count > 0:
                profile = profile_of(name.removesuffix(SUFFIX)) if name.startswith(PREFIX) else ""
                unit = context.meaning.shared_unit(name, profile)
                yield ask_of_units(count, unit, family=family, container=container.name, model=selected_model(pod))


def shared_family(name: str, names: GpuNames) -> Family | None:
    """None for a resource that does not count replicas of GPUs."""
    if not name.endswith(SUFFIX):
        return None
    if name.startswith(PREFIX):
        return Family.NVIDIA
    stem = name.removesuffix(SUFFIX)
    return next((family for plain, family in names.plain if plain == stem), None)
