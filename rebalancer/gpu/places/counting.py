"""What follows from counts alone, where nothing says which device a pod holds.

It is on all devices that its node has of the kind, when it asks for so many whole ones, or on the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.gpu.places.held import Held
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import GpuAsk


def by_count(asks: Sequence[GpuAsk], devices: Sequence[FoundDevice]) -> Iterator[Held]:
    """Nothing where more than one answer is possible. ``asks``: of one scheme; ``devices``: of the node, in order."""
    first = asks[0]
    if any((ask.family, ask.mig_profile, ask.model) != (first.family, first.mig_profile, first.model) for ask in asks):
        return
    fitting = [place for place, device in enumerate(devices) if _may_be_on(first, device)]
    if len(fitting) == 1:
        yield Held(
            device=fitting[0],
            confidence=Confidence.INFERRED,
            compute=sum(ask.gpus for ask in asks),
            memory_bytes=sum(ask.memory_bytes for ask in asks),
            memory_share=sum(ask.memory_share for ask in asks),
        )
    elif fitting and all(ask.whole for ask in asks) and sum(ask.devices for ask in asks) == len(fitting):
        for place in fitting:
            yield Held(device=place, confidence=Confidence.INFERRED, compute=1.0, memory_share=1.0)


def _may_be_on(ask: GpuAsk, device: FoundDevice) -> bool:
    alike = device.family is ask.family and device.mig_profile == ask.mig_profile
    return alike and ask.model.admits(model=device.model, uuid=device.uuid) is not False
