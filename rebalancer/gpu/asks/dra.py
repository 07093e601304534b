"""Devices by resource claim: how many of which DeviceClass, by the claims of the pod that exist as objects.

A claim that several containers use is one ask. Which devices will do beyond the class stands in expressions that only the scheduler
evaluates, so a MIG profile that is asked for in that way is not known here before the claim is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import PodClues
from rebalancer.state.gpu import UNKNOWN, Family, GpuAsk, Scheme


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    for request in pod.claims:
        family = context.names.family_of_class(request.device_class) if request.device_class else Family.OTHER
        if family is None or request.count <= 0:
            continue
        whole = request.memory_bytes != request.memory_bytes and bool(request.device_class)
        yield GpuAsk(
            family=family,
            scheme=Scheme.DRA,
            devices=request.count,
            compute=1.0 if whole else UNKNOWN,
            memory_bytes=request.memory_bytes,
            memory_share=1.0 if whole else UNKNOWN,
            gpus=request.count if whole else UNKNOWN,
            slots=request.count,
            model=selected_model(pod),
            container=request.container,
        )
