"""koordinator: ``gpu-core`` and ``gpu-memory-ratio`` in hundredths of one GPU, ``gpu-memory`` in bytes, totals over the devices.

Above 100 only multiples of 100 are whole numbers of devices. ``gpu.shared`` says how many devices the totals are divided among. ``gpu`` is
an older word for the same core and ratio.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import ContainerClues, PodClues
from rebalancer.gpu.unreadable import Unreadable, quantity, whole
from rebalancer.state.gpu import UNKNOWN, Family, GpuAsk, ModelConstraint, Scheme

CORE, MEMORY, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio"
SHARED, OLD = "koordinator.sh/gpu.shared", "koordinator.sh/gpu"
_NAMES = (CORE, MEMORY, RATIO, SHARED, OLD)


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    del context  # every name and unit is the scheme's own
    for container in pod.asking():
        if any(container.asked(name) is not None for name in _NAMES):
            ask = _ask(container, selected_model(pod))
            if ask is not None:
                yield ask


def _ask(container: ContainerClues, model: ModelConstraint) -> GpuAsk | None:
    old = _number(container, OLD)
    core, ratio, shared = _number(container, CORE) or old, _number(container, RATIO) or old, _number(container, SHARED)
    text = container.asked(MEMORY)
    memory = quantity(MEMORY, text) if text is not None else 0.0
    if not core and not ratio and not memory:
        return None
    if memory and ratio:
        raise Unreadable(f"{MEMORY} stands beside {RATIO}; only one of them may")
    devices = shared or max(_devices(CORE, core), _devices(RATIO, ratio))
    compute, share = _part(CORE, core, devices), _part(RATIO, ratio, devices)
    return GpuAsk(
        family=Family.NVIDIA,
        scheme=Scheme.KOORDINATOR,
        devices=float(devices),
        compute=compute,
        memory_bytes=memory / devices if memory else UNKNOWN,
        memory_share=share,
        gpus=devices * compute,
        slots=float(core) if core else UNKNOWN,
        model=model,
        container=container.name,
    )


def _number(container: ContainerClues, name: str) -> int:
    """0 where it is not asked for."""
    text = container.asked(name)
    return 0 if text is None else whole(name, text)


def _devices(name: str, hundredths: int) -> int:
    if hundredths > 100 and hundredths % 100:
        raise Unreadable(f"{name} is {hundredths}, above 100 and no multiple of it")
    return max(1, hundredths // 100)


def _part(name: str, hundredths: int, devices: int) -> float:
    """Share of each device; NaN where nothing is asked for. Raises Unreadable for more than a device has."""
    if not hundredths:
        return UNKNOWN
    if hundredths > 100 * devices:
        raise Unreadable(f"{name} is {hundredths}, more than {devices} devices have")
    return hundredths / 100 / devices
