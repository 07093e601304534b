"""Events that cannot be written are no secret, and no flood either."""

from __future__ import annotations

from structlog.testing import capture_logs

from rebalancer.kube.events import EventResult
from rebalancer.runtime.event_notes import EventNotes
from rebalancer.runtime.metrics import Metrics


def test_every_attempt_is_counted_by_its_end() -> None:
    """A rate of failures is what an alert can see."""
    metrics = Metrics()
    notes = EventNotes(metrics)
    for result in (EventResult.WRITTEN, EventResult.FAILED, EventResult.FAILED, EventResult.LIMITED):
        notes.told(result, "no" if result is EventResult.FAILED else "")
    found = {r.value: metrics.registry.get_sample_value("rebalancer_events_total", {"result": r.value}) for r in EventResult}
    assert found == {"written": 1, "repeated": 0, "limited": 1, "failed": 2}


def test_trouble_is_told_when_it_begins_and_when_it_ends() -> None:
    """Not for each of a hundred Events."""
    notes = EventNotes()
    with capture_logs() as logs:
        for result, error in (
            ("failed", "first"),
            ("failed", "second"),
            ("repeated", ""),
            ("written", ""),
            ("written", ""),
            ("failed", "new"),
        ):
            notes.told(EventResult(result), error)
    assert [(line["log_level"], line.get("error")) for line in logs] == [("warning", "first"), ("info", None), ("warning", "new")]
