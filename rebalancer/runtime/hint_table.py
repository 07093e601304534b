"""The pods that wait at our gate now, kept by a watch of their label: the follower of that watch, and what is known of each pod.

A pod is known until the watch has told that it left. What the watch tells late of one that was let go changes nothing: it would seem to be
at the gate once more, and take the hint of another. One that loses the label with the gate still shut, by whoever's hand, would vanish from
the watch and wait for ever; so a pod that goes and was not let go here is looked at once more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rebalancer.act.ungating import gated_pod
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gates import GatedPodWire, read_gated
from rebalancer.kube.lists import Resource, list_all
from rebalancer.kube.watch import Restart, Start, WatchReport
from rebalancer.kube.watch_events import Absent, News, Odd, Present, version_number
from rebalancer.steer.hinting import GATE, AwaitedMove, GatedPod, Ungated

LIST_S = 10.0
"""Longest time for a list of gated pods."""
AGAIN_S = 1.0
"""From a list that failed, or that no watch can continue, to the next."""
FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 5.0
FORGET_S = 60.0
"""A pod that was let go and never seen to leave the watch is nobody any more."""


@dataclass(slots=True)
class Waiting:
    """A pod at the gate. ``seen_at``: monotonic seconds; ``age_s``: how old it was then, by the API server's clock.

    ``result``: decided. ``busy``: a thread is at it. ``over_at``: monotonic seconds, when it was let go or found to be gone.
    """

    pod: GatedPod
    seen_at: float
    age_s: float
    result: Ungated | None = None
    node: str = ""
    move: AwaitedMove | None = None
    busy: bool = False
    over_at: float | None = None
    failures: int = 0
    not_before: float = 0.0

    def waited_s(self, now: float) -> float:
        return self.age_s + now - self.seen_at


class GatedTable:
    """Serves a `kube.watch.Watch` as its follower. ``arrived`` hears the key of each pod that is new, from the thread of the watch.

    ``server_now``: unix seconds by the API server's clock; None while it is unknown.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[GatedPodWire],
        *,
        report: WatchReport,
        arrived: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._resource, self._report = client, resource, report
        self._arrived, self._clock = arrived, clock
        self._lock = threading.Lock()
        self._pods: dict[str, Waiting] = {}
        self._told: int | None = None

    def __len__(self) -> int:
        """How many pods wait."""
        with self._lock:
            return sum(each.over_at is None for each in self._pods.values())

    def due(self, *, limit_s: float, undecided: bool) -> list[str]:
        """Keys of the pods that something is to be done about now. ``undecided``: also those that wait for less than ``limit_s``."""
        now = self._clock()
        with self._lock:
            for key in [key for key, each in self._pods.items() if each.over_at is not None and now - each.over_at > FORGET_S]:
                del self._pods[key]
            return [
                key
                for key, each in self._pods.items()
                if not each.busy
                and each.over_at is None
                and now >= each.not_before
                and (undecided or each.result is not None or each.waited_s(now) >= limit_s)
            ]

    def begin(self, key: str) -> Waiting | None:
        """The pod, which is this thread's until `end`; None when it is gone, or another thread is at it."""
        with self._lock:
            found = self._pods.get(key)
            if found is None or found.busy or found.over_at is not None:
                return None
            found.busy = True
            return found

    def end(self, waiting: Waiting, *, over: bool) -> None:
        with self._lock:
            waiting.busy = False
            if over:
                waiting.over_at = self._clock()

    def failed(self, waiting: Waiting) -> None:
        """What was decided could not be carried out: again after a while."""
        waiting.failures += 1
        waiting.not_before = self._clock() + min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(waiting.failures - 1, 8))

    # ---- for the watch ------------------------------------------------------------------------------------------------

    def start(self, stop: threading.Event) -> Start | None:
        while not stop.is_set():
            if self._told is not None:
                return Start(self._told, term=1)
            try:
                self._list(stop)
            except KubernetesError as error:
                if error.status == 403:
                    self._report.forbidden(self._resource.name, error)
            except Exception as error:  # whatever it is, a thread that dies would leave pods waiting
                self._report.defect(self._resource.name, error)
            if self._told is None:
                stop.wait(AGAIN_S)
        return None

    def opened(self, start: Start) -> None:
        pass

    def take(self, news: Sequence[News[GatedPodWire]], start: Start) -> bool:
        for each in news:
            if isinstance(each, Present):
                self._saw(each.item)
            elif isinstance(each, Absent):
                self._lost(each.key)
            elif isinstance(each, Odd):
                self._look_again(each.key)
            self._told = each.version
        return True

    def closed(self, start: Start, reason: Restart) -> None:
        if reason in (Restart.EXPIRED, Restart.FORBIDDEN):
            self._told = None

    def _list(self, stop: threading.Event) -> None:
        listed = list_all(self._client, self._resource, deadline=Deadline.after(LIST_S, stop=stop))
        seen = {gated_pod(item).key for item in listed.items}
        with self._lock:
            lost = [key for key, each in self._pods.items() if key not in seen and each.over_at is None]
        for item in listed.items:
            self._saw(item)
        for key in (*lost, *listed.odd_keys):
            self._look_again(key)
        self._told = version_number(listed.resource_version)

    def _saw(self, wire: GatedPodWire) -> None:
        pod, now = gated_pod(wire), self._clock()
        server_now = self._client.server_now
        age_s = 0.0 if server_now is None else max(0.0, server_now - pod.created_at)
        with self._lock:
            known = self._pods.get(pod.key)
            if known is not None and known.pod.uid == pod.uid:
                return
            self._pods[pod.key] = Waiting(pod, seen_at=now, age_s=age_s)
        self._arrived(pod.key)

    def _lost(self, key: str) -> None:
        with self._lock:
            known = self._pods.get(key)
            if known is None or known.over_at is not None:
                self._pods.pop(key, None)
                return
            if known.busy:
                return  # it is let go right now, or whoever is at it finds it gone
        self._look_again(key)

    def _look_again(self, key: str) -> None:
        """Is the pod really gone from the gate? When that cannot be told it stays, and whoever tries to let it go will find out."""
        namespace, _, name = key.rpartition("/")
        try:
            found = read_gated(self._client, namespace=namespace, name=name, deadline=Deadline.after(LIST_S))
        except KubernetesError:
            return
        if found is not None and found.held_by(GATE):
            self._saw(found)
            return
        with self._lock:
            known = self._pods.get(key)
            if known is not None and not known.busy:
                del self._pods[key]
