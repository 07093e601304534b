"""What each mode may do in the API, as the rules of RBAC say it: one list for the preflight, `policy rbac` and the tests of the chart.

Each power is a role of its own, so that it can be granted alone: *observe* reads, *mark* patches nodes and pods, *evict* creates evictions
and nothing else, *hint* opens gates and proposes nodes, *tell* creates Events, *listen* reads them, for the bindings of pods; *keep* is the
Lease, the memory and the announcement of hints in the controller's own namespace. Nothing here deletes but that announcement, reads a
secret, or has a wildcard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rebalancer.kube import admission
from rebalancer.kube.announcements import GROUP, PLURAL
from rebalancer.kube.gpu_sharing import UNHEALTHY_NAMESPACE
from rebalancer.kube.lists import Resource
from rebalancer.kube.operations import describe
from rebalancer.kube.resources import ALL_LISTS, GANG_LISTS, OPTIONAL_LISTS, WATCHED
from rebalancer.policy.model import Mode, Spec

LEASE = "rebalancer"
MEMORY = "rebalancer-state"
"""Where the settings name no others."""


@dataclass(frozen=True, slots=True)
class Right:
    """``namespace`` empty: everywhere. ``name`` empty: every object of that kind."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """``pods/eviction``, as a rule names it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def words(self) -> str:
        named = f" {self.name}" if self.name else ""
        place = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.path}{f'.{self.group}' if self.group else ''}{named}{place}"

    @property
    def rule(self) -> str:
        names = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.path}"]{names}, verbs: ["{self.verb}"]}}'


@dataclass(frozen=True, slots=True)
class Role:
    """A power. ``namespaced``: a Role in the controller's own namespace, not a ClusterRole; ``elsewhere``: in that namespace instead."""

    name: str
    rights: tuple[Right, ...]
    namespaced: bool = False
    elsewhere: str = ""

    def rules(self) -> list[dict[str, list[str]]]:
        """As RBAC writes them: rights that differ only in the resource, or only in the verb, share a rule."""
        verbs: dict[tuple[str, str, str], list[str]] = {}
        for right in self.rights:
            verbs.setdefault((right.group, right.path, right.name), []).append(right.verb)
        resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (group, path, name), allowed in verbs.items():
            resources.setdefault((group, name, tuple(allowed)), []).append(path)
        return [
            {
                "apiGroups": [group],
                "resources": paths,
                **({"resourceNames": [name]} if name else {}),
                "verbs": list(allowed),
            }
            for (group, name, allowed), paths in resources.items()
        ]


def reading_rights() -> tuple[Right, ...]:
    """List of everything that a cycle reads, watch of what is kept current by it; get of the pods and nodes that are re-checked before a
    write."""
    watched = {resource.path for resource in WATCHED}
    verbs = {resource.path: ("list", "watch") if resource.path in watched else ("list",) for resource in ALL_LISTS}
    operations = [(describe("GET", path), verb) for path, allowed in verbs.items() for verb in allowed]
    return (
        Right("get", "", "pods"),
        Right("get", "", "nodes"),
        *(Right(verb, operation.group, operation.resource) for operation, verb in operations),
    )


def optional_rights() -> tuple[Right, ...]:
    """List of what only GPUs need, and only some of their schemes: a cycle does without, and says so."""
    return _list_rights(OPTIONAL_LISTS)


def gang_rights() -> tuple[Right, ...]:
    """List of what says how many pods belong together: a cycle does without, and takes all members of a group to be needed."""
    return _list_rights(GANG_LISTS)


def _list_rights(resources: Sequence[Resource[Any]]) -> tuple[Right, ...]:
    operations = [describe("GET", resource.path) for resource in resources]
    return tuple(Right("list", operation.group, operation.resource) for operation in operations)


