"""From a pod template to a pod: names, owner references and the defaults that admission fills in."""

from __future__ import annotations

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.world import World

_DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
]
_SPEC_DEFAULTS: Json = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "enableServiceLinks": True,
}


def owner_reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from the containers alone."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    for r in resources:
        limits, requests = r.get("limits") or {}, r.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def pod_from(world: World, owner: Json, template: Json, *, name: str = "", node_name_only: str = "") -> Json:
    """A new, unbound pod of ``owner``. ``node_name_only`` pins it to one node as the DaemonSet controller does.

    Whatever needs no change is shared with the template, not copied.
    """
    parent = owner["metadata"]
    metadata: Json = {
        "namespace": parent["namespace"],
        "labels": template.get("metadata", {}).get("labels") or {},
        "ownerReferences": [owner_reference(owner)],
    }
    if template.get("metadata", {}).get("annotations"):
        metadata["annotations"] = template["metadata"]["annotations"]
    if template.get("metadata", {}).get("managedFields"):
        metadata["managedFields"] = template["metadata"]["managedFields"]
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{parent['name']}-"
    spec = _admitted(world, template["spec"])
    if node_name_only:
        spec["affinity"] = _pinned(spec.get("affinity") or {}, node_name_only)
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "qosClass": qos_class(spec)}}


def _admitted(world: World, template: Json) -> Json:
    spec = {**_SPEC_DEFAULTS, **template}
    spec["tolerations"] = [*(template.get("tolerations") or ()), *_DEFAULT_TOLERATIONS]
    if "priority" not in spec:
        found = world.find("priorityclasses", spec["priorityClassName"]) if spec.get("priorityClassName") else None
        spec["priority"] = int(found["value"]) if found is not None else 0
    return spec


def _pinned(affinity: Json, node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**affinity, "nodeAffinity": {**affinity.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution": required}}


def managed_fields() -> list[Json]:
    """What two managers leave in the metadata of a pod: the controller's record of the spec, the kubelet's of the status."""
    container: Json = {
        f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "terminationMessagePath", "terminationMessagePolicy", "command")
    }
    probe: Json = {f"f:{name}": {} for name in ("failureThreshold", "httpGet", "periodSeconds", "successThreshold", "timeoutSeconds")}
    resources: Json = {"f:limits": {"f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}}
    env: Json = {f'k:{{"name":"SETTING_{number}"}}': {".": {}, "f:name": {}, "f:value": {}} for number in range(20)}
    body = {**container, "f:env": env, "f:livenessProbe": probe, "f:readinessProbe": probe, "f:resources": resources}
    spec = {"f:containers": {'k:{"name":"main"}': body}, **{f"f:{name}": {} for name in _SPEC_DEFAULTS}}
    owner: Json = {".": {}, 'k:{"uid":"00000000-0000-4000-8000-000000000000"}': {}}
    labels: Json = {".": {}, "f:app": {}, "f:pod-template-hash": {}}
    metadata = {"f:generateName": {}, "f:labels": labels, "f:ownerReferences": owner}
    condition: Json = {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    kinds = ("ContainersReady", "Initialized", "PodScheduled", "PodReadyToStartContainers", "Ready")
    conditions = {f'k:{{"type":"{kind}"}}': condition for kind in kinds}
    others: Json = {f"f:{name}": {} for name in ("containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "podIPs", "startTime")}
    record = {"apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "time": "2026-01-01T00:00:00Z"}
    return [
        {**record, "manager": "kube-controller-manager", "fieldsV1": {"f:metadata": metadata, "f:spec": spec}},
        {**record, "manager": "kubelet", "subresource": "status", "fieldsV1": {"f:status": {"f:conditions": conditions, **others}}},
    ]
