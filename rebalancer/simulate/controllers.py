"""The owners of pods: a queue of owners to look at, and who looks at which kind. What each kind does is in `owner_sync` and `jobs`.

ReplicaSets replace a terminating pod at once, StatefulSets when the old object is gone, DaemonSets on the same node, Jobs after a back-
off.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.simulate.jobs import JobController
from rebalancer.simulate.kinds import BY_KIND, Json
from rebalancer.simulate.owner_sync import sync_daemon_set, sync_deployment, sync_replica_set, sync_stateful_set
from rebalancer.simulate.pods import controller_of
from rebalancer.simulate.world import Change, Key, World

_OWNING = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs")
_PLURALS = {BY_KIND[kind].plural for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")}


class OwnerControllers:
    """Keeps the pods of every owner as its spec says, and its status as its pods are."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs = JobController(world)
        self._pods: dict[str, dict[str, Json]] = {}
        self._dirty: dict[tuple[str, Key], None] = {}
        for pod in world.objects("pods"):
            self._index(pod)
        for plural in _OWNING:
            for owner in world.objects(plural):
                self._mark(plural, owner)
        world.subscribe(self._note)

    def pods_of(self, owner: Json) -> list[Json]:
        """The pods that ``owner`` controls, terminating and finished ones too, in the order of their creation."""
        return list(self._pods.get(owner["metadata"]["uid"], {}).values())

    def _mark(self, plural: str, owner: Json) -> None:
        self._dirty[(plural, (owner["metadata"].get("namespace", ""), owner["metadata"]["name"]))] = None

    def _index(self, pod: Json) -> None:
        owner = controller_of(pod)
        if owner is not None:
            self._pods.setdefault(owner["uid"], {})[pod["metadata"]["uid"]] = pod

    def _note(self, change: Change) -> None:
        if change.plural in _PLURALS:
            if change.type != "DELETED":
                self._mark(change.plural, change.value)
            self._mark_parent(change.value)
        elif change.plural == "pods":
            self._mark_parent(change.value)
            if change.type == "DELETED":
                owner = controller_of(change.value)
                if owner is not None:
                    self._pods.get(owner["uid"], {}).pop(change.value["metadata"]["uid"], None)
            else:
                self._index(change.value)
        elif change.plural == "nodes" and change.type != "MODIFIED":
            for daemon_set in self._world.objects("daemonsets"):
                self._mark("daemonsets", daemon_set)

    def _mark_parent(self, value: Json) -> None:
        owner = controller_of(value)
        if owner is not None and owner["kind"] in BY_KIND and BY_KIND[owner["kind"]].plural in _PLURALS:
            self._dirty[(BY_KIND[owner["kind"]].plural, (value["metadata"]["namespace"], owner["name"]))] = None

    def react(self) -> bool:
        for key in self._jobs.due():
            self._dirty[("jobs", key)] = None
        if not self._dirty:
            return False
        dirty, self._dirty = self._dirty, {}
        before = self._world.version
        syncs: dict[str, Callable[[World, Json, list[Json]], None]] = {
            "replicasets": sync_replica_set,
            "statefulsets": sync_stateful_set,
            "daemonsets": sync_daemon_set,
            "jobs": self._jobs.sync,
        }
        for plural, (namespace, name) in dirty:
            owner = self._world.find(plural, name, namespace)
            if owner is None:
                continue
            if plural == "deployments":
                sync_deployment(self._world, owner)
            else:
                syncs[plural](self._world, owner, self.pods_of(owner))
        return self._world.version != before

    def next_due(self) -> float:
        return self._jobs.next_due()
