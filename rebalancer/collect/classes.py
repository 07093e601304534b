"""What a pod is for, by who owns it: the one table of kinds, and the annotation that overrules it.

A guess from the kind is good enough to choose safe defaults and no better; ``rebalancer.dev/class`` on the pod or on its workload says it
for certain.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalancer.state.tables import PodClass

SYSTEM_PRIORITY = 2_000_000_000
"""The value of system-cluster-critical; users cannot create classes of that priority or above."""

_BY_KIND = {
    "PyTorchJob": PodClass.TRAINING,
    "TFJob": PodClass.TRAINING,
    "MPIJob": PodClass.TRAINING,
    "MXJob": PodClass.TRAINING,
    "XGBoostJob": PodClass.TRAINING,
    "PaddleJob": PodClass.TRAINING,
    "JAXJob": PodClass.TRAINING,
    "RayJob": PodClass.TRAINING,
    "TrainJob": PodClass.TRAINING,
    "JobSet": PodClass.TRAINING,  # what a TrainJob makes its Jobs through, so all that the owner of such a Job shows
    "Notebook": PodClass.EXPERIMENT,
    "CronJob": PodClass.BATCH,
    "Job": PodClass.BATCH,
    "Deployment": PodClass.SERVING,
    "ReplicaSet": PodClass.SERVING,
    "StatefulSet": PodClass.SERVING,
    "DaemonSet": PodClass.SYSTEM,
}
_BY_WORD = {each.value: each for each in PodClass}


def class_from_word(word: str | None) -> PodClass | None:
    """The class that an annotation names, or None when it names none."""
    return _BY_WORD.get(word.strip().lower()) if word else None


def class_of_kinds(kinds: Iterable[str]) -> PodClass:
    """The class by the kinds of a pod's owners, outermost first: the first kind that the table knows decides."""
    return next((_BY_KIND[kind] for kind in kinds if kind in _BY_KIND), PodClass.UNKNOWN)


def pod_class(*, words: Iterable[str | None], by_owner: PodClass, priority: int, mirror: bool) -> PodClass:
    """``words``: the annotations, the pod's before its workload's. A valid one wins over everything else."""
    for word in words:
        said = class_from_word(word)
        if said is not None:
            return said
    return PodClass.SYSTEM if mirror or priority >= SYSTEM_PRIORITY else by_owner
