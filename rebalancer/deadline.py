"""How long a cycle may take, and whether somebody wants it to stop: handed down to everything that waits.

The one place below `runtime` where a monotonic clock is held, so that tests can hand in their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rebalancer.errors import Interrupted


@dataclass(frozen=True, slots=True)
class Deadline:
    """``at`` is a reading of ``clock`` (monotonic seconds). ``stop`` is set when the process is asked to end."""

    at: float
    clock: Callable[[], float] = time.monotonic
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float, *, clock: Callable[[], float] = time.monotonic, stop: threading.Event | None = None) -> Deadline:
        return cls(at=clock() + seconds, clock=clock, stop=stop or threading.Event())

    def remaining(self) -> float:
        """Seconds left, never negative. Raises Interrupted when a stop was asked for."""
        if self.stop.is_set():
            raise Interrupted("stopped on request before the work was finished", remedy="nothing is left half done; start it again")
        return max(0.0, self.at - self.clock())

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``, within the deadline. False when the deadline has passed. Raises Interrupted on a stop."""
        left = self.remaining()
        self.stop.wait(min(seconds, left))
        return self.remaining() > 0
