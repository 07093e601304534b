"""Taints and tolerations, matched as kube-scheduler does.

A toleration tolerates a taint when its effect is empty or equal, its key is empty or equal, and its operator is ``Exists``, or
``Equal`` (or empty) with equal values. ``Gt`` and ``Lt`` match nothing: their gate is off. ``tolerationSeconds`` plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalancer.state.scheduling import Taint, Toleration

SOFT = "PreferNoSchedule"
_HARD = ("NoSchedule", "NoExecute")

CORDON = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
"""A pod that tolerates this taint may enter a cordoned node."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first NoSchedule or NoExecute taint that no toleration covers, or None. PreferNoSchedule never keeps a pod out."""
    allowed = tuple(tolerations)
    for taint in taints:
        if taint.effect in _HARD and not any(tolerates(toleration, taint) for toleration in allowed):
            return taint
    return None


def soft_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> int:
    """How many PreferNoSchedule taints no toleration for that effect, or for every effect, covers."""
    allowed = [toleration for toleration in tolerations if toleration.effect in ("", SOFT)]
    return sum(taint.effect == SOFT and not any(tolerates(toleration, taint) for toleration in allowed) for taint in taints)
