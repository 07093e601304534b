"""What a pod is for: the annotation that says so, the marks of other projects, and the one table of kinds of owners.

A guess from marks or kinds is good enough to choose safe defaults and no better; ``rebalancer.dev/class`` on the pod or on its workload
says it for certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    "RayService": PodClass.SERVING,
    "RayCluster": PodClass.EXPERIMENT,  # of nobody's job: somebody works on it by hand
    "LeaderWorkerSet": PodClass.SERVING,
    "Notebook": PodClass.EXPERIMENT,
    "CronJob": PodClass.BATCH,
    "Job": PodClass.BATCH,
    "Deployment": PodClass.SERVING,
    "ReplicaSet": PodClass.SERVING,
    "StatefulSet": PodClass.SERVING,
    "DaemonSet": PodClass.SYSTEM,
}
_ANY = ""
"""The key alone says it, whatever its value."""
_MARKS: Mapping[str, Mapping[str, PodClass]] = {
    "serving.kserve.io/inferenceservice": {_ANY: PodClass.SERVING},
    "serving.kserve.io/inferencegraph": {_ANY: PodClass.SERVING},
    "kserve.io/component": {"workload": PodClass.SERVING},
    "app.kubernetes.io/part-of": {"llminferenceservice": PodClass.SERVING},
    "llm-d.ai/role": {_ANY: PodClass.SERVING},
    "multinode/role": {_ANY: PodClass.SERVING},
    "serving.knative.dev/service": {_ANY: PodClass.SERVING},
    "serving.knative.dev/revision": {_ANY: PodClass.SERVING},
    "serving.knative.dev/configuration": {_ANY: PodClass.SERVING},
    "seldon-deployment-id": {_ANY: PodClass.SERVING},
    "leaderworkerset.sigs.k8s.io/name": {_ANY: PodClass.SERVING},
    "kueue.x-k8s.io/pod-group-serving": {"true": PodClass.SERVING},
    "ray.io/originated-from-crd": {
        "RayService": PodClass.SERVING,
        "RayJob": PodClass.TRAINING,
        "RayCluster": PodClass.EXPERIMENT,
    },
    "notebook-name": {_ANY: PodClass.EXPERIMENT},
    "hub.jupyter.org/username": {_ANY: PodClass.EXPERIMENT},
    "component": {"singleuser-server": PodClass.EXPERIMENT},
    "controller.devfile.io/devworkspace_id": {_ANY: PodClass.EXPERIMENT},
    "controller.devfile.io/devworkspace_name": {_ANY: PodClass.EXPERIMENT},
}
"""Label or annotation -> its values -> what such pods are for; in the order of the say: serving before what people work on."""
_MARK_KEYS = frozenset(_MARKS)
_BY_WORD = {each.value: each for each in PodClass}


def class_from_word(word: str | None) -> PodClass | None:
    """The class that an annotation names, or None when it names none."""
    return _BY_WORD.get(word.strip().lower()) if word else None


def class_of_marks(annotations: Mapping[str, str], labels: Mapping[str, str]) -> PodClass | None:
    """The class that labels or annotations of other projects stand for; None where there are none."""
    if _MARK_KEYS.isdisjoint(labels) and (not annotations or _MARK_KEYS.isdisjoint(annotations)):
        return None
    for key, classes in _MARKS.items():
        value = labels.get(key, annotations.get(key))
        if value is not None and (found := classes.get(value, classes.get(_ANY))) is not None:
            return found
    return None


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
