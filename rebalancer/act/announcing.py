"""The announcement in the cluster: the object by which the API server knows whose new pods to gate.

Only the leader writes it, so a conflict means that an earlier leader's last write came late: it is read again and written over. It is
deleted when nothing is awaited, so that in a cluster at rest there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesNotFound
from rebalancer.kube.announcements import (
    KIND,
    AwaitedWire,
    StoredAnnouncement,
    delete_announcement,
    read_announcement,
    write_announcement,
)
from rebalancer.kube.client import KubeClient
from rebalancer.steer.hinting import Awaited


class Announcement:
    """One announcement. Used by one thread at a time; whoever has several sees to that."""

    def __init__(self, client: KubeClient, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._stored: StoredAnnouncement | None = None

    @property
    def place(self) -> str:
        """As it stands in a sentence."""
        return f"{KIND} {self._namespace}/{self._name}"

    def read(self, *, deadline: Deadline) -> frozenset[str]:
        """The uids of the evicted pods whose replacements it awaits. Raises KubernetesError."""
        self._stored = read_announcement(self._client, namespace=self._namespace, name=self._name, deadline=deadline)
        awaited = {} if self._stored is None else self._stored.awaited
        return frozenset(pod for each in awaited.values() for pod in each.pods)

    def write(self, awaited: Mapping[str, Awaited], *, deadline: Deadline) -> None:
        """Make it say this and nothing else. Raises KubernetesError; after KubernetesUnreachable it is open whether it does."""
        wires = {uid: AwaitedWire(until=each.until, pods=each.pods) for uid, each in awaited.items()}
        try:
            self._write(wires, deadline=deadline)
        except (KubernetesConflict, KubernetesNotFound):
            self.read(deadline=deadline)
            try:
                self._write(wires, deadline=deadline)
            except KubernetesNotFound as error:
                raise KubernetesNotFound(
                    f"{self.place} cannot be made: the API server does not know the kind, or the namespace",
                    remedy="install what `rebalancer policy hints` prints, or set steering.hints to false",
                    status=error.status,
                ) from error

    def withdraw(self, *, deadline: Deadline) -> bool:
        """See that there is none. False if there was none. Raises KubernetesError."""
        self._stored = None
        return delete_announcement(self._client, namespace=self._namespace, name=self._name, deadline=deadline)

    def _write(self, awaited: Mapping[str, AwaitedWire], *, deadline: Deadline) -> None:
        self._stored = write_announcement(
            self._client, namespace=self._namespace, name=self._name, awaited=awaited, previous=self._stored, deadline=deadline
        )
