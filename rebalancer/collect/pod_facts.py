"""What a single pod says of itself, each fact as the number that `pod_columns.Number` explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rebalancer.collect.classes import class_from_word, class_of_marks
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.tables import Phase, PodClass, Qos

CLASS_ANNOTATION = "rebalancer.dev/class"
CLASSES = tuple(PodClass)
"""By number."""
NO_LABELS: Mapping[str, str] = {}
_MIRROR = "kubernetes.io/config.mirror"
_SOURCE = "kubernetes.io/config.source"
_FROM_API = "api"
_PHASES = {
    "Pending": int(Phase.PENDING),
    "Running": int(Phase.RUNNING),
    "Succeeded": int(Phase.SUCCEEDED),
    "Failed": int(Phase.FAILED),
}
_UNKNOWN_PHASE = int(Phase.UNKNOWN)
_QOS = {"BestEffort": int(Qos.BEST_EFFORT), "Burstable": int(Qos.BURSTABLE), "Guaranteed": int(Qos.GUARANTEED)}
_CLASS_NUMBERS = {each: number for number, each in enumerate(CLASSES)}


@dataclass(frozen=True, slots=True)
class ClassWord:
    """What the class annotation says: a number of `CLASSES`, -1 where it says nothing; ``is_bad`` when what it says is no class."""

    number: int
    is_bad: bool = False


_NO_WORD, _BAD_WORD = ClassWord(-1), ClassWord(-1, is_bad=True)


def class_number(of: PodClass) -> int:
    return _CLASS_NUMBERS[of]


def class_of_annotations(own: Mapping[str, str]) -> ClassWord:
    word = own.get(CLASS_ANNOTATION) if own else None
    if word is None:
        return _NO_WORD
    found = class_from_word(word)
    return _BAD_WORD if found is None else ClassWord(_CLASS_NUMBERS[found])


def called_number(own: Mapping[str, str], labels: Mapping[str, str] | None) -> int:
    """-1 where no mark of another project says what the pod is for."""
    found = class_of_marks(own, labels or NO_LABELS)
    return -1 if found is None else _CLASS_NUMBERS[found]


def phase_number(pod: PodWire) -> int:
    return _PHASES.get(pod.status.phase or "", _UNKNOWN_PHASE)


def qos_number(pod: PodWire) -> int:
    """-1 where the status does not say."""
    return _QOS.get(pod.status.qos_class or "", -1)


def is_ready(pod: PodWire) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return False


def ready_after(pod: PodWire) -> float:
    """Seconds from the start of the pod to its becoming Ready; NaN unknown: it is not Ready, or has been begun anew in its place since."""
    status = pod.status
    if status.start_time is None or any(each.restart_count for each in status.container_statuses or ()):
        return math.nan
    took = status.ready_since - status.start_time.timestamp()
    return took if took >= 0 else math.nan


def is_static(pod: PodWire, annotations: Mapping[str, str]) -> bool:
    """A static pod or its mirror: marked so, read from somewhere else than the API server, or owned by a node."""
    if annotations and (_MIRROR in annotations or annotations.get(_SOURCE, _FROM_API) != _FROM_API):
        return True
    return any(owner.kind == "Node" for owner in pod.metadata.owner_references or ())


def seconds(moment: datetime | None) -> float:
    """Unix seconds; NaN unknown."""
    return float("nan") if moment is None else moment.timestamp()
