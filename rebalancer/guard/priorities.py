"""Where the line between pods that may move and pods that may not lies, in the numbers of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

SYSTEM_CRITICAL = 2_000_000_000
"""The least priority of Kubernetes' own classes; user-defined ones end at 1,000,000,000."""

_BUILT_IN = {"system-cluster-critical": SYSTEM_CRITICAL, "system-node-critical": SYSTEM_CRITICAL + 1000}


def priority_value(below: str | int, classes: Mapping[str, int]) -> int | None:
    """The value of a priority that is given as a number or as the name of a PriorityClass; None when no class has the name.

    The two system classes exist in every cluster, so their names work even where the classes could not be listed.
    """
    if isinstance(below, int):
        return below
    return classes.get(below, _BUILT_IN.get(below))
