"""Where replacements really land: evictions of random pods of real workloads, each predicted right before.

An evicted pod of a ReplicaSet is still terminating when its replacement is scheduled, and holds its place. A StatefulSet makes the
replacement only when the old pod is gone, and many come back to the place that it left free. Both are predicted, and counted apart.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground, is_ready
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import deployment, pod_spec, stateful_set
from tests.e2e.plane import ControlPlane
from tests.e2e.prediction import predictor
from tests.e2e.table import Row

TOWN = "e2e-town"
NODES = 24
EVICTIONS = {"ReplicaSet": 35, "StatefulSet": 15}
"""Kind of the owner -> how many of its pods are evicted."""
SEED = 11
GOOD_LANDINGS = 0.97
ZONES = ("zone-a", "zone-b", "zone-c")


@pytest.fixture(scope="module")
def town(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Nodes of three sizes in three zones, and workloads with the constraints that people really write."""
    rng = random.Random(SEED)
    nodes = [
        HollowNode(
            f"node-{number:02d}",
            cpu=rng.choice((4, 8, 16)),
            memory=rng.choice(("16Gi", "32Gi")),
            labels={"topology.kubernetes.io/zone": ZONES[number % 3], "example.com/disk": rng.choice(("ssd", "hdd"))},
            taints=[{"key": "example.com/slow", "effect": "PreferNoSchedule"}] if rng.random() < 0.15 else [],
        )
        for number in range(NODES)
    ]
    with ground(plane, tmp_path_factory.mktemp("landing"), nodes, monitored=False, start_s=0.2) as own:
        own.namespace(TOWN)
        count = 0
        for number in range(14):
            name, replicas = f"app-{number}", rng.randint(3, 9)
            spec = pod_spec(cpu=rng.choice(("", "100m", "250m", "1", "2")), memory=rng.choice(("", "256Mi", "1Gi", "3Gi")))
            rng.choice(_WISHES)(spec, name)
            make = stateful_set if number % 5 == 4 else deployment
            own.apply(make(name, TOWN, spec, replicas=replicas))
            count += replicas
        own.settled(TOWN, count)
        yield own


def _plain(spec: Json, name: str) -> None:
    """Only the scheduler's own default spreading."""


def _spread_hard(spec: Json, name: str) -> None:
    spec["topologySpreadConstraints"] = [_constraint("topology.kubernetes.io/zone", "DoNotSchedule", name)]


def _spread_soft(spec: Json, name: str) -> None:
    spec["topologySpreadConstraints"] = [
        _constraint("topology.kubernetes.io/zone", "ScheduleAnyway", name),
        _constraint("kubernetes.io/hostname", "ScheduleAnyway", name),
    ]


def _apart(spec: Json, name: str) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}}
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _rather_apart(spec: Json, name: str) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}}
    spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}


def _disk(spec: Json, name: str) -> None:
    spec["nodeSelector"] = {"example.com/disk": "ssd"}


def _constraint(key: str, otherwise: str, app: str) -> Json:
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": otherwise, "labelSelector": {"matchLabels": {"app": app}}}


_WISHES = (_plain, _plain, _spread_hard, _spread_soft, _apart, _rather_apart, _disk)


def test_replacements_land_where_they_are_predicted(town: Ground, plane: ControlPlane, scenario: Row) -> None:
    """Prediction: replacements of evicted pods land on a node that we predicted."""
    rng = random.Random(SEED)
    results: dict[str, list[bool]] = {kind: [] for kind in EVICTIONS}
    order = [kind for kind, count in EVICTIONS.items() for _ in range(count)]
    rng.shuffle(order)
    misses: list[Json] = []
    with predictor(plane.kubeconfig) as ours:
        for kind in order:
            pods = sorted(town.pods(TOWN), key=lambda pod: pod["metadata"]["name"])
            pod = rng.choice([each for each in pods if each["metadata"]["ownerReferences"][0]["kind"] == kind])
            predicted = ours.predict(pod["metadata"]["uid"], leaving=True, at=time.time())
            town.api.evict(pod["metadata"]["name"], TOWN)
            landed = _replacement(town, pod, {each["metadata"]["uid"] for each in pods})
            right = landed in predicted.best
            results[kind].append(right)
            if not right:
                scores = {name: predicted.scores.get(name) for name in (landed, *predicted.best)}
                misses.append({"spec": pod["spec"], "from": pod["spec"]["nodeName"], "landed": landed, "scores": scores})
            town.settled(TOWN, len(pods))
    for kind, rights in results.items():
        scenario.shows(f"{kind}: {sum(rights)} of {len(rights)} replacements on a predicted node")
    rights = [right for each in results.values() for right in each]
    assert sum(rights) >= GOOD_LANDINGS * len(rights), misses[:3]


def _replacement(town: Ground, old: Json, before: set[str]) -> str:
    """The node of the new pod of the same owner."""
    owner = old["metadata"]["ownerReferences"][0]["uid"]

    def landed() -> str:
        for pod in town.pods(TOWN):
            meta = pod["metadata"]
            if meta["uid"] not in before and meta["ownerReferences"][0]["uid"] == owner and is_ready(pod):
                return str(pod["spec"]["nodeName"])
        return ""

    found: str = until(landed, f"the replacement of {old['metadata']['name']}", step=0.05)
    return found
