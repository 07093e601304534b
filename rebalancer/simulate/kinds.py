"""The kinds that the embedded API server knows: names, groups, paths. A new kind is a new row here and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
"""A JSON object as it goes over the wire: the one place where the type checker cannot help."""


@dataclass(frozen=True, slots=True)
class Kind:
    plural: str
    kind: str
    group: str
    version: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        """``/api/v1`` or ``/apis/<group>/<version>``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


KINDS: tuple[Kind, ...] = (
    Kind("nodes", "Node", "", "v1", False),
    Kind("namespaces", "Namespace", "", "v1", False),
    Kind("pods", "Pod", "", "v1", True),
    Kind("services", "Service", "", "v1", True),
    Kind("configmaps", "ConfigMap", "", "v1", True),
    Kind("resourcequotas", "ResourceQuota", "", "v1", True),
    Kind("replicationcontrollers", "ReplicationController", "", "v1", True),
    Kind("persistentvolumeclaims", "PersistentVolumeClaim", "", "v1", True),
    Kind("persistentvolumes", "PersistentVolume", "", "v1", False),
    Kind("deployments", "Deployment", "apps", "v1", True),
    Kind("replicasets", "ReplicaSet", "apps", "v1", True),
    Kind("statefulsets", "StatefulSet", "apps", "v1", True),
    Kind("daemonsets", "DaemonSet", "apps", "v1", True),
    Kind("jobs", "Job", "batch", "v1", True),
    Kind("cronjobs", "CronJob", "batch", "v1", True),
    Kind("poddisruptionbudgets", "PodDisruptionBudget", "policy", "v1", True),
    Kind("horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling", "v2", True),
    Kind("priorityclasses", "PriorityClass", "scheduling.k8s.io", "v1", False),
    Kind("storageclasses", "StorageClass", "storage.k8s.io", "v1", False),
    Kind("csinodes", "CSINode", "storage.k8s.io", "v1", False),
    Kind("resourceclaims", "ResourceClaim", "resource.k8s.io", "v1", True),
    Kind("leases", "Lease", "coordination.k8s.io", "v1", True),
    Kind("events", "Event", "events.k8s.io", "v1", True),
    Kind("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "v1", False),
    Kind("hintannouncements", "HintAnnouncement", "rebalancer.dev", "v1alpha1", True),
)

BY_PLURAL: dict[str, Kind] = {kind.plural: kind for kind in KINDS}
BY_KIND: dict[str, Kind] = {kind.kind: kind for kind in KINDS}
