"""HAMi: ``nvidia.com/gpu`` virtual GPUs with ``gpumem``, ``gpumem-percentage`` and ``gpucores`` of each, and the same for other families.

Limits count, else requests. The count shares its name with whole devices, so it is HAMi's where the container asks for HAMi's other
resources or where the node is HAMi's.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import hinted_model
from rebalancer.gpu.asks.virtual import virtual_ask
from rebalancer.gpu.clues import ContainerClues, PodClues
from rebalancer.gpu.names import ENFLAME_PREFIX, HUAWEI_PREFIX, VirtualGpuNames
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import Family, GpuAsk, Scheme

_BY_PREFIX = ((HUAWEI_PREFIX, Family.HUAWEI), (ENFLAME_PREFIX, Family.ENFLAME))


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    model = hinted_model(pod)
    for container in pod.asking():
        for names in context.names.hami:
            if names.count in _plain(context) and not claims(container, names.count, context):
                continue
            ask = virtual_ask(container.asked, names, scheme=Scheme.HAMI, container=container.name, model=model)
            if ask is not None:
                yield ask
        yield from _of_other_chips(container)


def claims(container: ContainerClues, resource: str, context: Context) -> bool:
    """Whether this resource of the container counts HAMi's virtual GPUs and not devices."""
    for names in context.names.hami:
        if names.count == resource:
            return (context.meaning.hami and names.family is Family.NVIDIA) or _asks_for_parts(container, names)
    return False


def _asks_for_parts(container: ContainerClues, names: VirtualGpuNames) -> bool:
    return any(container.asked(name) is not None for name in (names.memory, names.memory_percentage, names.cores) if name)


def _plain(context: Context) -> frozenset[str]:
    return frozenset(name for name, _ in context.names.plain)


def _of_other_chips(container: ContainerClues) -> Iterator[GpuAsk]:
    """Families whose resources are called after each chip. How much of a device one is, is in the installation's tables alone."""
    for name in container.names:
        for prefix, family in _BY_PREFIX:
            if name.startswith(prefix) and not name.endswith("-memory") and (count := whole(name, container.asked(name) or "")) > 0:
                yield GpuAsk(family=family, scheme=Scheme.HAMI, devices=float(count), slots=float(count), container=container.name)
