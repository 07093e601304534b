"""KAI: a fraction of a GPU's memory, or MiB of it, asked for by annotations alone; its pods have no GPU among their resources.

The fraction is of memory, is not enforced, and is what KAI books of a device as a whole; so it stands for the compute as well, as the share
that was asked for. Which container is meant is an annotation too, which may name a sidecar or an init container.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.unreadable import Unreadable, decimal, digits, shown
from rebalancer.state.gpu import MIB, UNKNOWN, Family, GpuAsk, Scheme

FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
DEVICES, CONTAINER = "gpu-fraction-num-devices", "gpu-fraction-container-name"


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    del context  # every name and unit is the scheme's own
    fraction, memory = pod.annotation(FRACTION), pod.annotation(MEMORY)
    if fraction is None and memory is None:
        return
    if fraction is not None and memory is not None:
        raise Unreadable(f"annotation {FRACTION} stands beside {MEMORY}; only one of them may")
    share = _fraction(fraction) if fraction is not None else UNKNOWN
    devices = _devices(pod)
    yield GpuAsk(
        family=Family.NVIDIA,
        scheme=Scheme.KAI,
        devices=float(devices),
        compute=share,
        memory_bytes=_memory(memory) if memory is not None else UNKNOWN,
        memory_share=share,
        gpus=devices * share,
        model=selected_model(pod),
        container=_container(pod),
    )


def _fraction(text: str) -> float:
    share = decimal(f"annotation {FRACTION}", text)
    if not 0 < share <= 1:
        raise Unreadable(f"annotation {FRACTION} is {shown(text)}, not above 0 and at most 1")
    return share


def _memory(text: str) -> float:
    amount = digits(f"annotation {MEMORY}", text)
    if amount == 0:
        raise Unreadable(f"annotation {MEMORY} is 0 MiB")
    return amount * MIB


def _devices(pod: PodClues) -> int:
    text = pod.annotation(DEVICES)
    if text is None:
        return 1
    count = digits(f"annotation {DEVICES}", text)
    if count == 0:
        raise Unreadable(f"annotation {DEVICES} is 0")
    return count


def _container(pod: PodClues) -> str:
    named = pod.annotation(CONTAINER)
    known = [each.name for each in pod.containers]
    if named is None:
        return next((each.name for each in pod.containers if not each.init), "")
    if known and named not in known:
        raise Unreadable(f"annotation {CONTAINER} is {shown(named)}, and the pod has no such container")
    return named
