"""One look at one owner: create the pods that are missing, delete the ones too many, write the status when it changed."""

from __future__ import annotations

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.making_pods import pod_from
from rebalancer.simulate.node_match import matches_node_selection, tolerated
from rebalancer.simulate.pods import controller_of, delete_pod, is_active, is_ready, is_terminating
from rebalancer.simulate.world import World

_COST = "controller.kubernetes.io/pod-deletion-cost"


def write_status(world: World, plural: str, owner: Json, fields: Json) -> None:
    """Merge ``fields`` into the status of the newest version of ``owner``, unless they are there already."""
    newest = world.find(plural, owner["metadata"]["name"], owner["metadata"].get("namespace", ""))
    if newest is None:
        return
    status = {**newest.get("status", {}), "observedGeneration": newest["metadata"]["generation"], **fields}
    if status != newest.get("status", {}):
        world.replace(plural, {**newest, "status": status})


def _removal_rank(pod: Json) -> tuple[bool, bool, int, str]:
    """Which pod goes first in a scale-down: unassigned, not Ready, cheap, then the newest (by name for a stable order)."""
    try:
        cost = int((pod["metadata"].get("annotations") or {}).get(_COST, "0"))
    except ValueError:
        cost = 0
    return bool(pod["spec"].get("nodeName")), is_ready(pod), cost, pod["metadata"]["name"]


def sync_replica_set(world: World, owner: Json, pods: list[Json]) -> None:
    active = [pod for pod in pods if is_active(pod)]
    wanted = int(owner["spec"].get("replicas", 1))
    for pod in sorted(active, key=_removal_rank)[: max(0, len(active) - wanted)]:
        delete_pod(world, pod)
    created = [world.create("pods", pod_from(world, owner, owner["spec"]["template"])) for _ in range(wanted - len(active))]
    count = min(wanted, len(active)) if len(active) > wanted else len(active) + len(created)
    ready = sum(1 for pod in active if is_ready(pod))
    write_status(
        world, "replicasets", owner, {"replicas": count, "fullyLabeledReplicas": count, "readyReplicas": ready, "availableReplicas": ready}
    )


def sync_deployment(world: World, owner: Json) -> None:
    """One ReplicaSet follows the Deployment's replicas; with several (a rollout that a test has laid out) only the status is kept."""
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    sets = [rs for rs in world.objects("replicasets", namespace) if (controller_of(rs) or {}).get("uid") == uid]
    wanted = int(owner["spec"].get("replicas", 1))
    if len(sets) == 1 and sets[0]["spec"].get("replicas", 1) != wanted:
        sets = [world.replace("replicasets", {**sets[0], "spec": {**sets[0]["spec"], "replicas": wanted}})]
    if len(sets) != 1:
        return
    status = sets[0].get("status", {})
    ready, total = int(status.get("readyReplicas", 0)), int(status.get("replicas", 0))
    fields = {
        "replicas": total,
        "updatedReplicas": total,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, wanted - ready),
    }
    write_status(world, "deployments", owner, fields)


def sync_stateful_set(world: World, owner: Json, pods: list[Json]) -> None:
    name, wanted = owner["metadata"]["name"], int(owner["spec"].get("replicas", 1))
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    ordered = owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    for ordinal in range(wanted):
        pod_name = f"{name}-{ordinal}"
        pod = by_name.get(pod_name)
        if pod is None:
            world.create("pods", pod_from(world, owner, _with_claims(owner, pod_name), name=pod_name))
        if ordered and (pod is None or not is_ready(pod) or is_terminating(pod)):
            break
    for pod in pods:
        ordinal_text = pod["metadata"]["name"].rsplit("-", 1)[-1]
        if is_active(pod) and ordinal_text.isdigit() and int(ordinal_text) >= wanted:
            delete_pod(world, pod)
    ready = sum(1 for pod in pods if is_active(pod) and is_ready(pod))
    fields = {"replicas": min(wanted, len(pods)), "readyReplicas": ready, "availableReplicas": ready, "currentReplicas": wanted}
    revision = f"{name}-1"
    write_status(
        world,
        "statefulsets",
        owner,
        {**fields, "updatedReplicas": wanted, "currentRevision": revision, "updateRevision": revision},
    )


def _with_claims(owner: Json, pod_name: str) -> Json:
    """The template with the volumes that stand for the set's claim templates."""
    template: Json = owner["spec"]["template"]
    claims = owner["spec"].get("volumeClaimTemplates") or ()
    if not claims:
        return template
    volumes = [
        {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{claim['metadata']['name']}-{pod_name}"}}
        for claim in claims
    ]
    spec = {**template["spec"], "volumes": [*(template["spec"].get("volumes") or ()), *volumes]}
    return {**template, "spec": spec}


def node_of_daemon_pod(pod: Json) -> str:
    """The node that a daemon pod is made for, bound or not."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return str(pod["spec"].get("nodeName", ""))


def sync_daemon_set(world: World, owner: Json, pods: list[Json]) -> None:
    template = owner["spec"]["template"]
    present: dict[str, Json] = {node_of_daemon_pod(pod): pod for pod in pods}
    wanted = 0
    for node in world.objects("nodes"):
        name = node["metadata"]["name"]
        taints = [t for t in node["spec"].get("taints") or () if t["effect"] in ("NoSchedule", "NoExecute")]
        fits = matches_node_selection(template["spec"], node["metadata"].get("labels") or {}, name)
        if not fits or not all(tolerated(taint, template["spec"].get("tolerations") or ()) for taint in taints):
            continue
        wanted += 1
        if name not in present:
            world.create("pods", pod_from(world, owner, template, node_name_only=name))
    ready = sum(1 for pod in pods if is_active(pod) and is_ready(pod))
    counts = {"desiredNumberScheduled": wanted, "currentNumberScheduled": wanted, "updatedNumberScheduled": wanted}
    write_status(world, "daemonsets", owner, {**counts, "numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0})
