"""The registers of nodes as this process knows them: what keeps the binders of several processes apart.

A binding is written down before it is sent, and the write fails if anybody else has written since. Whoever has made the last write knows
all that was bound to the node since they read it, so that the write is all it takes. Whoever finds that another one has written reads the
register and then the pods of the node, both from the API server itself.

No clock decides anything. A binding is sent for one version of its pod and can take effect on no other, so an entry is void as soon as
the pod is seen in another version. An entry whose pod stays as it is, since the process that wrote it has died, is made void after a
while, by moving the pod on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesNotFound
from rebalancer.kube.binding import Binding
from rebalancer.kube.configmaps import StoredMap
from rebalancer.kube.failures import leaves_open
from rebalancer.kube.gpu_sharing import GpuPodWire
from rebalancer.kube.lists import Listed
from rebalancer.kube.watch_events import version_number
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.facts import gpu_pod
from rebalancer.steer.gpushare.register import REGISTER_KEY, Entry, format_register, parse_register

NODE_KEY = "node"
PATIENCE_S = 30.0
"""After which a binding of which nothing was heard is made void."""
_LOOKS = 8
"""How often a pod is looked at that moves on in between."""


class ShareApi(Protocol):
    """What is asked of the API server: `rebalancer.kube.gpu_sharing.GpuSharing`, with the same errors."""

    def read_pod(self, *, namespace: str, name: str, deadline: Deadline) -> GpuPodWire | None: ...

    def pods_on(self, node: str, *, deadline: Deadline) -> Listed[GpuPodWire]: ...

    def read_register(self, node: str, *, deadline: Deadline) -> StoredMap | None: ...

    def write_register(self, node: str, data: Mapping[str, str], *, previous: StoredMap | None, deadline: Deadline) -> StoredMap: ...

    def registers(self, *, deadline: Deadline) -> list[StoredMap]: ...

    def delete_register(self, stored: StoredMap, *, deadline: Deadline) -> None: ...

    def bind(
        self, *, namespace: str, name: str, uid: str, version: str, node: str, annotations: Mapping[str, str], deadline: Deadline
    ) -> Binding: ...

    def overtake(self, *, namespace: str, name: str, version: str, deadline: Deadline) -> bool: ...


class Registers:
    """Every method but `knows` is called by whoever holds the node's lock, and raises KubernetesError. ``now``: Unix seconds."""

    def __init__(self, api: ShareApi, book: ShareBook, *, now: Callable[[], float]) -> None:
        self._api, self._book, self._now = api, book, now
        self._read: dict[str, StoredMap | None] = {}
        """Node -> its register as it was read or written last; None: there is none yet."""

    def knows(self, node: str) -> bool:
        """Whether an entry can be written without reading first."""
        return node in self._read

    def forget(self, node: str) -> None:
        """What is known may be too old."""
        self._read.pop(node, None)

    def write(self, node: str, entry: Entry, deadline: Deadline) -> bool:
        """Write an entry down. False when somebody else has written, or that cannot be told."""
        others = [each for each in self._book.pending(node) if each.uid != entry.uid]
        previous = self._read.pop(node)
        try:
            stored = self._api.write_register(node, _data(node, [*others, entry]), previous=previous, deadline=deadline)
        except KubernetesConflict:
            return False
        except KubernetesError as error:
            if leaves_open(error) or (isinstance(error, KubernetesNotFound) and previous is not None):
                return False
            raise
        self._read[node] = stored
        self._book.pend(node, entry)
        return True

    def take_back(self, node: str, entry: Entry, deadline: Deadline) -> None:
        """Strike out an entry whose binding was refused, if no other request for that binding can be on its way."""
        if entry.repeated or node not in self._read:
            return
        others = [each for each in self._book.pending(node) if each.uid != entry.uid]
        previous = self._read.pop(node)
        try:
            stored = self._api.write_register(node, _data(node, others), previous=previous, deadline=deadline)
        except KubernetesError:
            return  # whoever reads it next finds out
        self._read[node] = stored
        self._book.end(node, entry.uid)

    def sync(self, node: str, deadline: Deadline) -> None:
        """Read the register of a node, then its pods: in this order, so that what was struck out of the one is found in the others."""
        self._read.pop(node, None)
        stored = self._api.read_register(node, deadline=deadline)
        entries = _entries(stored)
        listed = self._api.pods_on(node, deadline=deadline)
        if listed.odd:
            raise KubernetesError(f"a pod on node {node} could not be read, {next(iter(listed.odd))}")
        self._book.take_node_pods(node, [gpu_pod(each) for each in listed.items], version=version_number(listed.resource_version) or 0)
        self._book.set_pending(node, [entry for entry in entries if self._may_take_effect(node, entry, deadline)])
        self._read[node] = stored

    def _may_take_effect(self, node: str, entry: Entry, deadline: Deadline) -> bool:
        """Whether the binding of an entry may still come."""
        for _ in range(_LOOKS):
            if self._book.is_on(node, entry.uid):
                return False
            wire = self._api.read_pod(namespace=entry.namespace, name=entry.name, deadline=deadline)
            if wire is None:
                return False
            pod = gpu_pod(wire)
            self._book.take_pod(pod)
            if pod.uid != entry.uid or pod.node or pod.version != entry.version:
                return False
            if abs(self._now() - entry.at) <= PATIENCE_S:
                return True
            if self._api.overtake(namespace=entry.namespace, name=entry.name, version=entry.version, deadline=deadline):
                return False
        return True

    def purge(self, node: str, stored: StoredMap, deadline: Deadline) -> bool:
        """Delete the register of a node that is no more. False if a binding is under way, or somebody has just written."""
        self._read.pop(node, None)
        if any(self._may_take_effect(node, entry, deadline) for entry in _entries(stored)):
            return False
        try:
            self._api.delete_register(stored, deadline=deadline)
        except (KubernetesConflict, KubernetesNotFound):
            return False
        self._book.set_pending(node, ())
        return True


def _data(node: str, entries: Iterable[Entry]) -> dict[str, str]:
    return {NODE_KEY: node, REGISTER_KEY: format_register(entries)}


def _entries(stored: StoredMap | None) -> tuple[Entry, ...]:
    """Raises KubernetesError for a register that is none."""
    if stored is None:
        return ()
    entries = parse_register(stored.data.get(REGISTER_KEY, ""))
    if entries is None:
        raise KubernetesError(
            f"ConfigMap {stored.namespace}/{stored.name}, which keeps bindings apart, has been changed by hand",
            remedy="delete it at a moment at which no pod is being bound to that node",
        )
    return entries
