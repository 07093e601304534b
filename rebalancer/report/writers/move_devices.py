"""The GPUs that a move's pod leaves, as a clause of why it moves."""

from __future__ import annotations

from rebalancer.plan.gpu_moves import MoveDevice
from rebalancer.plan.model import Move
from rebalancer.report.text import counted
from rebalancer.units import format_bytes, format_percent

_SHOWN = 3
_BY_GPU = ("gpu ", "gpu_memory ", "GPU ")


def moved_by_gpu(move: Move) -> bool:
    """Whether a signal of GPUs is why it moves."""
    return move.reason.startswith(_BY_GPU)


def move_devices(move: Move) -> str:
    """Empty for a pod that is on none, or nobody says on which."""
    if not move.devices:
        return ""
    more = f"; and {len(move.devices) - _SHOWN} more" if len(move.devices) > _SHOWN else ""
    return "; ".join(map(_words, move.devices[:_SHOWN])) + more


def _words(one: MoveDevice) -> str:
    model = (one.model or "model unknown").removeprefix("NVIDIA-")
    facts = f"{model}, {format_percent(one.busy)} busy, {format_bytes(one.memory_used_bytes)} of {format_bytes(one.memory_bytes)} used"
    if not one.other_pods:
        return f"it has GPU {one.device} ({facts}) to itself"
    mark = "about " if one.estimated else ""
    own = f"{mark}{format_percent(one.pod_busy)} and {mark}{format_bytes(one.pod_memory_bytes)}"
    asked = "" if one.pod_asked_bytes is None else f", asked for {format_bytes(one.pod_asked_bytes)}"
    return f"of GPU {one.device} ({facts}, {counted(one.other_pods, 'other pod')}) it has {own}{asked}"
