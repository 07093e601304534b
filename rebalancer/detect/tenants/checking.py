"""What is wrong with a tenants file beyond its form: against itself, and against a cluster where one is given.

A mistake is what cannot be meant: more guaranteed than there is, one pod for two tenants, a name that nothing bears. A warning may be
meant and surprises. Without a cluster only what the file itself shows is told; what is not known of a cluster is told by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rebalancer.detect.tenants.accounts import capacity_of, resources_of
from rebalancer.detect.tenants.membership import membership, names_it, selects
from rebalancer.policy.document import KeyPath, Mistake
from rebalancer.policy.mistakes import nearest
from rebalancer.policy.tenants import GPU, GPU_MODEL, Quotas, Tenant, TenantSpec
from rebalancer.policy.tenants_in_force import TenantNow, moments, tenants_in_force
from rebalancer.state.cluster import ClusterState

_SLACK = 1e-9
"""Relative: sums of shares may miss the whole by rounding."""


@dataclass(frozen=True, slots=True)
class Findings:
    mistakes: tuple[Mistake, ...]
    """Without lines: those are the file's to know."""
    warnings: tuple[Mistake, ...]


def check_tenants(spec: TenantSpec, state: ClusterState | None = None) -> Findings:
    """All that is wrong, in the order of the file's tenants."""
    places = dict(_places(spec))
    tenants = {tenant.name: tenant for tenant in spec.all()}
    mistakes = [*_shared_namespaces(spec, places), *_too_much(spec, places, state)]
    warnings = [*_unheld(spec, places), *_without_members(spec, places)]
    if state is not None:
        mistakes += [*_unknown_names(tenants, places, state), *_claimed_twice(spec, state)]
        warnings += _without_pods(spec, places, state)
    return Findings(tuple(dict.fromkeys(mistakes)), tuple(dict.fromkeys(warnings)))


def _places(spec: TenantSpec) -> Iterator[tuple[str, KeyPath]]:
    def walk(tenant: Tenant, at: KeyPath) -> Iterator[tuple[str, KeyPath]]:
        yield tenant.name, at
        for row, below in enumerate(tenant.tenants):
            yield from walk(below, (*at, "tenants", row))

    for row, top in enumerate(spec.tenants):
        yield from walk(top, ("spec", "tenants", row))


def _shared_namespaces(spec: TenantSpec, places: Mapping[str, KeyPath]) -> Iterator[Mistake]:
    owner: dict[str, str] = {}
    for tenant in spec.leaves():
        for row, entry in enumerate(tenant.members):
            if entry.namespace_selector or entry.queues or entry.pod_selector:
                continue
            for column, namespace in enumerate(entry.namespaces):
                first = owner.setdefault(namespace, tenant.name)
                if first != tenant.name:
                    at = (*places[tenant.name], "members", row, "namespaces", column)
                    yield Mistake(at, None, f"namespace {namespace} is claimed by {first} and by {tenant.name}", "leave it to one of them")


def _too_much(spec: TenantSpec, places: Mapping[str, KeyPath], state: ClusterState | None) -> Iterator[Mistake]:
    """Guarantees of the first level over the capacity, and of those below a tenant over its own; at whatever time of the week."""
    resources = () if state is None else resources_of(state, tenants_in_force(spec, at=state.at, capacity={}))
    capacity = {} if state is None else dict(zip(resources, capacity_of(state, resources).tolist(), strict=True))
    told: set[tuple[int, str]] = set()
    for moment in moments(spec, at=0.0 if state is None else state.at):
        now = tenants_in_force(spec, at=moment, capacity=capacity)
        for (parent, resource), total in _sums(now).items():
            own = capacity.get(resource) if parent < 0 else now[parent].guaranteed.get(resource)
            if own is None or (parent, resource) in told or not total > own * (1 + _SLACK):
                continue
            told.add((parent, resource))
            if parent < 0:
                words = f"{total:g} {resource} are guaranteed in all, and the cluster has {own:g}"
                yield Mistake(("spec", "tenants"), None, words, "lower the guarantees")
            else:
                name = now[parent].name
                words = f"{total:g} {resource} are guaranteed to those below {name}, which is guaranteed {own:g}"
                yield Mistake((*places[name], "guaranteed", resource), None, words, f"raise what {name} has, or lower what they have")
    if state is None:
        yield from _over_a_hundred(spec)


def _over_a_hundred(spec: TenantSpec) -> Iterator[Mistake]:
    shares: dict[str, float] = {}
    for tenant in spec.tenants:
        for resource, value in (tenant.guaranteed or {}).items():
            if isinstance(value, str) and value.endswith("%"):
                shares[resource] = shares.get(resource, 0.0) + float(value[:-1])
    for resource, share in shares.items():
        if share > 100 * (1 + _SLACK):
            yield Mistake(("spec", "tenants"), None, f"{share:g}% of {resource} are guaranteed in all", "share out at most 100%")


