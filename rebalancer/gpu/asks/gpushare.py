"""``aliyun.com/gpu-mem``: a part of the memory of one device, without a share of its compute.

Only limits count, summed over the containers that run; a pod is on one device or on none. The unit is GiB or MiB, chosen for each node by a
flag of its device plugin, so the number means nothing until the node's unit is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import Family, GpuAsk, Scheme


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    name = context.names.gpushare_memory
    units = sum(whole(name, text) for each in pod.containers if not each.init and (text := each.limit(name)) is not None)
    if units > 0:
        yield GpuAsk(
            family=Family.NVIDIA,
            scheme=Scheme.GPUSHARE,
            devices=1.0,
            memory_bytes=units * context.meaning.gpushare_unit_bytes,
            slots=float(units),
            model=selected_model(pod),
        )
