"""What the owner of a pod says about moving it: this project's annotation, those of its peers and the markers of schedulers, read one way.

`"false"` means false in every one of them. A value that is neither true nor false is never taken for permission: it protects, and the
sentence says so. A pod and its workload may both speak; one word of protection is enough. Opting in lifts only what asks for opting in; it
opens no other gate, except that this project's own annotation also accepts the outage of a workload with too few replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rebalancer.state.cluster import ClusterState

EVICT = "rebalancer.dev/evict"
DESCHEDULER_EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KARPENTER = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate")
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
NEVER_AT_THIS_COST = 2_147_483_647
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
KOORDINATOR_EVICTION = "koordinator.sh/eviction-enabled"
PREEMPTIBLE_WORDS: Mapping[str, str] = {
    VOLCANO_PREEMPTABLE: "true",
    KAI_PREEMPTIBILITY: "preemptible",
    KOORDINATOR_PREEMPTIBLE: "true",
}
"""Key -> what it says on a pod that its scheduler may take away."""

_OPT_IN_KEYS = (EVICT, DESCHEDULER_EVICT)


@dataclass(frozen=True, slots=True)
class Consent:
    """``protection``: why the pod stays, in words; empty when nobody objects. ``opted_in``: somebody asked for it to be moved, and
    ``by_own_annotation``: with this project's key."""

    protection: str = ""
    opted_in: bool = False
    by_own_annotation: bool = False


SILENT = Consent()


def _permission(key: str, value: str) -> str:
    """Keys that say "may be moved": true permits, false protects."""
    if value == "true":
        return ""
    if value == "false":
        return f'{key} is "false"'
    return f'{key} is "{value}", which is neither "true" nor "false", so it protects'


def _prohibition(key: str, value: str) -> str:
    """Keys that say "must stay": false permits, true protects."""
    if value == "false":
        return ""
    if value == "true":
        return f'{key} is "true"'
    return f'{key} is "{value}", which is neither "true" nor "false", so it protects'


def _presence(key: str, value: str) -> str:
    """Keys that protect by being there; only an explicit false takes that back."""
    return "" if value == "false" else f'{key} is "{value}"'


def _cost(key: str, value: str) -> str:
    try:
        cost = int(value)
    except ValueError:
        return f'{key} is "{value}", which is not a number, so it protects'
    return f"{key} is {cost}, the cost that forbids eviction" if cost >= NEVER_AT_THIS_COST else ""


def _preemptibility(key: str, value: str) -> str:
    if value == "preemptible":
        return ""
    if value == "non-preemptible":
        return f'{key} is "{value}"'
    return f'{key} is "{value}", which is neither "preemptible" nor "non-preemptible", so it protects'


_READERS: Mapping[str, Callable[[str, str], str]] = {
    EVICT: _permission,
    DESCHEDULER_EVICT: _permission,
    PREFER_NO_EVICTION: _presence,
    SAFE_TO_EVICT: _permission,
    **dict.fromkeys(KARPENTER, _prohibition),
    EVICTION_COST: _cost,
}
MARKER_READERS: Mapping[str, Callable[[str, str], str]] = {
    VOLCANO_PREEMPTABLE: _permission,
    KAI_PREEMPTIBILITY: _preemptibility,
    KOORDINATOR_PREEMPTIBLE: _permission,
    KOORDINATOR_EVICTION: _permission,
}
"""Markers of schedulers: labels or annotations of the pod, by system and version."""
READ_KEYS = frozenset(_READERS)
"""Every annotation key that a gate reads, on pods and on workloads."""


def read_consent(state: ClusterState, pod: int) -> Consent:
    """What the annotations of the pod and of its workload say together."""
    of_pod = state.pods.annotations[pod]
    workload = int(state.pods.workload[pod])
    of_workload = state.workloads.annotations[workload] if workload >= 0 else {}
    if not of_pod and not of_workload:
        return SILENT
    for said, where in ((of_pod, "pod"), (of_workload, "workload")):
        if not said:
            continue
        for key, read in _READERS.items():  # in this order, so that the sentence does not depend on that of the annotations
            if key in said and (objection := read(key, said[key])):
                return Consent(protection=f"the {where}'s annotation {objection}")
    said_yes = [key for key in _OPT_IN_KEYS if "true" in (of_pod.get(key), of_workload.get(key))]
    return Consent(opted_in=bool(said_yes), by_own_annotation=EVICT in said_yes)


def marker_objection(own: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Why the pod stays by a marker of its scheduler, among its annotations or labels; empty when none protects it."""
    if not own and not labels:
        return ""
    for key, read in MARKER_READERS.items():
        for said, where in ((own, "annotation"), (labels, "label")):
            if key in said and (objection := read(key, said[key])):
                return f"the pod's {where} {objection}"
    return ""


def called_preemptible(own: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a marker of some scheduler says that the pod may be taken away."""
    return any(word in (own.get(key), labels.get(key)) for key, word in PREEMPTIBLE_WORDS.items())
