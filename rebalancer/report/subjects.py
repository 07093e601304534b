"""Finding the node, pod or workload that a person means, and saying which names are near when there is none."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from rebalancer.errors import UsageError
from rebalancer.report.text import clean
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import WorkloadRef

_SHOWN = 3


def find_node(state: ClusterState, name: str) -> int:
    """Row of the node. Raises UsageError."""
    row = state.node_index.get(name)
    if row is None:
        raise UsageError(
            f"there is no node {clean(name)}", remedy=_near(name, state.nodes.names, "list them with 'rebalancer skew -o wide'")
        )
    return row


def find_pod(state: ClusterState, name: str, namespace: str | None) -> int:
    """Row of the pod; ``name`` may be ``namespace/name``. Raises UsageError when there is none, or one in several namespaces."""
    namespace, name = _split(name, namespace)
    pods = state.pods
    found = [row for row, other in enumerate(pods.names) if other == name and namespace in (None, pods.namespaces[row])]
    if len(found) == 1:
        return found[0]
    if not found:
        names = [n for n, ns in zip(pods.names, pods.namespaces, strict=True) if namespace in (None, ns)]
        elsewhere = [f"{ns}/{n}" for n, ns in zip(pods.names, pods.namespaces, strict=True) if n == name]
        place = "in the cluster" if namespace is None else f"in namespace {clean(namespace)}"
        raise UsageError(
            f"there is no pod {clean(name)} {place}", remedy=_near(name, elsewhere or names, "check the name and the namespace (-n)")
        )
    places = sorted({pods.namespaces[row] for row in found})
    raise UsageError(f"pod {clean(name)} exists in namespaces {_listed(places)}", remedy="say which one with -n NAMESPACE")


def find_workload(state: ClusterState, name: str, namespace: str | None, kind: str | None) -> int:
    """Row of the workload; ``name`` may be ``namespace/name`` or ``kind/name``, kinds in any case. Raises UsageError."""
    refs = state.workloads.refs
    head, slash, tail = name.partition("/")
    if slash and kind is None and head.lower() in {ref.kind.lower() for ref in refs} and "/" not in tail:
        kind, name = head, tail
    namespace, name = _split(name, namespace)

    def fits(ref: WorkloadRef) -> bool:
        return ref.name == name and namespace in (None, ref.namespace) and (kind is None or ref.kind.lower() == kind.lower())

    found = [row for row, ref in enumerate(refs) if fits(ref)]
    if len(found) == 1:
        return found[0]
    if not found:
        names = {ref.name for ref in refs if namespace in (None, ref.namespace)}
        elsewhere = {f"{ref.namespace}/{ref.name}" for ref in refs if ref.name == name and kind in (None, ref.kind)}
        place = "in the cluster" if namespace is None else f"in namespace {clean(namespace)}"
        what = f"{clean(kind)} {clean(name)}" if kind else clean(name)
        raise UsageError(
            f"there is no workload {what} {place}", remedy=_near(name, elsewhere or names, "check the name and the namespace (-n)")
        )
    raise UsageError(
        f"{clean(name)} is the name of several workloads: {_listed(str(refs[row]) for row in found)}",
        remedy="say which one with -n NAMESPACE, or as KIND/NAME",
    )


def _split(name: str, namespace: str | None) -> tuple[str | None, str]:
    head, slash, tail = name.partition("/")
    if not slash:
        return namespace, name
    if namespace is not None and namespace != head:
        raise UsageError(f"{clean(name)} names namespace {clean(head)}, -n names {clean(namespace)}", remedy="give one of them")
    return head, tail


def _listed(names: Iterable[str]) -> str:
    words = [clean(name) for name in names]
    return ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")


def _near(name: str, names: Iterable[str], otherwise: str) -> str:
    """Near matches first by likeness, then by what contains the name or begins like it."""
    known = sorted(set(names))
    near = get_close_matches(name, known, n=_SHOWN, cutoff=0.75) if len(known) <= 20_000 else []
    near += [other for other in known if name and name in other and other not in near][: _SHOWN - len(near)]
    return f"did you mean {_listed(near)}?" if near else otherwise
