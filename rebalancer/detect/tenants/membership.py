"""Which tenant each pod belongs to: decided once for each distinct set of labels of a namespace, not once a pod.

A pod that two tenants claim belongs to neither, and is told: to guess would be to evict for a quota that is not its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.policy.quantities import LabelSelector
from rebalancer.policy.tenants import Members, TenantSpec
from rebalancer.state.arrays import IntArray, frozen
from rebalancer.state.cluster import ClusterState
from rebalancer.state.matching import HasLabels, requirement_holds
from rebalancer.state.scheduling import LabelSet, Requirement

QUEUE_LABELS: Mapping[str, tuple[str, ...]] = {
    "kueue": ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name"),
    "kueueClusterQueue": ("kueue.x-k8s.io/cluster-queue-name",),
    "kai": ("kai.scheduler/queue", "runai/queue"),
    "volcano": ("volcano.sh/queue-name",),
    "koordinator": ("quota.scheduling.koordinator.sh/name",),
}


@dataclass(frozen=True, slots=True)
class Membership:
    tenant: IntArray
    """(pods,): row in ``names``; -1 none."""
    names: tuple[str, ...]
    """The leaves of the file, in its order."""
    claimed_twice: tuple[tuple[int, tuple[str, ...]], ...]
    """(a pod, the tenants that claim it), once for each distinct case."""
    claimed_twice_pods: int
    without_pods: tuple[str, ...]


def membership(
    spec: TenantSpec, *, labels: IntArray, label_sets: Sequence[LabelSet], namespaces: Mapping[str, Mapping[str, str]]
) -> Membership:
    """``labels`` (pods,): row in ``label_sets``; ``namespaces``: name -> labels."""
    leaves = tuple(spec.leaves())
    names = tuple(tenant.name for tenant in leaves)
    if not leaves or not len(labels):
        return Membership(np.full(len(labels), -1, dtype=np.int64), names, (), 0, names)
    default = -1 if spec.default is None else names.index(spec.default)
    rules = _Rules([(row, entry) for row, tenant in enumerate(leaves) for entry in tenant.members], namespaces)
    verdicts = np.full(len(label_sets), default, dtype=np.int64)
    twice: dict[int, tuple[str, ...]] = {}
    present, first = np.unique(labels, return_index=True)
    for number in present.tolist():
        claims = rules.claims(label_sets[number])
        if len(claims) > 1:
            verdicts[number] = -1
            twice[number] = tuple(names[row] for row in claims)
        elif claims:
            verdicts[number] = claims[0]
    tenant = verdicts[labels]
    count = np.bincount(tenant[tenant >= 0], minlength=len(names))
    example = dict(zip(present.tolist(), first.tolist(), strict=True))
    return Membership(
        tenant=tenant,
        names=names,
        claimed_twice=tuple((example[number], claims) for number, claims in twice.items()),
        claimed_twice_pods=int(np.isin(labels, list(twice)).sum()),
        without_pods=tuple(name for name, pods in zip(names, count.tolist(), strict=True) if not pods),
    )


def with_tenants(state: ClusterState, spec: TenantSpec) -> ClusterState:
    """The state with these tenants; as it is where the file has none. Pods that two claim are a note of the coverage."""
    if not spec.tenants:
        return state
    found = membership(spec, labels=state.pods.labels, label_sets=state.label_sets, namespaces=state.namespaces)
    frozen(found.tenant)
    notes = state.coverage.notes
    if found.claimed_twice:
        pod, claims = found.claimed_twice[0]
        words = f"pod {state.pod_name(pod)} is claimed by tenants {' and '.join(claims)}"
        notes = (*notes, f"{found.claimed_twice_pods} pods are claimed by more than one tenant and belong to none; {words}")
    return replace(
        state,
        pods=replace(state.pods, tenant=found.tenant),
        tenants=found.names,
        coverage=replace(state.coverage, notes=notes),
    )


class _Rules:
    """All entries of members, found by the namespace or the queue that they name; only those that name neither are tried for every pod."""

    def __init__(self, entries: Sequence[tuple[int, Members]], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._labels = namespaces
        self._by_namespace: dict[str, list[tuple[int, Members]]] = {}
        self._by_queue: dict[tuple[str, str], list[tuple[int, Members]]] = {}
        self._general: list[tuple[int, Members]] = []
        self._inside: dict[str, list[tuple[int, Members]]] = {}
        for row, entry in entries:
            if entry.namespaces and not any(name.endswith("*") for name in entry.namespaces):
                for name in entry.namespaces:
                    self._by_namespace.setdefault(name, []).append((row, entry))
            elif entry.queues and not entry.namespaces:
                for key, names in _queues(entry):
                    for name in names:
                        self._by_queue.setdefault((key, name), []).append((row, entry))
            else:
                self._general.append((row, entry))
        self._queue_keys = tuple(sorted({key for key, _ in self._by_queue}))

    def claims(self, labels: LabelSet) -> list[int]:
        """Rows of the tenants that claim pods with these labels, ascending."""
        near = self._inside.get(labels.namespace)
        if near is None:
            near = list(self._by_namespace.get(labels.namespace, ()))
            near += [each for each in self._general if self._in_namespace(each[1], labels.namespace)]
            self._inside[labels.namespace] = near
        found = {row for row, entry in near if self._fits(entry, labels)}
        for key in self._queue_keys:
            for row, entry in self._by_queue.get((key, labels.get(key) or ""), ()):
                if row not in found and self._in_namespace(entry, labels.namespace) and self._fits(entry, labels):
                    found.add(row)
        return sorted(found)

    def _in_namespace(self, entry: Members, namespace: str) -> bool:
        if entry.namespaces and not any(names_it(pattern, namespace) for pattern in entry.namespaces):
            return False
        return entry.namespace_selector is None or selects(entry.namespace_selector, self._labels.get(namespace, {}))

    def _fits(self, entry: Members, labels: LabelSet) -> bool:
        """What is asked of the pod itself; an entry by exact namespaces is asked for its selector of namespaces too."""
        if entry.namespaces and entry.namespace_selector and not selects(entry.namespace_selector, self._labels.get(labels.namespace, {})):
            return False
        if entry.queues and not any(labels.get(key) in names for key, names in _queues(entry)):
            return False
        return entry.pod_selector is None or selects(entry.pod_selector, labels)


def _queues(entry: Members) -> list[tuple[str, tuple[str, ...]]]:
    return [(key, names) for system, names in entry.queues.items() for key in QUEUE_LABELS[system]]


def names_it(pattern: str, name: str) -> bool:
    """Whether a name, or a beginning with a trailing ``*``, is meant for it."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def selects(selector: LabelSelector, labels: HasLabels) -> bool:
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(
        requirement_holds(Requirement(each.key, each.operator, tuple(each.values)), labels.get(each.key))
        for each in selector.match_expressions
    )
