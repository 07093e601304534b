"""Virtual GPUs as HAMi and Volcano count them: a number of devices, with memory and compute of each.

Memory is MiB of each device (times a factor of the installation), or a percentage of it, or a default, or all of it. Compute is a
percentage of each device; 0 is no limit, so it says nothing about how much is wanted.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.gpu.names import VirtualGpuNames
from rebalancer.gpu.unreadable import Unreadable, whole
from rebalancer.state.gpu import ANY_MODEL, MIB, UNKNOWN, GpuAsk, ModelConstraint, Scheme

Asked = Callable[[str], str | None]
"""Resource -> quantity that counts."""


def virtual_ask(
    asked: Asked, names: VirtualGpuNames, *, scheme: Scheme, container: str, model: ModelConstraint = ANY_MODEL
) -> GpuAsk | None:
    """None when the container asks for no virtual GPU. Raises Unreadable."""
    count = _number(asked, names.count)
    memory, percentage, cores = (_number(asked, name) for name in (names.memory, names.memory_percentage, names.cores))
    if count is None:
        if memory is None and percentage is None and cores is None:
            return None
        count = 1
    if count == 0:
        return None
    compute = _percent(names.cores, cores if cores is not None else names.default_cores)
    memory_bytes, memory_share = _memory(memory, percentage, names)
    return GpuAsk(
        family=names.family,
        scheme=scheme,
        devices=float(count),
        compute=compute,
        memory_bytes=memory_bytes,
        memory_share=memory_share,
        gpus=count * compute,
        slots=float(count),
        cap=compute,
        model=model,
        container=container,
    )


def _memory(memory: int | None, percentage: int | None, names: VirtualGpuNames) -> tuple[float, float]:
    """(bytes, share), at most one of them known."""
    if memory:
        return memory * names.memory_factor * MIB, UNKNOWN
    if percentage:
        return UNKNOWN, _percent(names.memory_percentage, percentage)
    if not names.memory:
        return UNKNOWN, UNKNOWN  # the family has its memory under a name that is not known
    if names.default_memory_mib:
        return names.default_memory_mib * names.memory_factor * MIB, UNKNOWN
    return UNKNOWN, 1.0


def _percent(name: str, value: int) -> float:
    """A share; NaN for 0, which is no limit. Raises Unreadable above 100."""
    if value > 100:
        raise Unreadable(f"{name} is {value}, more than 100 %")
    return value / 100 if value else UNKNOWN


def _number(asked: Asked, name: str) -> int | None:
    text = asked(name) if name else None
    return None if text is None else whole(name, text)
