"""What is said and done about pods that hold GPUs and do not use them, and about those that use more than they asked for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rebalancer.policy.quantities import Duration, Percent, Strict


class Idle(Strict):
    """When a pod counts as an idle holder of its GPUs. Idle holders are reported; nobody is moved for it."""

    after: Duration = Field(default=1800.0, ge=300)
    """How long its devices, or its own kernels, must have been idle. It is also how far back exporters are asked."""
    busy_below: Percent = 5
    """Percent of a device's time: what stayed under it for all of that time is idle."""
    cpu_below: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """Cores: a notebook that uses more is not idle, whatever its GPU does, since somebody may be working in a terminal."""


class Overuse(Strict):
    """When a pod uses more memory of a shared GPU than it asked for, to the danger of its neighbours, and what follows."""

    above: Percent = 10
    """Percent of what it asked for that it may use beside it."""
    action: Literal["report", "move"] = "report"
    """``move``: where the device is also nearly full, it is moved to where what it really uses fits, or, where it cannot leave, its
    neighbours are; ahead of balancing, and by all gates."""
    device_above: Percent = 90
    """Percent of a device's memory in use from which ``move`` acts."""
