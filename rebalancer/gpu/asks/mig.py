"""MIG instances by their own resources, strategy ``mixed``: ``nvidia.com/mig-<g>g.<mem>gb``, with ``+me`` written as ``.me``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.asks.units import ask_of_units
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.meaning import PlainUnit
from rebalancer.gpu.unreadable import Unreadable, shown, whole
from rebalancer.state.gpu import Family, GpuAsk, Scheme

PREFIX = "nvidia.com/mig-"
_PROFILE = re.compile(r"([0-9]+c\.)?[0-9]+g\.[0-9]+gb(\.[a-z0-9]+)*")


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    for container in pod.asking():
        for name in container.names:
            if not name.startswith(PREFIX) or name.endswith(".shared"):
                continue
            count = whole(name, container.asked(name) or "")
            if count > 0:
                unit = PlainUnit(scheme=Scheme.MIG, profile=profile_of(name))
                yield ask_of_units(count, unit, family=Family.NVIDIA, container=container.name, model=selected_model(pod))


def profile_of(resource: str) -> str:
    """``nvidia.com/mig-1g.10gb.me`` -> ``1g.10gb+me``. Raises Unreadable for a name that holds no profile."""
    text = resource.removeprefix(PREFIX)
    if _PROFILE.fullmatch(text) is None:
        raise Unreadable(f"the resource {shown(resource)} names no MIG profile")
    size = re.match(r"([0-9]+c\.)?[0-9]+g\.[0-9]+gb", text)
    if size is None:  # the pattern above begins alike
        raise Unreadable(f"the resource {shown(resource)} names no MIG profile")
    return size.group() + text[size.end() :].replace(".", "+")
