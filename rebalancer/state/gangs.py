"""Gangs: pods that live and die together. A sparse table beside that of pods, since most pods are in none.

A gang is several pods that need each other, not a group object: schedulers that give every pod a group of its own do not make it a gang.
Only pods that are not finished are members. With ``minimum`` of them a gang goes on; those above it are surplus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from rebalancer.state.arrays import FloatArray, IntArray


class GangSystem(Enum):
    """Who says that the pods belong together."""

    KUBERNETES = "kubernetes"
    """The scheduler's own groups: ``spec.workloadRef`` and ``spec.schedulingGroup``."""
    COSCHEDULING = "coscheduling"
    KOORDINATOR = "koordinator"
    VOLCANO = "volcano"
    KAI = "kai"
    KUEUE = "kueue"
    """A plain group of pods, which nobody makes anew."""
    LEADER_WORKER_SET = "leader-worker-set"
    JOB_SET = "job-set"
    TRAINING = "training"
    """A job of distributed training: its pods wait for each other, with or without a gang scheduler."""
    INDEXED_JOB = "indexed-job"
    """A Job whose pods have numbers and all run at once."""


TRAINING_KINDS = frozenset({"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "TrainJob"})
"""Owners whose pods wait for each other."""


class MinimumSource(Enum):
    """Where it is known from how many members a gang needs."""

    OBJECT = "object"
    """Its PodGroup, Workload or job says so."""
    MARK = "mark"
    """Its pods say so."""
    MEMBERS = "members"
    """Nothing does, or its kind needs every one: all members that are there."""


def _ints() -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _floats() -> FloatArray:
    return np.zeros(0, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Gangs:
    """In order of namespace, name and system. All (gangs,), except ``pod`` and ``gang`` (members,)."""

    systems: tuple[GangSystem, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    minimum: IntArray = field(default_factory=_ints)
    sources: tuple[MinimumSource, ...] = ()
    elastic: tuple[bool, ...] = ()
    """Its job goes on with fewer workers by its own word, and takes in new ones."""
    backoff_limit: FloatArray = field(default_factory=_floats)
    """How many failures its job may have; NaN unknown, or it has no job."""
    pod: IntArray = field(default_factory=_ints)
    """Row in pods, ascending."""
    gang: IntArray = field(default_factory=_ints)
    """Row of its gang."""
    told: bool = False
    """The marks of pods were looked at. False in snapshots from before there was this table: every group of several pods is a gang then."""

    def __len__(self) -> int:
        return len(self.names)

    def of_pod(self, pod: int) -> int:
        """Row of the pod's gang; -1 for a pod in none."""
        if not len(self.pod):
            return -1
        row = int(np.searchsorted(self.pod, pod))
        return int(self.gang[row]) if row < len(self.pod) and self.pod[row] == pod else -1

    def members(self, gang: int) -> IntArray:
        """Rows of the pods of a gang, ascending."""
        return np.asarray(self.pod[self.gang == gang], dtype=np.int64)

    def title(self, gang: int) -> str:
        """How people tell it from all others: ``volcano ml/llama``."""
        return f"{self.systems[gang].value} {self.namespaces[gang]}/{self.names[gang]}"


NO_GANGS = Gangs()
