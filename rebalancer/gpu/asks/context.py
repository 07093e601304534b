"""What an adapter knows beside the pod, and the shape of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.meaning import PLAIN_MEANING, Meaning
from rebalancer.gpu.names import DEFAULT_NAMES, GpuNames
from rebalancer.state.gpu import GpuAsk


@dataclass(frozen=True, slots=True)
class Context:
    """``meaning``: of the node that the pod is on, or that all nodes agree on."""

    meaning: Meaning = PLAIN_MEANING
    names: GpuNames = DEFAULT_NAMES


Reader: TypeAlias = Callable[[PodClues, Context], Iterable[GpuAsk]]
"""Raises Unreadable."""
