"""Gangs for the clusters of `builder`.

    cluster(nodes=[...], pods=[pod("w-0", gang="llm"), pod("w-1", gang="llm")], gangs=[gang("llm")])

A gang without a `gang(...)` of its own needs all of its members, and is one of a JobSet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.state.gangs import NO_GANGS, Gangs, GangSystem, MinimumSource


@dataclass(frozen=True)
class GangSpec:
    """``minimum`` None: all members."""

    name: str
    minimum: int | None = None
    namespace: str = "default"
    system: GangSystem = GangSystem.JOB_SET
    elastic: bool = False
    backoff_limit: float = math.nan


gang = GangSpec


def gang_table(pods: Sequence[tuple[str, str, bool]], specs: Sequence[GangSpec]) -> Gangs:
    """``pods``: namespace, gang, and whether it may be a member. Not told where no pod is in one."""
    if not any(name for _, name, _ in pods):
        return NO_GANGS
    explicit = {(spec.namespace, spec.name): spec for spec in specs}
    keys = sorted({(namespace, name) for namespace, name, member in pods if name and member})
    found = [explicit.get(key, GangSpec(key[1], namespace=key[0])) for key in keys]
    rows = {key: row for row, key in enumerate(keys)}
    pairs = [(row, rows[namespace, name]) for row, (namespace, name, member) in enumerate(pods) if name and member]
    count = [sum(number == row for _, number in pairs) for row in range(len(keys))]
    return Gangs(
        systems=tuple(spec.system for spec in found),
        namespaces=tuple(spec.namespace for spec in found),
        names=tuple(spec.name for spec in found),
        minimum=np.array([count[row] if spec.minimum is None else spec.minimum for row, spec in enumerate(found)], dtype=np.int64),
        sources=tuple(MinimumSource.MEMBERS if spec.minimum is None else MinimumSource.OBJECT for spec in found),
        elastic=tuple(spec.elastic for spec in found),
        backoff_limit=np.array([spec.backoff_limit for spec in found], dtype=np.float64),
        pod=np.array([pod for pod, _ in pairs], dtype=np.int64),
        gang=np.array([number for _, number in pairs], dtype=np.int64),
        told=True,
    )
