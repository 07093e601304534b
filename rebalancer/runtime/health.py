"""What the loop knows about its own health, for probes that other threads answer.

Alive: the loop has shown itself within three intervals, and every thread that it depends on runs. Ready: it could do its work now. A
standby replica is ready, since it could take over; a broken edit of the policy changes nothing, since the last good one is in force.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

MISSED_INTERVALS = 3
SHORTEST_PATIENCE_S = 60.0
"""However short the interval is: a cycle may take its time."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    passed: bool
    words: str

    def __str__(self) -> str:
        return f"[{'+' if self.passed else '-'}] {self.name}: {self.words}"


class Health:
    """Updated by the loop, read by the HTTP server. ``clock`` is monotonic seconds.

    ``patience_s`` is added to the three intervals: a cycle may take as long as its time-out before it shows itself again.
    """

    def __init__(self, *, interval_s: float, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._beat = clock()
        self._policy = "the policy has not been read yet"
        self._observed = "nothing has been observed yet"
        self._prometheus = "Prometheus has not been asked yet"
        self._degraded = ""
        self._standby = False
        self._threads: dict[str, Callable[[], bool]] = {}

    def beat(self, *, interval_s: float | None = None) -> None:
        """The loop is here. ``interval_s``: the interval that it follows from now on."""
        with self._lock:
            self._beat = self._clock()
            if interval_s is not None:
                self._interval_s = interval_s

    def watch(self, name: str, alive: Callable[[], bool]) -> None:
        """Count a thread's death as the death of the process."""
        with self._lock:
            self._threads[name] = alive

    def policy_valid(self) -> None:
        with self._lock:
            self._policy = ""

    def observed(self) -> None:
        """A cycle has read the cluster and Prometheus."""
        with self._lock:
            self._observed = self._prometheus = self._degraded = ""

    def cluster_failed(self, why: str) -> None:
        """The API server cannot be reached or refuses what a cycle needs; ``why`` is shown to whoever asks."""
        with self._lock:
            self._observed = why

    def prometheus_failed(self, why: str) -> None:
        """Prometheus cannot be reached; ``why`` is shown to whoever asks."""
        with self._lock:
            self._prometheus = why

    def degraded(self, why: str) -> None:
        """Declare that the service goes on without Prometheus: it reports, and moves nothing."""
        with self._lock:
            self._degraded = why

    def standby(self, standby: bool) -> None:
        """Another replica leads; this one observes nothing and could take over."""
        with self._lock:
            self._standby = standby

    def live_checks(self) -> tuple[Check, ...]:
        with self._lock:
            age = self._clock() - self._beat
            limit = max(MISSED_INTERVALS * self._interval_s, SHORTEST_PATIENCE_S) + self._patience_s
            threads = dict(self._threads)
        loop = Check("loop", age <= limit, f"last heartbeat {age:.0f} s ago, at most {limit:.0f} s")
        return (loop, *(Check(name, runs := bool(alive()), "running" if runs else "stopped") for name, alive in threads.items()))

    def ready_checks(self) -> tuple[Check, ...]:
        with self._lock:
            policy, observed, prometheus = self._policy, self._observed, self._prometheus
            degraded, standby = self._degraded, self._standby
        checks = [Check("policy", not policy, policy or "valid")]
        if standby:
            return (*checks, Check("observation", True, "standing by, another replica leads"))
        checks.append(Check("observation", not observed or bool(degraded), observed or "done"))
        words = f"degraded, {degraded}" if degraded else prometheus or "reachable"
        return (*checks, Check("prometheus", not prometheus or bool(degraded), words))
