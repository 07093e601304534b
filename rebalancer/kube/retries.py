"""When a read is worth another try, and how long to wait before it.

Reads only: whether a write may be sent again depends on what it writes, and each writer decides that for itself. The client's own retries
are switched off, since they know no deadline and hide how often the server was asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesThrottled, KubernetesUnreachable
from rebalancer.kube.failures import NotAnApiServer, TlsRefused

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits of ``first_s`` x ``factor`` ^ n up to ``ceiling_s``, each shortened by up to half at random; ``attempts`` tries in all."""

    first_s: float = 0.3
    factor: float = 2.0
    ceiling_s: float = 10.0
    attempts: int = 6

    def delay(self, failures: int, *, chance: float) -> float:
        """Seconds to wait after ``failures`` (at least 1) failed tries. ``chance`` is uniform in [0, 1)."""
        top = min(self.ceiling_s, self.first_s * self.factor ** min(failures - 1, 64))
        return top * (1.0 - 0.5 * chance)


def is_passing(error: KubernetesError) -> bool:
    """True if the same request may well succeed a moment later."""
    if isinstance(error, TlsRefused | NotAnApiServer):
        return False
    if isinstance(error, KubernetesUnreachable | KubernetesThrottled):
        return True
    return error.status is not None and error.status >= 500 and error.status != 501


def retry(
    call: Callable[[], R],
    *,
    deadline: Deadline,
    backoff: Backoff,
    chance: Callable[[], float] = random.random,
) -> R:
    """What ``call`` returns, tried again after failures that pass. A Retry-After of the server counts if it is the longer wait.

    Raises the last error when the tries are used up, or when the wait would end after the deadline.
    """
    failures = 0
    while True:
        try:
            return call()
        except KubernetesError as error:
            failures += 1
            if not is_passing(error) or failures >= backoff.attempts:
                raise
            wait = backoff.delay(failures, chance=chance())
            if isinstance(error, KubernetesThrottled) and error.retry_after_s is not None:
                wait = max(wait, error.retry_after_s)
            if wait >= deadline.remaining() or not deadline.wait(wait):
                raise
