"""The detector of LowNodeLoad: a node is acted on only after it was over its marks in more than N rounds.

Documented behaviour: state OK becomes Anomaly when the abnormal marks exceed ``abnormalities`` (the sixth round with 5). In Anomaly every
round over the marks may evict. Back to OK when ``timeout`` has passed since it was entered, or when the normal marks in a row exceed
``normalities``; either clears the counters. A reset in state OK clears nothing, and a node that is neither over nor low is not marked, so
"consecutive" rounds need not follow each other. What was not marked for ``cache`` is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class AnomalyCondition:
    timeout_s: float = 60.0
    abnormalities: int = 5
    normalities: int = 3
    cache_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Detector:
    """Of one node. ``entered_at``: when Anomaly began; None in state OK."""

    marked_at: float
    abnormal: int = 0
    normal: int = 0
    entered_at: float | None = None

    @property
    def anomalous(self) -> bool:
        return self.entered_at is not None


def mark_abnormal(detector: Detector | None, condition: AnomalyCondition, *, at: float) -> Detector:
    """One more round over the marks."""
    now = _at(detector, condition, at)
    now = replace(now, marked_at=at, abnormal=now.abnormal + 1, normal=0)
    if not now.anomalous and now.abnormal > condition.abnormalities:
        return Detector(marked_at=at, entered_at=at)
    return now


def mark_normal(detector: Detector, condition: AnomalyCondition, *, at: float) -> Detector:
    """What an acted-on node gets once a round."""
    now = replace(_at(detector, condition, at), marked_at=at, abnormal=0)
    now = replace(now, normal=now.normal + 1)
    return Detector(marked_at=at) if now.anomalous and now.normal > condition.normalities else now


def reset(detector: Detector, *, at: float) -> Detector:
    """Back to OK; in state OK nothing is cleared."""
    return Detector(marked_at=at) if detector.anomalous else detector


def _at(detector: Detector | None, condition: AnomalyCondition, at: float) -> Detector:
    if detector is None or at - detector.marked_at > condition.cache_s:
        return Detector(marked_at=at)
    if detector.entered_at is not None and at > detector.entered_at + condition.timeout_s:
        return Detector(marked_at=at)
    return detector
