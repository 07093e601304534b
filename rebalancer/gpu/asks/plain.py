"""The resource of a vendor's device plugin: ``nvidia.com/gpu``, ``amd.com/gpu`` and names that were added to it.

One unit is a whole device, unless the node says that it is a replica of one, a MIG instance (strategy ``single``) or a partition. Where
HAMi hands out the NVIDIA resource it counts virtual GPUs, and is HAMi's to read. The pods by which KAI reserves a device ask for it in
this way too; they are told apart, since what they hold belongs to others.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.hami import claims
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.asks.units import ask_of_units
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.meaning import WHOLE_DEVICE, Meaning, PlainUnit
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import Family, GpuAsk, Scheme

RESERVED_INDEX = "run.ai/reserve_for_gpu_index"


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    reserving = pod.namespace == context.names.kai_namespace or pod.annotation(RESERVED_INDEX) is not None
    for container in pod.asking():
        for name, family in context.names.plain:
            text = container.asked(name)
            if text is None or claims(container, name, context):
                continue
            count = whole(name, text)
            if count > 0:
                yield ask_of_units(
                    count,
                    _unit(context.meaning, family),
                    family=family,
                    container=container.name,
                    scheme=Scheme.KAI_RESERVATION if reserving else None,
                    model=selected_model(pod),
                )


def _unit(meaning: Meaning, family: Family) -> PlainUnit:
    if family is Family.NVIDIA:
        return meaning.nvidia
    return meaning.amd if family is Family.AMD else WHOLE_DEVICE
