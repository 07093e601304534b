"""A store of pods and registers in memory, with the preconditions of an API server, that can be made to fail at every single request.

A replica is a book and a binder over it. Whatever it asks passes a `Gate`, which may let others act first, refuse, do what was asked and
lose the answer, keep a binding on its way for later, or end the replica on the spot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesNotFound, KubernetesUnreachable
from rebalancer.kube.binding import Binding, BindingOutcome
from rebalancer.kube.configmaps import StoredMap
from rebalancer.kube.failures import NotSent
from rebalancer.kube.gpu_sharing import (
    GpuAnnotationsWire,
    GpuContainerWire,
    GpuLimitsWire,
    GpuPodMetaWire,
    GpuPodSpecWire,
    GpuPodStatusWire,
    GpuPodWire,
    GpuResourcesWire,
)
from rebalancer.kube.lists import Listed
from rebalancer.kube.retries import Backoff
from rebalancer.runtime.gpushare.binder import Binder, BindResult
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.facts import GpuNode, kept_pod
from rebalancer.runtime.gpushare.sinks import PodSink
from rebalancer.steer.gpushare.allocations import INDEX, OF_POD
from rebalancer.steer.gpushare.binding import BindArgs
from rebalancer.steer.gpushare.devices import Devices
from tests.gpushare.kit import NOW

AT_ONCE = Backoff(first_s=0.0, ceiling_s=0.0, attempts=24)


class Crash(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class StoredPod:
    uid: str
    name: str
    ask: int
    version: int
    node: str = ""
    device: str = ""
    amount: str = ""
    phase: str = "Pending"
    leaving: bool = False

    def wire(self) -> GpuPodWire:
        annotations = GpuAnnotationsWire(index=self.device or None, of_pod=self.amount or None)
        return GpuPodWire(
            metadata=GpuPodMetaWire(
                name=self.name,
                namespace="a",
                uid=self.uid,
                resource_version=str(self.version),
                deletion_timestamp="2026-01-02T03:04:05Z" if self.leaving else None,
                annotations=annotations,
            ),
            spec=GpuPodSpecWire(
                node_name=self.node or None, containers=(GpuContainerWire(GpuResourcesWire(GpuLimitsWire(str(self.ask)))),)
            ),
            status=GpuPodStatusWire(self.phase),
        )

    @property
    def holds(self) -> bool:
        return bool(self.node) and self.phase not in ("Succeeded", "Failed")


@dataclass
class Store:
    """The truth. ``each``: memory of a device, of which every node has ``devices``."""

    devices: int = 2
    each: int = 100
    nodes: tuple[str, ...] = ("n",)
    now: float = NOW
    version: int = 1000
    pods: dict[str, StoredPod] = field(default_factory=dict)
    registers: dict[str, StoredMap] = field(default_factory=dict)
    limbo: list[Callable[[], None]] = field(default_factory=list)
    """Bindings that are still on their way."""
    news: list[tuple[str, str, int, GpuPodWire | None]] = field(default_factory=list)
    """(key, name, version, pod or None) of every change of a pod."""
    requests: Counter[str] = field(default_factory=Counter)

    def next(self) -> int:
        self.version += 1
        return self.version

    def create(self, name: str, ask: int) -> StoredPod:
        version = self.next()
        return self._put(StoredPod(uid=f"u{version}", name=name, ask=ask, version=version))

    def change(self, name: str, **fields: object) -> None:
        """Any write to a pod; it has a new version then."""
        self._put(replace(self.pods[name], version=self.next(), **fields))  # type: ignore[arg-type]

    def delete(self, name: str) -> None:
        self.pods.pop(name)
        self.news.append((f"a/{name}", name, self.next(), None))

    def _put(self, pod: StoredPod) -> StoredPod:
        self.pods[pod.name] = pod
        self.news.append((f"a/{pod.name}", pod.name, pod.version, pod.wire()))
        self.check()
        return pod

    def used(self, node: str, device: int) -> int:
        return sum(pod.ask for pod in self.pods.values() if pod.holds and pod.node == node and pod.device == str(device))

    def check(self) -> None:
        """No device over its memory, ever."""
        for node in self.nodes:
            for device in range(self.devices):
                assert self.used(node, device) <= self.each, (node, device, self.pods)

    # ---- what an API server does --------------------------------------------------------------------------------------

    def bind(self, *, name: str, uid: str, version: str, node: str, annotations: Mapping[str, str]) -> Binding:
        pod = self.pods.get(name)
        if pod is None:
            return Binding(BindingOutcome.GONE, "not found")
        if pod.uid != uid or str(pod.version) != version or pod.node or pod.leaving:
            return Binding(BindingOutcome.CONFLICT, "the pod is another one")
        self.change(name, node=node, device=annotations[INDEX], amount=annotations[OF_POD])
        return Binding(BindingOutcome.BOUND)

    def write(self, node: str, data: Mapping[str, str], previous: StoredMap | None) -> StoredMap:
        stored = self.registers.get(node)
        if previous is None and stored is not None:
            raise KubernetesConflict("it exists already")
        if previous is not None and stored is None:
            raise KubernetesNotFound("it is gone")
        if previous is not None and stored is not None and previous.resource_version != stored.resource_version:
            raise KubernetesConflict("somebody else has written")
        fresh = StoredMap("ns", f"register-{node}", dict(data), str(self.next()), {})
        self.registers[node] = fresh
        return fresh

    def listed(self, node: str) -> Listed[GpuPodWire]:
        items = [pod.wire() for pod in self.pods.values() if pod.node == node]
        return Listed(name="pods", items=items, resource_version=str(self.version), odd=Counter())


Gate = Callable[[str], str]
"""Asked before each request by its kind; answers ``pass``, ``refuse``, ``silent`` (not done, no answer), ``lost`` (done, no answer),
``late`` (no answer, and done at any later time) or ``crash`` (done, and the replica is gone)."""


@dataclass
class GatedApi:
    """`ShareApi` over a store."""

    store: Store
    gate: Gate

    def _through(self, kind: str, act: Callable[[], object]) -> object:
        verdict = self.gate(kind)
        self.store.requests[kind] += 1
        if verdict == "refuse":
            raise NotSent("not sent")
        if verdict == "silent":
            raise KubernetesUnreachable("no answer")
        if verdict == "late":
            self.store.limbo.append(lambda: act() and None)
            raise KubernetesUnreachable("no answer")
        found = act()
        if verdict == "lost":
            raise KubernetesUnreachable("no answer")
        if verdict == "crash":
            raise Crash
        return found

    def read_pod(self, *, namespace: str, name: str, deadline: Deadline) -> GpuPodWire | None:
        def act() -> GpuPodWire | None:
            pod = self.store.pods.get(name)
            return None if pod is None else pod.wire()

        return self._through("read", act)  # type: ignore[return-value]

    def pods_on(self, node: str, *, deadline: Deadline) -> Listed[GpuPodWire]:
        return self._through("read", lambda: self.store.listed(node))  # type: ignore[return-value]

    def read_register(self, node: str, *, deadline: Deadline) -> StoredMap | None:
        return self._through("read", lambda: self.store.registers.get(node))  # type: ignore[return-value]

    def write_register(self, node: str, data: Mapping[str, str], *, previous: StoredMap | None, deadline: Deadline) -> StoredMap:
        return self._through("write", lambda: self.store.write(node, data, previous))  # type: ignore[return-value]

    def registers(self, *, deadline: Deadline) -> list[StoredMap]:
        return self._through("read", lambda: list(self.store.registers.values()))  # type: ignore[return-value]

    def delete_register(self, stored: StoredMap, *, deadline: Deadline) -> None:
        def act() -> None:
            node = stored.data["node"]
            if node not in self.store.registers:
                raise KubernetesNotFound("it is gone")
            if self.store.registers[node].resource_version != stored.resource_version:
                raise KubernetesConflict("somebody has written")
            del self.store.registers[node]

        self._through("write", act)

    def bind(
        self, *, namespace: str, name: str, uid: str, version: str, node: str, annotations: Mapping[str, str], deadline: Deadline
    ) -> Binding:
        try:
            return self._through(  # type: ignore[return-value]
                "bind", lambda: self.store.bind(name=name, uid=uid, version=version, node=node, annotations=annotations)
            )
        except NotSent:
            return Binding(BindingOutcome.REFUSED, "not sent")
        except KubernetesUnreachable:
            return Binding(BindingOutcome.OPEN, "no answer")

    def overtake(self, *, namespace: str, name: str, version: str, deadline: Deadline) -> bool:
        def act() -> bool:
            pod = self.store.pods.get(name)
            if pod is None or str(pod.version) != version:
                return False
            self.store.change(name)
            return True

        return self._through("overtake", act)  # type: ignore[return-value]


class Replica:
    """One process. Its watch lags behind the store by what it has not been told yet."""

    def __init__(self, store: Store, gate: Gate = lambda kind: "pass") -> None:
        self.store, self.gate = store, gate
        self.start()

    def start(self) -> None:
        """With nothing in memory, from a list."""
        self.book = ShareBook()
        self.sink = PodSink(self.book)
        for node in self.store.nodes:
            self.book.take_node(node, GpuNode(node, Devices(self.store.devices, self.store.devices * self.store.each)))
        self.relist()
        self.binder = Binder(
            GatedApi(self.store, self.pass_gate),
            self.book,
            now=lambda: self.store.now,
            clock=lambda: 0.0,
            chance=lambda: 0.0,
            race=AT_ONCE,
        )

    def pass_gate(self, kind: str) -> str:
        """Whatever gate there is at the moment."""
        return self.gate(kind)

    def relist(self) -> None:
        found = [kept_pod(pod.wire()) for pod in self.store.pods.values()]
        self.book.replace_pods({pod.key: pod for pod in found if pod is not None}, version=self.store.version, odd={})
        self.told = len(self.store.news)

    def hear(self, most: int, *, lose: bool = False) -> None:
        """So many news of the watch, or all but those that are lost on the way."""
        for key, _, version, wire in self.store.news[self.told : self.told + most]:
            if not lose and wire is None:
                self.sink.absent(key, version)
            elif not lose and wire is not None:
                self.sink.present(key, version, wire)
        self.told = min(len(self.store.news), self.told + most)

    def bind(self, name: str, node: str = "n", *, uid: str = "") -> BindResult:
        pod = self.store.pods.get(name)
        return self.binder.bind(BindArgs("a", name, uid or (pod.uid if pod else "gone"), node))
