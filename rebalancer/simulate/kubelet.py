"""The kubelets of all nodes: bound pods start and become Ready after a while, terminating pods go when they have shut down.

Start-up times come from the world's generator. A pod asks for others with the annotations `STARTUP` and `SHUTDOWN` (seconds): slow
starters and pods that use their whole grace period are what makes evictions costly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import ceil

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import TERMINAL, is_ready, is_terminating, phase
from rebalancer.simulate.world import Change, World
from rebalancer.units import format_time, parse_time

STARTUP = "simulate.rebalancer.dev/startup-seconds"
SHUTDOWN = "simulate.rebalancer.dev/shutdown-seconds"
_STARTUP_RANGE_S = (6.0, 18.0)
_SHUTDOWN_S = 4.0


def running_status(pod: Json, now: float, *, host_ip: str, pod_ip: str) -> Json:
    """The status of a pod whose containers all run and are ready since ``now``."""
    since = format_time(now)
    conditions = [{"type": name, "status": "True", "lastTransitionTime": since} for name in ("Initialized", "ContainersReady", "Ready")]
    kept = [c for c in pod.get("status", {}).get("conditions") or () if c["type"] not in ("Initialized", "ContainersReady", "Ready")]
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }
        for container in pod["spec"].get("containers") or ()
    ]
    return {
        **pod.get("status", {}),
        "phase": "Running",
        "startTime": pod.get("status", {}).get("startTime", since),
        "hostIP": host_ip,
        "podIP": pod_ip,
        "conditions": [*kept, *conditions],
        "containerStatuses": containers,
    }


class Kubelet:
    """Starts and ends pods when their time has come."""

    def __init__(self, world: World, *, startup_s: Callable[[], float] | None = None) -> None:
        self._world = world
        self._startup_s = startup_s or (lambda: world.random.uniform(*_STARTUP_RANGE_S))
        self._due: list[tuple[float, int, str, str, str]] = []
        self._starting: set[str] = set()
        self._ending: dict[str, float] = {}
        self._count = 0
        for pod in world.objects("pods"):
            self._consider(pod)
        world.subscribe(self._note)

    def _note(self, change: Change) -> None:
        if change.plural != "pods":
            return
        if change.type == "DELETED":
            uid = change.value["metadata"]["uid"]
            self._starting.discard(uid)
            self._ending.pop(uid, None)
        else:
            self._consider(change.value)

    def _consider(self, pod: Json) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        if is_terminating(pod):
            latest = parse_time(metadata["deletionTimestamp"])
            wanted = float((metadata.get("annotations") or {}).get(SHUTDOWN, _SHUTDOWN_S))
            due = min(latest, max(self._world.now, latest - int(metadata["deletionGracePeriodSeconds"])) + wanted)
            if self._ending.get(uid, float("inf")) > due:
                self._ending[uid] = due
                self._push(due, "end", pod)
        elif pod["spec"].get("nodeName") and phase(pod) == "Pending" and uid not in self._starting:
            self._starting.add(uid)
            asked = (metadata.get("annotations") or {}).get(STARTUP)
            self._push(self._world.now + (self._startup_s() if asked is None else float(asked)), "start", pod)

    def _push(self, due: float, what: str, pod: Json) -> None:
        self._count += 1
        due = ceil(due)  # times in the API are whole seconds
        heapq.heappush(self._due, (due, self._count, what, pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def react(self) -> bool:
        acted = False
        while self._due and self._due[0][0] <= self._world.now:
            _, _, what, namespace, name = heapq.heappop(self._due)
            pod = self._world.find("pods", name, namespace)
            if pod is None:
                continue
            if what == "end":
                due = self._ending.get(pod["metadata"]["uid"])
                if due is not None and due <= self._world.now:
                    self._world.remove("pods", name, namespace)
                    acted = True
            elif phase(pod) == "Pending" and not is_terminating(pod) and pod["metadata"]["uid"] in self._starting:
                self._starting.discard(pod["metadata"]["uid"])
                self._world.replace("pods", self._started(pod))
                acted = True
        return acted

    def _started(self, pod: Json) -> Json:
        node = self._world.find("nodes", pod["spec"]["nodeName"])
        addresses = (node or {}).get("status", {}).get("addresses") or ()
        host_ip = next((a["address"] for a in addresses if a["type"] == "InternalIP"), "")
        number = self._world.version
        return {
            **pod,
            "status": running_status(
                pod, self._world.now, host_ip=host_ip, pod_ip=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            ),
        }

    def next_due(self) -> float:
        return self._due[0][0] if self._due else float("inf")


def set_ready(world: World, pod: Json, ready: bool) -> Json:
    """Let a pod's readiness probe fail or recover; returns the stored pod."""
    if is_ready(pod) == ready or phase(pod) in TERMINAL:
        return pod
    since = format_time(world.now)
    conditions = [
        {**c, "status": "True" if ready else "False", "lastTransitionTime": since} if c["type"] in ("Ready", "ContainersReady") else c
        for c in pod["status"]["conditions"]
    ]
    return world.replace("pods", {**pod, "status": {**pod["status"], "conditions": conditions}})