def _sums(now: tuple[TenantNow, ...]) -> dict[tuple[int, str], float]:
    """(parent, resource) -> what those directly below it are guaranteed."""
    sums: dict[tuple[int, str], float] = {}
    for tenant in now:
        for resource, amount in tenant.guaranteed.items():
            sums[tenant.parent, resource] = sums.get((tenant.parent, resource), 0.0) + amount
    return sums


def _unheld(spec: TenantSpec, places: Mapping[str, KeyPath]) -> Iterator[Mistake]:
    """A guarantee below a tenant that has none: what is above bounds it, so it may not be had."""
    for tenant in spec.all():
        own = _resources(tenant)
        for below in tenant.tenants:
            for resource in below.guaranteed or {}:
                if resource not in own:
                    words = f"{below.name} is guaranteed {resource}, and {tenant.name} above it is not, so the guarantee may not hold"
                    yield Mistake((*places[below.name], "guaranteed", resource), None, words, f"guarantee it to {tenant.name} too")


def _resources(tenant: Tenant) -> set[str]:
    said: tuple[Quotas, ...] = (tenant, *tenant.windows)
    return {resource for quotas in said for resource in quotas.guaranteed or {}}


def _without_members(spec: TenantSpec, places: Mapping[str, KeyPath]) -> Iterator[Mistake]:
    for tenant in spec.leaves():
        if not tenant.members and tenant.name != spec.default:
            yield Mistake(places[tenant.name], None, f"{tenant.name} has no members, so no pod is its own", "give it members")


def _without_pods(spec: TenantSpec, places: Mapping[str, KeyPath], state: ClusterState) -> Iterator[Mistake]:
    for name in membership(spec, labels=state.pods.labels, label_sets=state.label_sets, namespaces=state.namespaces).without_pods:
        yield Mistake(places[name], None, f"{name} has no pods now", "check its members")


def _claimed_twice(spec: TenantSpec, state: ClusterState) -> Iterator[Mistake]:
    found = membership(spec, labels=state.pods.labels, label_sets=state.label_sets, namespaces=state.namespaces)
    for pod, claims in found.claimed_twice:
        words = f"pod {state.pod_name(pod)} is claimed by {' and '.join(claims)}, so it belongs to none of them"
        yield Mistake(("spec", "tenants"), None, words, "let their members exclude each other")


def _unknown_names(tenants: Mapping[str, Tenant], places: Mapping[str, KeyPath], state: ClusterState) -> Iterator[Mistake]:
    for name, tenant in tenants.items():
        yield from _unknown_resources(tenant, places[name], state)
        for row, window in enumerate(tenant.windows):
            yield from _unknown_resources(window, (*places[name], "windows", row), state)
        if state.namespaces:
            yield from _unknown_namespaces(tenant, places[name], state.namespaces)


def _unknown_resources(quotas: Quotas, at: KeyPath, state: ClusterState) -> Iterator[Mistake]:
    models = sorted({f"{GPU_MODEL}{model}" for model in state.gpus.devices.models if model})
    for key, amounts in (("guaranteed", quotas.guaranteed), ("limit", quotas.limit), ("floor", quotas.floor)):
        for resource in amounts or {}:
            known = models if resource.startswith(GPU_MODEL) else [*state.resources, GPU]
            if resource in known:
                continue
            what = "GPU of the cluster is of model" if resource.startswith(GPU_MODEL) else "node has the resource"
            words = f"no {what} {resource.removeprefix(GPU_MODEL)}"
            yield Mistake((*at, key, resource), None, words, _meant(resource, known))


def _unknown_namespaces(tenant: Tenant, at: KeyPath, namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[Mistake]:
    for row, entry in enumerate(tenant.members):
        for column, pattern in enumerate(entry.namespaces):
            if not any(names_it(pattern, name) for name in namespaces):
                words = f"no namespace is called {pattern}" if not pattern.endswith("*") else f"no namespace begins with {pattern[:-1]}"
                yield Mistake((*at, "members", row, "namespaces", column), None, words, _meant(pattern.rstrip("*"), sorted(namespaces)))
        selector = entry.namespace_selector
        if selector is not None and not any(selects(selector, labels) for labels in namespaces.values()):
            words = f"no namespace has the labels that {tenant.name} asks for"
            yield Mistake((*at, "members", row, "namespaceSelector"), None, words, "check the labels of its namespaces")


def _meant(word: str, known: list[str]) -> str:
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else f"known are {', '.join(known[:8])}" if known else "leave it out"
