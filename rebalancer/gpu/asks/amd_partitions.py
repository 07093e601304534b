"""Partitions of AMD GPUs by their own resources, strategy ``mixed``: ``amd.com/cpx_nps4`` is compute mode and memory mode."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.asks.units import ask_of_units
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.meaning import WHOLE_DEVICE, PlainUnit
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import Family, GpuAsk, Scheme

PREFIX = "amd.com/"
_TYPE = re.compile(r"([a-z]+px)_(nps[0-9]+)", re.IGNORECASE)
_UNCUT = "spx"
"""One partition that is the whole GPU."""


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    for container in pod.asking():
        for name in container.names:
            unit = unit_of_type(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
            count = whole(name, container.asked(name) or "") if unit is not None else 0
            if unit is not None and count > 0:
                yield ask_of_units(count, unit, family=Family.AMD, container=container.name, model=selected_model(pod))


def unit_of_type(text: str) -> PlainUnit | None:
    """``cpx_nps4``, or ``CPX_NPS4`` as labels write it; None for a text that names no type of partition."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    if match.group(1).lower() == _UNCUT:
        return WHOLE_DEVICE
    return PlainUnit(scheme=Scheme.PARTITION, profile=text.lower())
