"""Hollow nodes: a test kubelet for many nodes at once. It runs nothing, but keeps the promises of a kubelet to the API server.

It registers nodes, marks pods that are bound to them Running and Ready after a short start, completes those that are to complete, and
ends deleted ones after their grace. One thread watches, one acts at the due time; both outlive a restart of the API server. What runs is
told to the `Ledger`, from which the exporters make their series.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

import urllib3

from rebalancer.units import parse_quantity
from tests.e2e.api import STRATEGIC, Api, Json, Refused
from tests.e2e.load import Ledger, LoadModel, Machine

HOLLOW = "e2e.rebalancer.dev/hollow"
"""Label of hollow nodes."""
COMPLETES_AFTER = "e2e.rebalancer.dev/completes-after"
"""Annotation of a pod: seconds after which its containers end well."""
NEVER_READY = "e2e.rebalancer.dev/never-ready"
"""Annotation of a pod that runs and does not become ready."""
ENDS_AFTER = "e2e.rebalancer.dev/ends-after"
"""Annotation of a pod: seconds that it takes to end, instead of its grace period cut to `GRACE_CAP_S`."""
NOT_READY = "node.kubernetes.io/not-ready"
GRACE_CAP_S = 2.0
RETRY_S = 0.5
WATCH_S = 4
"""Length of one watch: as long as the end of the tests may have to wait for it."""
LEASE_S = 10.0


@dataclass(frozen=True)
class HollowNode:
    name: str
    cpu: int = 4
    memory: str = "16Gi"
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    extended: Mapping[str, str] = field(default_factory=dict)
    """Extended resource -> amount."""

    def manifest(self, number: int) -> Json:
        amounts = {"cpu": str(self.cpu), "memory": self.memory, "pods": str(self.pods), "ephemeral-storage": "100Gi", **self.extended}
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", HOLLOW: "true", **self.labels}
        return {
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"taints": [dict(taint) for taint in self.taints]} if self.taints else {},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "addresses": [{"type": "InternalIP", "address": address(number)}, {"type": "Hostname", "address": self.name}],
                "conditions": [_condition("Ready", "True", reason="HollowKubeletReady", lastHeartbeatTime=_now())],
                "nodeInfo": dict.fromkeys(_NODE_INFO, "hollow"),
            },
        }

    def machine(self, number: int) -> Machine:
        return Machine(name=self.name, address=address(number), cores=self.cpu, memory_bytes=float(parse_quantity(self.memory)))


def address(number: int) -> str:
    return f"10.77.{number // 250}.{number % 250 + 1}"


class HollowNodes:
    """A context manager: registers on the way in, deletes the nodes on the way out."""

    def __init__(
        self, api: Api, nodes: Sequence[HollowNode], *, load: LoadModel | None = None, start_s: float = 1.0, heartbeats: bool = False
    ) -> None:
        """``start_s``: from bound to ready. ``heartbeats``: renew Leases, for clusters whose controllers watch nodes."""
        self.nodes = tuple(nodes)
        self.ledger = Ledger((node.machine(number) for number, node in enumerate(nodes)), load or LoadModel())
        self.start_s = start_s
        self._api = api
        self._heartbeats = heartbeats
        self._names = {node.name for node in nodes}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._handled: dict[str, set[str]] = {}
        """uid -> what has been scheduled for the pod, so that each is done once."""
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=run, name=f"hollow-{run.__name__}", daemon=True) for run in (self._watch, self._act)]

    def __enter__(self) -> HollowNodes:
        for number, node in enumerate(self.nodes):
            register(self._api, node, number)
        if self._heartbeats:
            self._later(0.0, self._renew_leases)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        with self._wake:
            self._wake.notify()
        for name in sorted(self._names):
            self._api.delete("nodes", name)
        for thread in self._threads:
            thread.join(15)

    # ---- watching -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(Refused, urllib3.exceptions.HTTPError, ValueError):
                self._list_and_follow()
            self._stopped.wait(RETRY_S)

    def _list_and_follow(self) -> None:
        listed = self._api.request("GET", "api/v1/pods")
        seen = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in set(self._handled) - seen:
            self._gone(uid)
        for pod in listed["items"]:
            self._seen(pod)
        since = listed["metadata"]["resourceVersion"]
        while since and not self._stopped.is_set():
            since = self._follow(since)

    def _follow(self, since: str) -> str:
        """One watch; where the next one goes on, or empty when only a new list helps."""
        for event in self._api.watch("pods", since=since, seconds=WATCH_S, stop=self._stopped.is_set):
            if event["type"] == "ERROR":
                return ""
            since = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self._gone(event["object"]["metadata"]["uid"])
            elif event["type"] in ("ADDED", "MODIFIED"):
                self._seen(event["object"])
        return since

    def _seen(self, pod: Json) -> None:
        if pod["spec"].get("nodeName") not in self._names:
            return
        meta, phase = pod["metadata"], pod.get("status", {}).get("phase", "Pending")
        if phase in ("Succeeded", "Failed"):
            self.ledger.ends(meta["uid"])
        elif phase == "Running":
            self.ledger.starts(pod)
        if meta.get("deletionTimestamp"):
            self._once("end", pod, _grace(pod), lambda: self._end(pod))
        elif phase == "Pending":
            self._once("start", pod, self.start_s, lambda: self._start(pod))
        elif phase == "Running" and (after := _note(pod, COMPLETES_AFTER)):
            self._once("complete", pod, float(after), lambda: self._complete(pod))

    def _gone(self, uid: str) -> None:
        self.ledger.ends(uid)
        self._handled.pop(uid, None)

    def _once(self, what: str, pod: Json, after_s: float, then: Callable[[], None]) -> None:
        handled = self._handled.setdefault(pod["metadata"]["uid"], set())
        if what not in handled:
            handled.add(what)
            self._later(after_s, then)

    # ---- acting -------------------------------------------------------------------------------------------------------

    def _later(self, after_s: float, then: Callable[[], None]) -> None:
        with self._wake:
            heapq.heappush(self._due, (time.monotonic() + after_s, next(self._numbers), then))
            self._wake.notify()

    def _act(self) -> None:
        while not self._stopped.is_set():
            with self._wake:
                wait_s = self._due[0][0] - time.monotonic() if self._due else 1.0
                if wait_s > 0:
                    self._wake.wait(min(wait_s, 1.0))
                    continue
                _, _, then = heapq.heappop(self._due)
            try:
                then()
            except Refused as error:
                if error.status not in (404, 409, 422):  # the pod is gone, or another one has its name
                    self._later(RETRY_S, then)
            except urllib3.exceptions.HTTPError:
                self._later(RETRY_S, then)

    def _start(self, pod: Json) -> None:
        ready = "False" if _note(pod, NEVER_READY) else "True"
        started = {"running": {"startedAt": _now()}}
        conditions = [_condition(kind, ready) for kind in ("ContainersReady", "Ready")]
        self._say(
            pod,
            {
                "phase": "Running",
                "startTime": _now(),
                "hostIP": self.ledger.machines[pod["spec"]["nodeName"]].address,
                "conditions": [*(_condition(kind, "True") for kind in ("PodReadyToStartContainers", "Initialized")), *conditions],
                "containerStatuses": [_container(each, ready == "True", started) for each in pod["spec"]["containers"]],
            },
        )

    def _complete(self, pod: Json) -> None:
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": _now(), "startedAt": _now()}}
        conditions = [_condition(kind, "False", reason="PodCompleted") for kind in ("ContainersReady", "Ready")]
        containers = [_container(each, False, ended) for each in pod["spec"]["containers"]]
        self._say(pod, {"phase": "Succeeded", "conditions": conditions, "containerStatuses": containers})

    def _end(self, pod: Json) -> None:
        meta = pod["metadata"]
        self._api.delete("pods", meta["name"], meta["namespace"], grace_s=0, uid=meta["uid"])

    def _say(self, pod: Json, status: Json) -> None:
        """The uid makes the server refuse when the name belongs to a successor by now."""
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        self._api.patch("pods", meta["name"], body, meta["namespace"], part="status", content_type=STRATEGIC)

    def _renew_leases(self) -> None:
        self._later(LEASE_S, self._renew_leases)
        for name in sorted(self._names):
            renew_lease(self._api, name)


def register(api: Api, node: HollowNode, number: int) -> None:
    """Create the node, and take away the taint that the API server gives every new one. A leftover of an earlier run is replaced."""
    there = api.find("nodes", node.name)
    if there is not None:
        assert HOLLOW in there["metadata"].get("labels", {}), f"the cluster has a real node {node.name}; it must not be replaced"
        api.delete("nodes", node.name)
    api.create("nodes", node.manifest(number))
    for _ in range(10):
        taints = [taint for taint in api.get("nodes", node.name)["spec"].get("taints") or () if taint["key"] != NOT_READY]
        try:
            api.patch("nodes", node.name, {"spec": {"taints": taints or None}})
        except Refused as error:
            if error.status != 409:
                raise
        else:
            return
    raise AssertionError(f"node {node.name} was changed by others all the time")


def renew_lease(api: Api, node: str) -> None:
    spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    try:
        api.patch("leases", node, {"spec": spec}, "kube-node-lease")
    except Refused as error:
        if error.status != 404:
            raise
        api.create("leases", {"kind": "Lease", "metadata": {"name": node, "namespace": "kube-node-lease"}, "spec": spec})


_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(kind: str, status: str, **more: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": _now(), **more}


def _container(container: Json, ready: bool, state: Json) -> Json:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "hollow://image",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _note(pod: Json, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))


def _grace(pod: Json) -> float:
    said = _note(pod, ENDS_AFTER)
    return float(said) if said else min(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0), GRACE_CAP_S)
