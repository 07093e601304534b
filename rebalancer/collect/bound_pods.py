"""Pods just bound, whose load the measured means do not hold yet.

A list of all pods of a large cluster is hundreds of megabytes, of which a handful was bound in the last minutes, and two replicas of the
extender would read it at every start. So none is read: a list of one object says from which version to watch, and only what the watch
tells from there on is known. What is missed by that is little and soon over. A pod that was bound shortly before still changes its status
while it starts, and each such change carries the moment of its binding, which is what counts here. One that had come to rest already, but
less than a window ago, is not anticipated: its load is missing from a mean for some minutes, as it is for every scheduler without
anticipation. The same holds when a watch has lost its version.

A pod is forgotten when it is gone or has ended, when the mean of its node holds it (`BoundPods.forget`), when it is old, and when there
are more than ``most``: the oldest goes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.resources import BOUND_PODS
from rebalancer.kube.retries import Backoff
from rebalancer.kube.versions import version_now
from rebalancer.kube.watch import Restart, Start
from rebalancer.kube.watch_events import News, Present, Progress
from rebalancer.kube.wire_steering import BoundContainerWire, BoundMetaWire, BoundPodWire
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.requests import Amounts, ContainerRequest, PodRequest, amounts, in_units, scored_request
from rebalancer.steer.extender_wire import is_gpu
from rebalancer.steer.lineage import lineage
from rebalancer.steer.own_annotation import SIGNALS
from rebalancer.steer.reservations import Arrival

_ENDED = ("Succeeded", "Failed")
_ASK_S = 30.0
_NOTHING: Amounts = {}


@dataclass(frozen=True, slots=True)
class Bound:
    """``use``: what it is expected to use, by `SIGNALS`, in the signals' units; NaN unknown."""

    key: str
    uid: str
    node: str
    at: float
    use: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """``names`` of nodes, ``at`` (pods,) Unix seconds, ``use`` (pods, `SIGNALS`); the keys are for `BoundPods.forget`."""

    keys: Sequence[str]
    names: Sequence[str]
    at: FloatArray
    use: FloatArray


