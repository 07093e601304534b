"""The same cluster under other names: for a bug report, an example, a benchmark.

Names of nodes, namespaces, workloads, pods, claims, budgets, groups, tenants, all uids, and the values of labels, taints, tolerations and
annotations become pseudonyms. One text has one pseudonym wherever it stands, so every selector, toleration, zone and pinned volume still
matches what it matched. A pseudonym is a rank and a salted hash: the rank keeps the order of names, on which ties are broken, so the same
plan comes out; the hash keeps one object recognisable across snapshots with the same salt, and cannot be undone without it.

What stays: numbers, label keys, resource, signal, scheduler and PriorityClass names, the namespaces that every cluster has, texts that are
numbers or true or false, and the values of labels that name a make of machine (a policy's pools may go by them). Sentences are withheld.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b

from rebalancer.state.cluster import ClusterState, Coverage
from rebalancer.state.devices import Gpus
from rebalancer.state.gangs import Gangs
from rebalancer.state.gpu import GpuAsk
from rebalancer.state.scheduling import (
    Constraints,
    LabelSet,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeZone,
)
from rebalancer.state.tables import Budget, Nodes, PodClass, Pods, PodVolumes, ResourceClaim, WorkloadRef, Workloads

WITHHELD = "withheld"
_SAME_EVERYWHERE = frozenset(("", "default", "kube-system", "kube-public", "kube-node-lease"))
_TELLS_NOTHING = frozenset(("true", "false", *(each.value for each in PodClass)))
_NUMBER = re.compile(r"^[+-]?[0-9]+(\.[0-9]+)?$")
_MACHINE_LABELS = frozenset(
    (
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.family",
    )
)


def anonymize(state: ClusterState, *, salt: str) -> ClusterState:
    """A copy of the state under pseudonyms. ``salt``: random and kept secret, or thrown away."""
    names = _Pseudonyms(state, salt=salt)
    return replace(
        state,
        cluster=names.text(state.cluster),
        nodes=_nodes(state.nodes, names),
        pods=_pods(state.pods, names),
        workloads=_workloads(state.workloads, names),
        budgets=tuple(_budget(each, names) for each in state.budgets),
        label_sets=tuple(LabelSet(names.text(each.namespace), names.labels(each.labels)) for each in state.label_sets),
        constraints=tuple(_constraints(each, names) for each in state.constraints),
        controllers=tuple(map(names.text, state.controllers)),
        namespaces={names.text(name): dict(names.labels(labels.items())) for name, labels in state.namespaces.items()},
        tenants=tuple(map(names.text, state.tenants)),
        coverage=_coverage(state.coverage),
        gpus=_gpus(state.gpus, names),
        gangs=_gangs(state.gangs, names),
    )


class _Pseudonyms:
    """text -> pseudonym. A text that names several things (a Deployment and the value of its label) is called after the first kind."""

    def __init__(self, state: ClusterState, *, salt: str) -> None:
        self._key = blake2b(salt.encode(), digest_size=32).digest()
        self._known = {text: text for text in _SAME_EVERYWHERE}
        pods, refs = state.pods, state.workloads.refs
        self._learn("node", state.nodes.names)
        self._learn("namespace", _namespaces(state))
        self._learn("workload", (ref.name for ref in refs))
        self._learn("pod", pods.names)
        self._learn("object", _object_names(state))
        self._learn("device", _device_names(state.gpus))
        self._learn("container", (ask.container for asks in state.gpus.asks for ask in asks))
        self._learn("uid", (state.cluster, *pods.uids, *state.workloads.uids, *state.controllers))
        self._learn("value", (value for key, value in _label_values(state) if not _stays(key, value)))

    def _learn(self, prefix: str, texts: Iterable[str]) -> None:
        # Numbers stay: Gt and Lt must still hold between a label and a bound, and a number tells nothing.
        new = sorted(text for text in set(texts).difference(self._known) if _NUMBER.match(text) is None)
        width = len(str(len(new)))
        for rank, text in enumerate(new):
            digest = blake2b(text.encode(), key=self._key, digest_size=4).hexdigest()
            self._known[text] = f"{prefix}-{rank:0{width}d}-{digest}"

    def text(self, text: str) -> str:
        return self._known.get(text, text)

    def value(self, key: str, value: str) -> str:
        """The value of a label, an annotation or a taint."""
        if key in _MACHINE_LABELS:
            return value
        return self._known.get(value, value)

    def labels(self, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((key, self.value(key, value)) for key, value in pairs)

    def claim(self, full_name: str) -> str:
        """``namespace/name``."""
        namespace, _, name = full_name.partition("/")
        return f"{self.text(namespace)}/{self.text(name)}"


def _stays(key: str, value: str) -> bool:
    return key in _MACHINE_LABELS or value in _TELLS_NOTHING


def _namespaces(state: ClusterState) -> Iterator[str]:
    yield from state.namespaces
    yield from state.pods.namespaces
    yield from (ref.namespace for ref in state.workloads.refs)
    yield from (budget.namespace for budget in state.budgets)
    for each in state.constraints:
        yield from (namespace for term in _pod_terms(each) for namespace in term.namespaces)


def _pod_terms(each: Constraints) -> Iterator[PodTerm]:
    yield from (*each.affinity, *each.anti_affinity)
    yield from (term for _, term in (*each.preferred_affinity, *each.preferred_anti_affinity))


def _object_names(state: ClusterState) -> Iterator[str]:
    yield from (budget.name for budget in state.budgets)
    yield from state.tenants
    yield from state.pods.scheduling_group
    yield from state.gangs.names
    for volumes in state.pods.volumes:
        yield from volumes.local
        yield from volumes.claims
        yield from (claim.name for claim in volumes.resource_claims)
    for each in state.constraints:
        for full_name in (*each.exclusive_claims, *each.unbound_claims):
            yield full_name.partition("/")[2]


def _device_names(gpus: Gpus) -> Iterator[str]:
    yield from gpus.devices.uuids
    yield from gpus.devices.parents
    yield from (uuid for asks in gpus.asks for ask in asks for uuid in (*ask.model.uuids, *ask.model.not_uuids))


def _label_values(state: ClusterState) -> Iterator[tuple[str, str]]:
    """Every (key, value) of labels, annotations, selectors, taints and tolerations."""
    for mapping in (
        *state.nodes.labels,
        *state.nodes.annotations,
        *state.namespaces.values(),
        *state.pods.annotations,
        *state.workloads.annotations,
    ):
        yield from mapping.items()
    for label_set in state.label_sets:
        yield from label_set.labels
    yield from ((taint.key, taint.value) for taints in state.nodes.taints for taint in taints)
    for requirement in (*_requirements_of_selectors(budget.selector for budget in state.budgets), *_requirements(state.constraints)):
        yield from ((requirement.key, value) for value in requirement.values)
    for each in state.constraints:
        yield from each.node_selector
        yield from ((toleration.key, toleration.value) for toleration in each.tolerations)
        yield from ((zone.key, value) for zone in each.volume_zones for value in zone.values)


def _requirements_of_selectors(selectors: Iterable[Selector | None]) -> Iterator[Requirement]:
    for selector in selectors:
        if selector is not None:
            yield from selector.requirements


def _requirements(constraints: Iterable[Constraints]) -> Iterator[Requirement]:
    for each in constraints:
        terms = (*(each.node_terms or ()), *(term for _, term in each.preferred_nodes), *(t for terms in each.volume_terms for t in terms))
        for term in terms:
            yield from term.expressions
            yield from term.fields
        pod_terms = tuple(_pod_terms(each))
        yield from _requirements_of_selectors(
            (*(t.selector for t in pod_terms), *(t.namespace_selector for t in pod_terms), *(s.selector for s in each.spread))
        )


def _annotations(all_of: Iterable[Mapping[str, str]], names: _Pseudonyms) -> tuple[Mapping[str, str], ...]:
    return tuple({key: names.value(key, value) for key, value in each.items()} for each in all_of)


def _nodes(nodes: Nodes, names: _Pseudonyms) -> Nodes:
    return replace(
        nodes,
        names=tuple(map(names.text, nodes.names)),
        labels=tuple(dict(names.labels(labels.items())) for labels in nodes.labels),
        annotations=_annotations(nodes.annotations, names),
        taints=tuple(tuple(Taint(t.key, names.value(t.key, t.value), t.effect) for t in taints) for taints in nodes.taints),
        unknown=dict.fromkeys(nodes.unknown, WITHHELD),
    )


def _pods(pods: Pods, names: _Pseudonyms) -> Pods:
    return replace(
        pods,
        uids=tuple(map(names.text, pods.uids)),
        names=tuple(map(names.text, pods.names)),
        namespaces=tuple(map(names.text, pods.namespaces)),
        annotations=_annotations(pods.annotations, names),
        volumes=tuple(_volumes(each, names) for each in pods.volumes),
        scheduling_group=tuple(map(names.text, pods.scheduling_group)),
    )


def _volumes(volumes: PodVolumes, names: _Pseudonyms) -> PodVolumes:
    return PodVolumes(
        local=tuple(map(names.text, volumes.local)),
        claims=tuple(map(names.text, volumes.claims)),
        resource_claims=tuple(ResourceClaim(names.text(claim.name), claim.shared) for claim in volumes.resource_claims),
    )


def _workloads(workloads: Workloads, names: _Pseudonyms) -> Workloads:
    return replace(
        workloads,
        refs=tuple(WorkloadRef(ref.kind, names.text(ref.namespace), names.text(ref.name)) for ref in workloads.refs),
        uids=tuple(map(names.text, workloads.uids)),
        rollout=tuple(WITHHELD if words else "" for words in workloads.rollout),
        annotations=_annotations(workloads.annotations, names),
    )


def _budget(budget: Budget, names: _Pseudonyms) -> Budget:
    return replace(budget, namespace=names.text(budget.namespace), name=names.text(budget.name), selector=_selector(budget.selector, names))


def _selector(selector: Selector | None, names: _Pseudonyms) -> Selector | None:
    return None if selector is None else Selector(_renamed(selector.requirements, names))


def _renamed(requirements: Iterable[Requirement], names: _Pseudonyms) -> tuple[Requirement, ...]:
    return tuple(replace(each, values=tuple(names.value(each.key, value) for value in each.values)) for each in requirements)


def _node_term(term: NodeTerm, names: _Pseudonyms) -> NodeTerm:
    return NodeTerm(expressions=_renamed(term.expressions, names), fields=_renamed(term.fields, names))


def _pod_term(term: PodTerm, names: _Pseudonyms) -> PodTerm:
    return replace(
        term,
        selector=_selector(term.selector, names),
        namespaces=tuple(map(names.text, term.namespaces)),
        namespace_selector=_selector(term.namespace_selector, names),
    )


def _spread(spread: SpreadConstraint, names: _Pseudonyms) -> SpreadConstraint:
    return replace(spread, selector=_selector(spread.selector, names))


def _toleration(toleration: Toleration, names: _Pseudonyms) -> Toleration:
    return replace(toleration, value=names.value(toleration.key, toleration.value))


def _constraints(each: Constraints, names: _Pseudonyms) -> Constraints:
    return replace(
        each,
        node_selector=names.labels(each.node_selector),
        node_terms=None if each.node_terms is None else tuple(_node_term(term, names) for term in each.node_terms),
        preferred_nodes=tuple((weight, _node_term(term, names)) for weight, term in each.preferred_nodes),
        tolerations=tuple(_toleration(toleration, names) for toleration in each.tolerations),
        affinity=tuple(_pod_term(term, names) for term in each.affinity),
        anti_affinity=tuple(_pod_term(term, names) for term in each.anti_affinity),
        preferred_affinity=tuple((weight, _pod_term(term, names)) for weight, term in each.preferred_affinity),
        preferred_anti_affinity=tuple((weight, _pod_term(term, names)) for weight, term in each.preferred_anti_affinity),
        spread=tuple(_spread(spread, names) for spread in each.spread),
        volume_terms=tuple(tuple(_node_term(term, names) for term in terms) for terms in each.volume_terms),
        volume_zones=tuple(VolumeZone(zone.key, frozenset(names.value(zone.key, v) for v in zone.values)) for zone in each.volume_zones),
        exclusive_claims=tuple(map(names.claim, each.exclusive_claims)),
        unbound_claims=tuple(map(names.claim, each.unbound_claims)),
    )


def _gpus(gpus: Gpus, names: _Pseudonyms) -> Gpus:
    """Models and profiles stay, like the labels that name them; of a fault it stays what kind it is and of whom; addresses go."""
    return replace(
        gpus,
        asks=tuple(tuple(_ask(ask, names) for ask in asks) for asks in gpus.asks),
        addresses=(),
        devices=replace(
            gpus.devices,
            uuids=tuple(map(names.text, gpus.devices.uuids)),
            parents=tuple(map(names.text, gpus.devices.parents)),
        ),
        faults=tuple(
            replace(each, node=names.text(each.node), pod=names.claim(each.pod) if each.pod else "", sentence=WITHHELD)
            for each in gpus.faults
        ),
    )


def _gangs(gangs: Gangs, names: _Pseudonyms) -> Gangs:
    return replace(gangs, namespaces=tuple(map(names.text, gangs.namespaces)), names=tuple(map(names.text, gangs.names)))


def _ask(ask: GpuAsk, names: _Pseudonyms) -> GpuAsk:
    uuids, not_uuids = (tuple(map(names.text, each)) for each in (ask.model.uuids, ask.model.not_uuids))
    return replace(ask, container=names.text(ask.container), model=replace(ask.model, uuids=uuids, not_uuids=not_uuids))


def _coverage(coverage: Coverage) -> Coverage:
    failed = None if coverage.failed is None else dict.fromkeys(coverage.failed, WITHHELD)
    return replace(coverage, notes=(), failed=failed, warnings=())
