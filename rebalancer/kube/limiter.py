"""A token bucket, since the client has none: how fast one process may ask the API server, over all its threads.

The Lease must never wait behind it; leader election has a client of its own without a bucket.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rebalancer.deadline import Deadline


class TokenBucket:
    """``qps`` requests a second on average, ``burst`` at once. ``sleep`` replaces the wait on the deadline's stop event, for tests.

    A waiting thread holds a reservation, so that threads are served in turn and none starves.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        if not qps > 0 or burst < 1:
            raise ValueError(f"a bucket needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = clock()
        self._closed_until = self._filled_at

    def take(self, deadline: Deadline) -> bool:
        """Wait for a token. False, with nothing taken, when it would come only after the deadline. Raises Interrupted on a stop."""
        left = deadline.remaining()
        with self._lock:
            wait = self._reserve()
            if wait > left:
                self._tokens += 1
                return False
        if wait > 0:
            if self._sleep is not None:
                self._sleep(wait)
            else:
                deadline.wait(wait)
        return True

    def try_take(self) -> bool:
        """A token at once, or False."""
        with self._lock:
            if self._reserve() > 0:
                self._tokens += 1
                return False
        return True

    def hold(self, seconds: float) -> None:
        """Give out nothing for ``seconds``: the server asked for quiet."""
        with self._lock:
            self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _reserve(self) -> float:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + max(0.0, now - self._filled_at) * self._qps) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / self._qps, self._closed_until - now)
