"""What becomes of Events, for those who wait for one: every attempt is counted, and trouble is logged when it begins and when it ends."""

from __future__ import annotations

import structlog

from rebalancer.kube.events import EventResult
from rebalancer.runtime.metrics import Metrics

log = structlog.get_logger(__name__)


class EventNotes:
    """``metrics``: None counts nothing, for commands that export none."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics
        self._trouble = ""

    def told(self, result: EventResult, error: str) -> None:
        if self._metrics is not None:
            self._metrics.event_ended(result)
        if result is EventResult.FAILED and not self._trouble:
            log.warning("an Event could not be written; the moves are not held up by that", error=error)
        if result is EventResult.WRITTEN and self._trouble:
            log.info("Events can be written again")
        if result in (EventResult.FAILED, EventResult.WRITTEN):
            self._trouble = error
