"""The admission policy of placement hints on the real API server, and a keeper of hints that a test drives itself."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.watch import Restart
from rebalancer.runtime.hint_keeper import HintKeeper
from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.hinting import GATE, LABEL, Ungated
from tests.e2e.api import Json, Refused, until
from tests.e2e.ground import Ground
from tests.support.embedded import run_command

LEASE = "rebalancer"
FAR_AWAY = "2099-01-01T00:00:00Z"
ENABLED = {"rebalancer.dev/hints": "enabled"}
POLICY_S = 60.0
"""From a new admission policy to its first effect."""


@contextlib.contextmanager
def admission(own: Ground, *, namespace: str) -> Iterator[None]:
    """What `rebalancer policy hints` prints, for a controller in ``namespace``, as long as the block lasts."""
    printed = run_command("policy", "hints", "--namespace", namespace).ended(0).out
    documents: list[Json] = list(yaml.safe_load_all(printed))
    plurals = ("customresourcedefinitions", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    for plural, document in zip(plurals, documents, strict=True):
        own.api.create(plural, document)
    try:
        yield
    finally:
        for plural, document in zip(plurals, documents, strict=True):
            own.api.delete(plural, document["metadata"]["name"])


def announce(own: Ground, awaited: Json, *, namespace: str) -> None:
    """As the leader does; the kind may be a moment old."""
    value = {"kind": "HintAnnouncement", "metadata": {"name": LEASE, "namespace": namespace}, "awaited": awaited}

    def made() -> bool:
        try:
            own.api.create("hintannouncements", value)
        except Refused as error:
            if error.status != 404:
                raise
            return False
        return True

    until(made, "the kind of announcements is known", seconds=POLICY_S)


def announced(own: Ground, *, namespace: str) -> bool:
    return own.api.find("hintannouncements", LEASE, namespace) is not None


def gated(own: Ground, namespace: str = "") -> list[Json]:
    return [pod for pod in own.pods(namespace) if any(each["name"] == GATE for each in pod["spec"].get("schedulingGates") or ())]


def traces(own: Ground) -> list[str]:
    """Pods that carry anything of ours."""
    marked = [pod for pod in own.pods() if LABEL in pod["metadata"].get("labels", {})]
    return sorted({pod["metadata"]["name"] for pod in (*marked, *gated(own))})


@dataclass
class Notes:
    results: Counter[Ungated] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def gated(self) -> None:
        pass

    def ungated(self, result: Ungated, *, since_creation_s: float, since_sight_s: float | None) -> None:
        self.results[result] += 1
        if since_sight_s is not None:
            self.seconds.append(since_sight_s)

    def at_the_gate(self, pods: int) -> None:
        pass

    def restarted(self, resource: str, reason: Restart) -> None:
        pass

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        raise AssertionError(error)

    def defect(self, resource: str, error: Exception) -> None:
        raise AssertionError(error)


@dataclass
class Hinting:
    """A keeper that leads, and what it noted."""

    keeper: HintKeeper
    notes: Notes
    term: Term

    def move(self, pod: Json, nodes: Sequence[str], *, at: float) -> OpenMove:
        """The move of a pod to the first of ``nodes``, as a cycle at ``at`` would have planned it."""
        meta = pod["metadata"]
        owner = meta["ownerReferences"][0]
        eviction = PastEviction(
            at=at,
            pod_uid=meta["uid"],
            namespace=meta["namespace"],
            pod=meta["name"],
            workload=WorkloadRef(owner["kind"], meta["namespace"], owner["name"]),
            controller_uid=owner["uid"],
            tenant=None,
            source=pod["spec"]["nodeName"],
            destination=nodes[0],
        )
        return OpenMove(eviction, tuple(nodes[1:]), predicted_gain=0.0, source_before={}, predicted_source_after={})

    def announce(self, moves: Sequence[OpenMove]) -> None:
        assert self.keeper.announce(moves, deadline=Deadline.after(10)) == ""


@contextlib.contextmanager
def hinting(own: Ground, *, namespace: str) -> Iterator[Hinting]:
    client = KubeClient.connect(kubeconfig=own.plane.kubeconfig, context=None)
    notes, term = Notes(), Term(lambda term: "", reserve_s=0.0)
    keeper = HintKeeper(client, namespace=namespace, lease=LEASE, notes=notes, report=notes)
    keeper.start(lambda: term)
    keeper.follow(hints=True, wait_s=5.0)
    keeper.lead(term)
    keeper.show([], hot=())
    try:
        yield Hinting(keeper, notes, term)
    finally:
        keeper.close(within_s=5.0)
        client.close()


def policy_in_force(own: Ground, sample: Json, *, namespace: str) -> None:
    """Wait until a dry-run pod of an announced controller is gated. ``namespace``: that of our controller."""
    (owner,) = sample["metadata"]["ownerReferences"]
    announce(own, {owner["uid"]: {"until": FAR_AWAY}}, namespace=namespace)
    place = sample["metadata"]["namespace"]
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": place, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }

    def gates() -> bool:
        made = own.api.request("POST", f"api/v1/namespaces/{place}/pods", probe, query={"dryRun": "All"})
        return bool(made["spec"].get("schedulingGates"))

    until(gates, "the admission policy is in force", seconds=POLICY_S)
    own.api.delete("hintannouncements", LEASE, namespace)
    until(lambda: not gates(), "the announcement is forgotten", seconds=POLICY_S)
