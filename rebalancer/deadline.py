"""How long a cycle may take, and whether somebody wants it to stop: handed down to everything that waits.

The one place below `runtime` where a monotonic clock is held, so that tests can hand in their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rebalancer.errors import Interrupted


def _on_request() -> Interrupted:
    return Interrupted("stopped on request before the work was finished", remedy="nothing is left half done; start it again")


@dataclass(frozen=True, slots=True)
class Deadline:
    """``at`` is a reading of ``clock`` (monotonic seconds). ``stop`` is set when the process is asked to end.

    ``interruption``: what is raised then; asked for only when it is, so that it can say why.
    """

    at: float
    clock: Callable[[], float] = time.monotonic
    stop: threading.Event = field(default_factory=threading.Event)
    interruption: Callable[[], Interrupted] = _on_request

    @classmethod
    def after(
        cls,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        stop: threading.Event | None = None,
        interruption: Callable[[], Interrupted] = _on_request,
    ) -> Deadline:
        return cls(at=clock() + seconds, clock=clock, stop=stop or threading.Event(), interruption=interruption)

    def at_most(self, seconds: float) -> Deadline:
        """This deadline, or one ``seconds`` from now if that is sooner. The stop is the same."""
        return replace(self, at=min(self.at, self.clock() + seconds))

    def remaining(self) -> float:
        """Seconds left, never negative. Raises Interrupted when a stop was asked for."""
        if self.stop.is_set():
            raise self.interruption()
        return max(0.0, self.at - self.clock())

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``, within the deadline. False when the deadline has passed. Raises Interrupted on a stop."""
        left = self.remaining()
        self.stop.wait(min(seconds, left))
        return self.remaining() > 0
