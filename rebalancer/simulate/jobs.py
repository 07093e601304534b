"""The Job controller: failures, the back-off before a replacement, and the end of a Job whose limit is passed.

A terminating pod counts as failed at once, unless a ``podFailurePolicy`` rule ignores DisruptionTarget; with ``podReplacementPolicy:
Failed`` (forced by such a policy) it is replaced only when it is gone. The back-off is 10 s, doubled with each failure since the last
success, ten minutes at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.making_pods import pod_from
from rebalancer.simulate.owner_sync import write_status
from rebalancer.simulate.pods import DISRUPTION_TARGET, delete_pod, is_active, is_ready, is_terminating, phase
from rebalancer.simulate.world import Key, World
from rebalancer.units import format_time

_FIRST_BACKOFF_S = 10.0
_LONGEST_BACKOFF_S = 600.0


@dataclass(slots=True)
class _Tally:
    """What is known of one Job: which pods were counted, and when a replacement may come."""

    counted: set[str] = field(default_factory=set)
    failed: int = 0
    in_a_row: int = 0
    not_before: float = 0.0


def _has_failed(job: Json) -> bool:
    return any(c["type"] in ("Failed", "Complete") and c["status"] == "True" for c in job.get("status", {}).get("conditions") or ())


def _ignored(job: Json, pod: Json) -> bool:
    """True when the first rule about conditions that matches the pod's DisruptionTarget says Ignore."""
    marked = any(c["type"] == DISRUPTION_TARGET and c["status"] == "True" for c in pod.get("status", {}).get("conditions") or ())
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if pattern["type"] == DISRUPTION_TARGET and marked:
                return bool(rule["action"] == "Ignore")
    return False


class JobController:
    """Syncs Jobs; remembers between looks what each one has counted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tallies: dict[str, _Tally] = {}
        self._waiting: dict[Key, float] = {}

    def due(self) -> list[Key]:
        """The Jobs whose back-off is over."""
        ready = [key for key, moment in self._waiting.items() if moment <= self._world.now]
        for key in ready:
            del self._waiting[key]
        return ready

    def next_due(self) -> float:
        return min(self._waiting.values(), default=float("inf"))

    def sync(self, world: World, job: Json, pods: list[Json]) -> None:
        if _has_failed(job):
            return
        tally = self._tallies.setdefault(job["metadata"]["uid"], _Tally(failed=int(job.get("status", {}).get("failed", 0))))
        self._count(job, pods, tally)
        active = [pod for pod in pods if is_active(pod)]
        spec = job["spec"]
        limit = float("inf") if "backoffLimitPerIndex" in spec else int(spec.get("backoffLimit", 6))
        if tally.failed > limit:
            self._give_up(job, active, tally)
            return
        late = spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None
        leaving = sum(1 for pod in pods if is_terminating(pod)) if late else 0
        missing = int(spec.get("parallelism", 1)) - len(active) - leaving
        key = (job["metadata"]["namespace"], job["metadata"]["name"])
        if missing > 0 and not spec.get("suspend"):
            if tally.not_before > world.now:
                self._waiting[key] = tally.not_before
            else:
                for _ in range(missing):
                    world.create("pods", pod_from(world, job, spec["template"]))
        fields: Json = {
            "active": len(active) + (max(0, missing) if tally.not_before <= world.now else 0),
            "ready": sum(1 for pod in active if is_ready(pod)),
            "failed": tally.failed,
            "startTime": job.get("status", {}).get("startTime", job["metadata"]["creationTimestamp"]),
        }
        write_status(world, "jobs", job, fields)

    def _count(self, job: Json, pods: list[Json], tally: _Tally) -> None:
        for pod in pods:
            uid, finished = pod["metadata"]["uid"], phase(pod)
            if uid in tally.counted or not (is_terminating(pod) or finished == "Failed") or finished == "Succeeded":
                continue
            tally.counted.add(uid)
            tally.in_a_row += 1
            tally.failed += not _ignored(job, pod)
            backoff = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (tally.in_a_row - 1))
            tally.not_before = self._world.now + backoff

    def _give_up(self, job: Json, active: list[Json], tally: _Tally) -> None:
        condition = {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
            "lastTransitionTime": format_time(self._world.now),
        }
        for pod in active:
            delete_pod(self._world, pod)
        conditions = [*(job.get("status", {}).get("conditions") or ()), condition]
        write_status(self._world, "jobs", job, {"active": 0, "failed": tally.failed, "conditions": conditions})