def roles_for(
    spec: Spec, mode: Mode, *, namespace: str, lease: str = LEASE, memory: str = MEMORY, announcement: str = ""
) -> tuple[Role, ...]:
    """The roles that a policy needs in a mode, the whole of them, so that nothing more is ever granted. ``lease``: empty for none.

    ``announcement``: the name of that of placement hints; empty: that of the Lease.
    """
    roles = [Role("observe", (*reading_rights(), *optional_rights(), *gang_rights()))]
    acting, steering = mode is not Mode.DRY_RUN, spec.steering
    marks = [Right("patch", "", "pods")] if mode is Mode.ANNOTATE else []
    if (mode is Mode.EVICT and steering.soft_taint) or (acting and steering.annotate_nodes != "none"):
        marks.append(Right("patch", "", "nodes"))
    if marks:
        roles.append(Role("mark", tuple(marks)))
    if acting and steering.crane_annotations:
        roles.append(Role("listen", tuple(Right(verb, "events.k8s.io", "events") for verb in ("list", "watch"))))
    if mode is Mode.EVICT:
        roles.append(Role("evict", (Right("create", "", "pods", "eviction"),)))
        if spec.steering.hints:
            roles.append(Role("hint", hinting_rights()))
        if spec.reclaim.enabled or spec.defragment.enabled:
            roles.append(Role("nominate", (Right("patch", "", "pods", "status"),)))
        if spec.events:
            roles.append(Role("tell", (Right("create", "events.k8s.io", "events"),)))
    keep = keeping_rights(mode, namespace=namespace, lease=lease, memory=memory)
    if mode is Mode.EVICT and spec.steering.hints:
        keep += announcing_rights(namespace=namespace, name=announcement or lease or LEASE)
    return (*roles, Role("keep", keep, namespaced=True))


def keeping_rights(mode: Mode, *, namespace: str, lease: str = LEASE, memory: str = MEMORY) -> tuple[Right, ...]:
    """The Lease of leader election, and the memory, which is only read unless pods are evicted."""
    rights = [*lease_rights(namespace=namespace, lease=lease), Right("get", "", "configmaps", namespace=namespace, name=memory)]
    if mode is Mode.EVICT:
        rights += [
            Right("update", "", "configmaps", namespace=namespace, name=memory),
            Right("create", "", "configmaps", namespace=namespace),
        ]
    return tuple(rights)


def hinting_rights() -> tuple[Right, ...]:
    """Gated pods are watched even where the cycles list, and may be patched: the gate and the label taken off, a node proposed. Each cycle
    looks whether the admission policy is there."""
    pods = (Right(verb, "", "pods") for verb in ("list", "watch", "patch"))
    return (*pods, Right("patch", "", "pods", "status"), Right("list", admission.GROUP, admission.BINDINGS))


def announcing_rights(*, namespace: str, name: str) -> tuple[Right, ...]:
    """The announcement of placement hints: the one thing that is ever deleted."""
    named = (Right(verb, GROUP, PLURAL, namespace=namespace, name=name) for verb in ("get", "update", "delete"))
    return (Right("create", GROUP, PLURAL, namespace=namespace), *named)


def lease_rights(*, namespace: str, lease: str) -> tuple[Right, ...]:
    """What leader election needs, in every mode; nothing when ``lease`` is empty."""
    group = "coordination.k8s.io"
    if not lease:
        return ()
    return (
        Right("create", group, "leases", namespace=namespace),
        Right("get", group, "leases", namespace=namespace, name=lease),
        Right("update", group, "leases", namespace=namespace, name=lease),
    )


def extender_roles(*, namespace: str, memory: str = MEMORY, reservations: bool = True) -> tuple[Role, ...]:
    """What `rebalancer extender` needs, for a service account of its own: to read nodes and pods and, for ``reservations``, the one
    ConfigMap of the controller. It writes nothing."""
    followed = [Right(verb, "", resource) for resource in ("nodes", "pods") for verb in ("list", "watch")]
    roles = [Role("steer", tuple(followed))]
    if reservations:
        state = [Right(verb, "", "configmaps", namespace=namespace, name=memory) for verb in ("list", "watch")]
        roles.append(Role("recall", tuple(state), namespaced=True))
    return tuple(roles)


def gpushare_roles(*, namespace: str) -> tuple[Role, ...]:
    """What the verbs of the gpushare extender need beside `extender_roles`: to bind pods, to keep registers in ``namespace``, and to read
    which devices are unhealthy."""
    binding = [Right("get", "", "pods"), Right("patch", "", "pods"), Right("create", "", "pods", "binding")]
    registers = [Right(verb, "", "configmaps", namespace=namespace) for verb in ("get", "list", "create", "update", "delete")]
    unhealthy = [Right(verb, "", "configmaps", namespace=UNHEALTHY_NAMESPACE) for verb in ("list", "watch")]
    return (
        Role("share", tuple(binding)),
        Role("register", tuple(registers), namespaced=True),
        Role("health", tuple(unhealthy), namespaced=True, elsewhere=UNHEALTHY_NAMESPACE),
    )


def writing_rights(
    spec: Spec, mode: Mode, *, namespace: str, lease: str = LEASE, memory: str = MEMORY, announcement: str = ""
) -> Sequence[Right]:
    """What a mode needs beside reading."""
    roles = roles_for(spec, mode, namespace=namespace, lease=lease, memory=memory, announcement=announcement)
    return [right for role in roles if role.name != "observe" for right in role.rights]
