"""Manifests, short to write: what a test says is what matters in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.api import Json
from tests.e2e.load import CPU, MEMORY

IMAGE = "registry.example/app:1"


def pod_spec(
    *, cpu: str = "", memory: str = "", extended: Mapping[str, str] | None = None, ports: Sequence[Json] = (), **spec: Any
) -> Json:
    """One container with these requests (extended resources as limits too, as the API wants them); ``spec`` is the rest of the pod spec."""
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    container: Json = {"name": "main", "image": IMAGE, "resources": {"requests": {**requests, **(extended or {})}}}
    if extended:
        container["resources"]["limits"] = dict(extended)
    if ports:
        container["ports"] = list(ports)
    return {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}


def metadata(name: str, namespace: str, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> Json:
    return {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": dict(annotations or {})}


def uses(cpu: str = "", memory: str = "") -> dict[str, str]:
    """Annotations of a pod that says what it will really use."""
    return {name: amount for name, amount in ((CPU, cpu), (MEMORY, memory)) if amount}


def pod(
    name: str, namespace: str, spec: Json, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> Json:
    return {"kind": "Pod", "metadata": metadata(name, namespace, labels=labels, annotations=annotations), "spec": spec}


def template(name: str, spec: Json, annotations: Mapping[str, str] | None) -> Json:
    return {"metadata": {"labels": {"app": name}, "annotations": dict(annotations or {})}, "spec": spec}


def deployment(name: str, namespace: str, spec: Json, *, replicas: int, annotations: Mapping[str, str] | None = None, **more: Any) -> Json:
    """Pods carry the label ``app`` with the name; ``annotations`` are theirs; ``more`` is the rest of the Deployment's spec."""
    whole = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name, spec, annotations), **more}
    return {"kind": "Deployment", "metadata": metadata(name, namespace, labels={"app": name}), "spec": whole}


def stateful_set(name: str, namespace: str, spec: Json, *, replicas: int, annotations: Mapping[str, str] | None = None) -> Json:
    whole = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name, spec, annotations),
    }
    return {"kind": "StatefulSet", "metadata": metadata(name, namespace, labels={"app": name}), "spec": whole}


def daemon_set(name: str, namespace: str, spec: Json, *, annotations: Mapping[str, str] | None = None) -> Json:
    whole = {"selector": {"matchLabels": {"app": name}}, "template": template(name, spec, annotations)}
    return {"kind": "DaemonSet", "metadata": metadata(name, namespace, labels={"app": name}), "spec": whole}


def budget(name: str, namespace: str, *, app: str, **spec: Any) -> Json:
    """A PodDisruptionBudget over the pods of ``app``: ``minAvailable=…`` or ``maxUnavailable=…``."""
    whole = {"selector": {"matchLabels": {"app": app}}, **spec}
    return {"kind": "PodDisruptionBudget", "metadata": metadata(name, namespace), "spec": whole}


def mirror_pod(name: str, namespace: str, spec: Json, *, node: Json, annotations: Mapping[str, str] | None = None) -> Json:
    """What a kubelet shows of a static pod of its node."""
    whole = pod(name, namespace, {**spec, "nodeName": node["metadata"]["name"], "automountServiceAccountToken": False})
    whole["metadata"]["annotations"] = {"kubernetes.io/config.mirror": name, **(annotations or {})}
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"], "controller": True}
    whole["metadata"]["ownerReferences"] = [owner]
    return whole
