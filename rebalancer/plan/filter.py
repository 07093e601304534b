"""What a filter is, and how the filters are found.

To add a filter, add a file to `plan.filters` with a module-level ``FILTER``. Its ``order`` is its place in the scheduler's own table, so
that the first rejection is the one that the scheduler would report.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray

Verdict = BoolArray | bool
"""(nodes,) bool, or one answer for every node."""


@dataclass(frozen=True, slots=True)
class Filter:
    """``static``: the verdict depends on the pod's constraints alone, so it is evaluated once per distinct constraints.

    ``reason`` is asked only for a node that ``passes`` rejected, and answers one sentence with the numbers.
    """

    name: str
    order: int
    describe: str
    passes: Callable[[Replacement], Verdict]
    reason: Callable[[Replacement, int], str]
    static: bool = False
    parts: Callable[[Replacement, BoolArray], Mapping[str, int]] | None = None
    """Splits the rejected nodes under finer names (the scarce resource, say); None counts them under ``name``."""


@cache
def all_filters() -> tuple[Filter, ...]:
    """Every filter, in the scheduler's order. Raises ValueError when two share a name."""
    from rebalancer.plan import filters as package

    found: list[Filter] = []
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        found.append(module.FILTER)
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two filters share a name: {sorted(names)}")
    return tuple(sorted(found, key=lambda each: (each.order, each.name)))
