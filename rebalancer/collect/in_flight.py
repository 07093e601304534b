"""A few jobs at a time, and nobody waits longer than the deadline or for a job that hangs after a stop was asked for.

Threads of our own instead of an executor: an executor joins its threads when the process ends, and one hanging socket would hold up a
shutdown that must be over in seconds. These threads are daemons; a job that is left behind can do no harm, since all of them only read.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rebalancer.deadline import Deadline

Result = TypeVar("Result")

GRACE_S = 1.0
"""How much longer than the deadline a job may take to report its own failure."""
_POLL_S = 0.05


class _Outcomes(Generic[Result]):
    def __init__(self, count: int) -> None:
        self.results: list[Result | None] = [None] * count
        self.errors: list[BaseException | None] = [None] * count
        self.open = count
        self.changed = threading.Condition()

    def settle(self, row: int, *, result: Result | None = None, error: BaseException | None = None) -> None:
        with self.changed:
            self.results[row], self.errors[row] = result, error
            self.open -= 1
            self.changed.notify_all()


def run_jobs(jobs: Sequence[Callable[[], Result]], *, in_flight: int, deadline: Deadline) -> list[Result | None]:
    """The results in the order of the jobs; None for a job that had not ended shortly after the deadline.

    Raises the first error of a job, in their order, and Interrupted as soon as a stop is asked for.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for row in range(len(jobs)):
        waiting.put(row)
    outcomes: _Outcomes[Result] = _Outcomes(len(jobs))

    def work() -> None:
        while True:
            try:
                row = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                outcomes.settle(row, result=jobs[row]())
            except BaseException as error:  # handed to the thread that waits, whatever it is
                outcomes.settle(row, error=error)

    for number in range(min(max(1, in_flight), len(jobs))):
        threading.Thread(target=work, name=f"prometheus-{number}", daemon=True).start()
    with outcomes.changed:
        while outcomes.open and not _overdue(deadline):
            outcomes.changed.wait(_POLL_S)
        errors, results = list(outcomes.errors), list(outcomes.results)
    for error in errors:
        if error is not None:
            raise error
    return results


def _overdue(deadline: Deadline) -> bool:
    return deadline.remaining() <= 0 and deadline.clock() > deadline.at + GRACE_S
