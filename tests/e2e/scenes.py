"""Random nodes and pods that use everything kube-scheduler's filters look at, alone and together; the same seed gives the same ones.

Few values for many pods: constraints are to meet each other, so that about a fifth of the pods fits nowhere and most fit on some nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.e2e.api import Json
from tests.e2e.hollow import ENDS_AFTER, HollowNode
from tests.e2e.objects import pod, pod_spec

NAMESPACES = {"e2e-north": {"team": "a"}, "e2e-south": {"team": "b"}, "e2e-west": {"team": "b", "wild": "yes"}}
APPS = ("web", "api", "db", "cache", "batch")
TIERS = ("front", "back")
ZONES = ("zone-a", "zone-b", "zone-c")
RACKS = tuple(f"rack-{number}" for number in range(6))
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack")
FPGA = "example.com/fpga"
CLAIMS = {"data-a": "zone-a", "data-b": "zone-b", "data-c": "zone-c"}
"""Claim (in the first namespace) -> the zone that its volume is bound to."""
CLAIMED = next(iter(NAMESPACES))
FOREVER_S = 100_000
LINGERING = {ENDS_AFTER: str(FOREVER_S)}
"""Annotations of a pod that stays Terminating once it is deleted, until somebody forces its end."""


def nodes(count: int, *, seed: int) -> list[HollowNode]:
    rng = random.Random(seed)
    return [_node(rng, number) for number in range(count)]


def _node(rng: random.Random, number: int) -> HollowNode:
    labels = {"example.com/disk": rng.choice(("ssd", "hdd")), "example.com/generation": str(rng.randint(1, 5))}
    if rng.random() < 0.9:
        labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
    if rng.random() < 0.9:
        labels["example.com/rack"] = rng.choice(RACKS)
    taints = []
    if rng.random() < 0.2:
        taints.append({"key": "dedicated", "value": rng.choice(("db", "batch")), "effect": "NoSchedule"})
    if rng.random() < 0.1:
        taints.append({"key": "draining", "effect": "NoExecute"})
    if rng.random() < 0.2:
        taints.append({"key": "example.com/slow", "effect": "PreferNoSchedule"})
    return HollowNode(
        name=f"node-{number:02d}",
        cpu=rng.choice((2, 4, 4, 8)),
        memory=rng.choice(("4Gi", "8Gi", "16Gi")),
        pods=rng.choice((6, 10, 20)),
        labels=labels,
        taints=taints,
        extended={FPGA: rng.choice(("1", "2"))} if rng.random() < 0.3 else {},
    )


def random_pod(rng: random.Random, number: int) -> Json:
    """One pod with up to four kinds of constraints, held back by a scheduling gate until the test lets it go."""
    namespace = rng.choice(tuple(NAMESPACES))
    labels = {"app": rng.choice(APPS), "tier": rng.choice(TIERS)}
    spec = pod_spec(
        cpu=rng.choice(("", "100m", "250m", "700m", "1500m")),
        memory=rng.choice(("", "64Mi", "500Mi", "2Gi")),
        extended={FPGA: "1"} if rng.random() < 0.08 else None,
    )
    for add in rng.sample(KINDS, k=rng.choice((0, 1, 1, 2, 2, 3, 4))):
        add(rng, spec, labels)
    if namespace == CLAIMED and rng.random() < 0.25:
        claim = rng.choice(tuple(CLAIMS))
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec["schedulingGates"] = [{"name": "e2e.rebalancer.dev/held"}]
    return pod(f"pod-{number:04d}", namespace, spec, labels=labels, annotations=LINGERING if rng.random() < 0.3 else {})


# ---- kinds of constraints ---------------------------------------------------------------------------------------------


def _node_selector(rng: random.Random, spec: Json, labels: Json) -> None:
    spec["nodeSelector"] = {"example.com/disk": rng.choice(("ssd", "hdd"))}


def _required_nodes(rng: random.Random, spec: Json, labels: Json) -> None:
    terms = [_node_term(rng) for _ in range(rng.choice((1, 1, 2)))]
    node_affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def _preferred_nodes(rng: random.Random, spec: Json, labels: Json) -> None:
    terms = [{"weight": rng.randint(1, 100), "preference": _node_term(rng)} for _ in range(2)]
    spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = terms


def _node_term(rng: random.Random) -> Json:
    some: Sequence[Json] = (
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": rng.sample(ZONES, k=2)},
        {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [rng.choice(ZONES)]},
        {"key": "example.com/rack", "operator": "Exists"},
        {"key": "example.com/rack", "operator": "DoesNotExist"},
        {"key": "example.com/generation", "operator": "Gt", "values": [str(rng.randint(1, 3))]},
        {"key": "example.com/generation", "operator": "Lt", "values": [str(rng.randint(3, 5))]},
    )
    if rng.random() < 0.15:
        name = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": [f"node-{rng.randint(0, 20):02d}"]}
        return {"matchFields": [name]}
    return {"matchExpressions": rng.sample(some, k=rng.choice((1, 1, 2)))}


def _tolerations(rng: random.Random, spec: Json, labels: Json) -> None:
    some: Sequence[Json] = (
        {"key": "dedicated", "operator": "Equal", "value": rng.choice(("db", "batch")), "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "draining", "operator": "Exists", "effect": "NoExecute"},
        {"key": "example.com/slow", "operator": "Exists"},
        {"operator": "Exists"},
    )
    spec["tolerations"] = rng.sample(some, k=rng.choice((1, 2)))


def _near(rng: random.Random, spec: Json, labels: Json) -> None:
    # Half of them name their own app: the first pod of such a group must be let in somewhere.
    term = _pod_term(rng, labels, own=rng.random() < 0.5)
    spec.setdefault("affinity", {}).setdefault("podAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = [term]


def _apart(rng: random.Random, spec: Json, labels: Json) -> None:
    terms = [_pod_term(rng, labels, own=rng.random() < 0.5) for _ in range(rng.choice((1, 1, 2)))]
    spec.setdefault("affinity", {}).setdefault("podAntiAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = terms


def _rather(rng: random.Random, spec: Json, labels: Json) -> None:
    for kind in rng.sample(("podAffinity", "podAntiAffinity"), k=rng.choice((1, 2))):
        terms = [{"weight": rng.randint(1, 100), "podAffinityTerm": _pod_term(rng, labels, own=rng.random() < 0.5)}]
        spec.setdefault("affinity", {}).setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = terms


def _pod_term(rng: random.Random, labels: Json, *, own: bool) -> Json:
    app = labels["app"] if own else rng.choice(APPS)
    selector: Json = {"matchLabels": {"app": app}}
    if rng.random() < 0.2:
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, rng.choice(APPS)]}]}
    term: Json = {"topologyKey": rng.choice(KEYS), "labelSelector": selector}
    where = rng.random()
    if where < 0.2:
        term["namespaceSelector"] = rng.choice(
            ({}, {"matchLabels": {"team": "b"}}, {"matchExpressions": [{"key": "wild", "operator": "Exists"}]})
        )
    elif where < 0.35:
        term["namespaces"] = rng.sample(tuple(NAMESPACES), k=2)
    if rng.random() < 0.15:
        term[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["tier"]
    return term


def _spread(rng: random.Random, spec: Json, labels: Json) -> None:
    constraints: list[Json] = []
    for key in rng.sample(KEYS, k=rng.choice((1, 1, 2))):
        hard = rng.random() < 0.7
        constraint: Json = {
            "topologyKey": key,
            "maxSkew": rng.randint(1, 3),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": labels["app"] if rng.random() < 0.8 else rng.choice(APPS)}},
        }
        if hard and rng.random() < 0.2:
            constraint["minDomains"] = rng.randint(2, 4)
        if rng.random() < 0.3:
            constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.3:
            constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.2:
            constraint["matchLabelKeys"] = ["tier"]
        if rng.random() < 0.05:
            constraint["labelSelector"] = {}
        constraints.append(constraint)
    spec["topologySpreadConstraints"] = constraints


def _ports(rng: random.Random, spec: Json, labels: Json) -> None:
    port: Json = {"containerPort": 8080, "hostPort": rng.choice((8080, 9090)), "protocol": rng.choice(("TCP", "UDP"))}
    if rng.random() < 0.4:
        port["hostIP"] = rng.choice(("10.1.1.1", "10.1.1.2"))
    spec["containers"][0]["ports"] = [port]


def _init_containers(rng: random.Random, spec: Json, labels: Json) -> None:
    first = {
        "name": "first",
        "image": "registry.example/init:1",
        "resources": {"requests": {"cpu": rng.choice(("500m", "2")), "memory": "64Mi"}},
    }
    side = {
        "name": "side",
        "image": "registry.example/side:1",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "150m", "memory": "100Mi"}},
    }
    spec["initContainers"] = rng.choice(([first], [side], [side, first], [first, side]))


def _whole_pod(rng: random.Random, spec: Json, labels: Json) -> None:
    """Requests of the pod as a whole, which override the sum of its containers'."""
    spec["resources"] = {"requests": {"cpu": "2500m", "memory": "3Gi"}}


KINDS: Sequence[Callable[[random.Random, Json, Json], None]] = (
    _node_selector,
    _required_nodes,
    _preferred_nodes,
    _tolerations,
    _near,
    _apart,
    _apart,
    _rather,
    _spread,
    _spread,
    _ports,
    _init_containers,
    _whole_pod,
)


def volumes() -> list[Json]:
    """A volume a claim, reachable from one zone only."""
    return [
        {
            "kind": "PersistentVolume",
            "metadata": {"name": f"e2e-{claim}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "csi": {"driver": "csi.example", "volumeHandle": claim},
                "claimRef": {"namespace": CLAIMED, "name": claim},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}
                        ]
                    }
                },
            },
        }
        for claim, zone in CLAIMS.items()
    ]


def claims() -> list[Json]:
    return [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": CLAIMED},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": f"e2e-{claim}",
            },
        }
        for claim in CLAIMS
    ]