class BoundPods:
    """The follower of a watch of `BOUND_PODS`. ``now``: Unix seconds; ``troubled`` is told why the watch cannot begin."""

    def __init__(
        self,
        client: KubeClient,
        *,
        now: Callable[[], float],
        keep_s: float,
        most: int = 50_000,
        troubled: Callable[[KubernetesError], None] = lambda error: None,
        backoff: Backoff | None = None,
    ) -> None:
        self._client, self._now, self._keep_s, self._most, self._troubled = client, now, keep_s, most, troubled
        self._backoff = backoff or Backoff(first_s=1.0, ceiling_s=30.0)
        self._lock = threading.Lock()
        self._pods: dict[str, Bound] = {}
        self._arrivals: list[Arrival] = []
        self._version: int | None = None
        self._changes = 0
        self._columns: tuple[int, BoundColumns] | None = None
        self._opened = False

    def __len__(self) -> int:
        with self._lock:
            return len(self._pods)

    @property
    def watching(self) -> bool:
        """Whether a watch has been open since the last one failed."""
        return self._opened

    # ---- for the watch ------------------------------------------------------------------------------------------------

    def start(self, stop: threading.Event) -> Start | None:
        failures = 0
        while not stop.is_set():
            if self._version is not None:
                return Start(version=self._version, term=1)
            try:
                self._version = version_now(self._client, BOUND_PODS, deadline=Deadline.after(_ASK_S, stop=stop))
            except Interrupted:
                return None
            except KubernetesError as error:
                self._troubled(error)
                failures += 1
                stop.wait(self._backoff.delay(failures, chance=0.5))
        return None

    def opened(self, start: Start) -> None:
        self._opened = True

    def take(self, news: Sequence[News[BoundPodWire]], start: Start) -> bool:
        oldest = self._now() - self._keep_s
        with self._lock:
            for each in news:
                self._version = each.version
                if isinstance(each, Progress):
                    continue
                if isinstance(each, Present):
                    self._note(each.key, each.item, oldest=oldest)
                else:
                    self._drop(each.key)
        return True

    def closed(self, start: Start, reason: Restart) -> None:
        self._opened = reason is Restart.ENDED
        if reason in (Restart.EXPIRED, Restart.FORBIDDEN):
            self._version = None

    # ---- for the reader -----------------------------------------------------------------------------------------------

    def arrivals(self) -> list[Arrival]:
        """Pods with a controller that came since the last call."""
        with self._lock:
            came, self._arrivals = self._arrivals, []
        return came

    def columns(self) -> BoundColumns:
        """All that are remembered; the same object as before when nothing has changed."""
        with self._lock:
            if self._columns is None or self._columns[0] != self._changes:
                self._columns = (self._changes, _columns(self._pods.values()))
            return self._columns[1]

    def forget(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._drop(key)

    def expect(self, uses: Mapping[str, Mapping[str, float]]) -> None:
        """What pods are known to use better than by their request: uid -> signal -> use. What is not given stays."""
        with self._lock:
            found = [pod for pod in self._pods.values() if pod.uid in uses] if uses else ()
            for pod in found:
                use = tuple(uses[pod.uid].get(name, guessed) for name, guessed in zip(SIGNALS, pod.use, strict=True))
                self._pods[pod.key] = Bound(pod.key, pod.uid, pod.node, pod.at, use)
                self._changes += 1

    def _note(self, key: str, pod: BoundPodWire, *, oldest: float) -> None:
        node, uid = pod.spec.node_name, pod.metadata.uid
        known = self._pods.get(key)
        if not node or pod.status.phase in _ENDED:
            self._drop(key)
            return
        if known is not None and known.uid == uid:
            return
        told = pod.bound_at
        at = self._now() if told is None else told
        self._drop(key)
        if at < oldest:
            return
        self._pods[key] = Bound(key, uid, node, at, _expected_use(pod))
        self._changes += 1
        for gone in list(islice(self._pods, max(0, len(self._pods) - self._most))):
            self._drop(gone)
        arrival = _arrival(pod.metadata, node=node, at=at)
        if arrival is not None:
            self._arrivals.append(arrival)
            del self._arrivals[: -self._most]

    def _drop(self, key: str) -> None:
        if self._pods.pop(key, None) is not None:
            self._changes += 1


def settled(
    columns: BoundColumns, *, row: IntArray, measured_at: FloatArray, window_s: float, oldest: float, wanted_since: float
) -> list[str]:
    """Keys of the pods that need not be remembered any more: the mean of their node holds them whole, or they are older than ``oldest``.

    ``row`` (pods,) of the node, -1 unknown; ``measured_at`` (nodes,): end of the window of the node's means, NaN unknown. Pods bound after
    ``wanted_since`` stay for those who count them.
    """
    measured = np.append(measured_at, np.nan)[row]
    with np.errstate(invalid="ignore"):
        done = (columns.at < oldest) | ((measured >= columns.at + window_s) & (columns.at < wanted_since))
    return [columns.keys[place] for place in np.flatnonzero(done).tolist()]


def _columns(pods: Collection[Bound]) -> BoundColumns:
    return BoundColumns(
        keys=[pod.key for pod in pods],
        names=[pod.node for pod in pods],
        at=np.fromiter((pod.at for pod in pods), dtype=np.float64, count=len(pods)),
        use=np.array([pod.use for pod in pods], dtype=np.float64).reshape(len(pods), len(SIGNALS)),
    )


def _arrival(meta: BoundMetaWire, *, node: str, at: float) -> Arrival | None:
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    if owner is None:
        return None
    whose = lineage(
        uid=meta.uid,
        namespace=meta.namespace,
        kind=owner.kind,
        name=owner.name,
        controller_uid=owner.uid,
        labels=meta.labels or {},
    )
    return Arrival(whose, node, at)


def _expected_use(pod: BoundPodWire) -> tuple[float, ...]:
    """Its request, as kube-scheduler's scores count it: a container that asks for nothing is taken to use a little. A GPU's use nobody
    asks for in numbers, and a request that cannot be read is unknown."""
    spec = pod.spec
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    try:
        asked = scored_request(
            PodRequest(
                containers=tuple(_container(each) for each in spec.containers or ()),
                init_containers=tuple(_container(each) for each in spec.init_containers or ()),
                overhead=amounts(spec.overhead),
                level=amounts(spec.resources.requests) if spec.resources is not None and spec.resources.requests else None,
            )
        )
    except (ValueError, OverflowError):
        return (np.nan,) * len(SIGNALS)
    names = {name for each in containers if each.resources is not None for name in each.resources.requests or ()}
    gpu = np.nan if any(map(is_gpu, names)) else 0.0
    return tuple(in_units(name, asked[name]) if name in asked else gpu for name in SIGNALS)


def _container(wire: BoundContainerWire) -> ContainerRequest:
    request = amounts(wire.resources.requests) if wire.resources is not None else _NOTHING
    return ContainerRequest(request=request, sidecar=wire.restart_policy == "Always")
