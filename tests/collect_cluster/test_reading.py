"""Which lists are read, what makes them fail, and how a node is found behind an address."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from rebalancer.collect.cluster import ClusterObjects, node_directory, read_cluster
from rebalancer.collect.gangs.objects import GangObjects
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.lists import Page, Resource
from rebalancer.kube.resources import ALL_LISTS
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.gangs import GangSystem
from tests.collect_cluster.objects import Json, decoded, meta, node, owner, pod

KUBE_SYSTEM: Json = {"metadata": meta("kube-system", namespace=None)}
UNHEALTHY: Json = {"metadata": meta("unhealthy-gpu-n1", namespace="kube-system"), "data": {"gpus": "1"}}


class _Server:
    """Answers each list in pages of two and remembers what it was asked for."""

    server = "https://cluster.test"

    def __init__(self, objects: Mapping[str, Sequence[Json]], *, forbidden: str = "", odd: str = "", absent: str = "") -> None:
        self._objects, self._forbidden, self._odd, self._absent = objects, forbidden, odd, absent
        self.asked: list[tuple[str, bool]] = []

    def pages(self, resource: Resource[Any], *, deadline: Deadline, query: Sequence[tuple[str, str]] = ()) -> Iterator[Page[Any]]:
        self.asked.append((resource.name, resource.metadata_only))
        if resource.name == self._forbidden:
            raise KubernetesForbidden(f"listing {resource.name} is forbidden", status=403)
        if resource.name == self._absent:
            raise KubernetesNotFound(f"listing {resource.name}: not found", status=404)
        found = self._objects.get(resource.name, [])
        if resource.metadata_only:
            found = [{"metadata": each["metadata"]} for each in found]
        for start in range(0, max(1, len(found)), 2):
            items = [msgspec.json.decode(json.dumps(each).encode(), type=resource.item) for each in found[start : start + 2]]
            odd = Counter({"missing name": 1}) if resource.name == self._odd and start == 0 else Counter()
            yield Page(items=items, resource_version="7", odd=odd)


def _read(server: _Server) -> ClusterObjects:
    return read_cluster(server, deadline=Deadline.after(60))  # type: ignore[arg-type]


def test_every_list_is_read_once_and_pods_before_what_they_point_to() -> None:
    """All lists that the preflight asks rights for, pods first."""
    server = _Server({"namespaces": [KUBE_SYSTEM], "nodes": [node(f"n{i}") for i in range(5)], "pods": [pod("x", on="n1")]})
    objects = _read(server)
    names = [name for name, _ in server.asked]
    assert sorted(names) == sorted(resource.name for resource in ALL_LISTS)
    assert names[0] == "pods"
    assert [each.metadata.name for each in objects.nodes] == ["n0", "n1", "n2", "n3", "n4"]
    assert objects.cluster == "uid-kube-system"


@pytest.mark.parametrize("resource", [resource.name for resource in ALL_LISTS])
def test_a_forbidden_list_ends_the_reading(resource: str) -> None:
    """No rule is weakened because a right is missing."""
    with pytest.raises(KubernetesForbidden, match=resource):
        _read(_Server({"namespaces": [KUBE_SYSTEM]}, forbidden=resource))


def test_a_cluster_without_an_identity_is_an_error() -> None:
    """Without kube-system a plan could be applied to another cluster."""
    with pytest.raises(KubernetesError, match="kube-system"):
        _read(_Server({}))


def test_whole_replicasets_are_read_only_when_a_pod_ends_at_one() -> None:
    """Metadata is enough for those of Deployments."""
    owned: Json = {"metadata": meta("web-1", owner=owner("Deployment", "web")), "spec": {"replicas": 2}}
    bare: Json = {"metadata": meta("bare"), "spec": {"replicas": 2}}
    pods = [pod("x", owner=owner("ReplicaSet", "web-1")), pod("y", owner=owner("ReplicaSet", "bare"))]
    frugal = _Server({"namespaces": [KUBE_SYSTEM], "replicasets": [owned, bare], "pods": pods[:1]})
    whole = _Server({"namespaces": [KUBE_SYSTEM], "replicasets": [owned, bare], "pods": pods})
    assert all(each.spec is None for each in _read(frugal).replica_sets)
    assert all(each.spec is not None for each in _read(whole).replica_sets)
    assert [asked for asked in whole.asked if asked[0] == "replicasets"] == [("replicasets", True), ("replicasets", False)]


def test_what_only_gpus_need_is_listed_where_something_points_to_it() -> None:
    """Claims and slices where a pod claims, Device objects where a node is koordinator's, maps where one is gpushare's; nowhere else."""
    claiming = pod("x", on="n1", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]})
    booked = node("n1", extended={"koordinator.sh/gpu-core": "100"})
    objects = {
        "namespaces": [KUBE_SYSTEM],
        "nodes": [booked],
        "pods": [claiming],
        "resourceclaims": [{"metadata": meta("c")}],
        "devices": [{"metadata": meta("n1", namespace=None)}],
    }
    server = _Server(objects)
    found = _read(server).gpus
    assert [wire.metadata.name for wire in (*(found.claims or ()), *found.devices)] == ["c", "n1"]
    assert {"resourceclaims", "resourceslices", "devices"} <= {name for name, _ in server.asked}
    sharing = {"namespaces": [KUBE_SYSTEM], "nodes": [node("n1", extended={"aliyun.com/gpu-count": "2"})], "configmaps": [UNHEALTHY]}
    assert [wire.metadata.name for wire in _read(_Server(sharing)).gpus.unhealthy] == ["unhealthy-gpu-n1"]
    plain = _Server({"namespaces": [KUBE_SYSTEM], "nodes": [node("n1")], "pods": [pod("x")]})
    _read(plain)
    assert {"resourceclaims", "resourceslices", "devices", "configmaps"}.isdisjoint({name for name, _ in plain.asked})


@pytest.mark.parametrize("missing", ["forbidden", "absent"])
def test_what_only_gpus_need_ends_no_reading(missing: str) -> None:
    """Without the right, or in a cluster that has no such API; the first is counted, and claims are then unknown instead of none."""
    claiming = pod("x", on="n1", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]})
    objects = {"namespaces": [KUBE_SYSTEM], "nodes": [node("n1")], "pods": [claiming]}
    server = _Server(objects, **{missing: "resourceclaims"})
    found = _read(server)
    if missing == "forbidden":
        assert found.gpus.claims is None
        assert found.odd == {"resourceclaims: may not be listed": 1}
    else:
        assert found.gpus.claims == ()
        assert [name for name, _ in server.asked].count("resourceclaims") == 2, "the older version was tried as well"
        assert found.odd == {}


IN_A_GROUP = pod("x", on="n1", annotations={"scheduling.k8s.io/group-name": "g"})


def test_groups_of_pods_are_listed_where_a_pod_carries_the_mark() -> None:
    """Of that scheduler alone, and of none where no pod is in a group."""
    objects = {"namespaces": [KUBE_SYSTEM], "nodes": [node("n1")], "podgroups": [{"metadata": meta("g"), "spec": {"minMember": 4}}]}
    server = _Server({**objects, "pods": [IN_A_GROUP]})
    assert [group.spec.min_member for group in _read(server).gangs.groups[GangSystem.VOLCANO]] == [4]
    assert [name for name, _ in server.asked].count("podgroups") == 1
    plain = _Server({**objects, "pods": [pod("x", on="n1")]})
    assert _read(plain).gangs == GangObjects()
    assert "podgroups" not in {name for name, _ in plain.asked}


def test_the_job_of_a_training_pod_is_listed_by_its_kind() -> None:
    """MPIJobs in their newer version first."""
    worker = pod("x", on="n1", owner=owner("MPIJob", "m", api_version="kubeflow.org/v2beta1"))
    server = _Server({"namespaces": [KUBE_SYSTEM], "nodes": [node("n1")], "pods": [worker], "mpijobs": [{"metadata": meta("m")}]})
    assert [job.metadata.name for job in _read(server).gangs.training_jobs["MPIJob"]] == ["m"]
    assert {"mpijobs"} == {name for name, _ in server.asked if name.endswith("jobs")} - {"jobs", "cronjobs"}


@pytest.mark.parametrize(("missing", "expected"), [("forbidden", ("podgroups.scheduling.volcano.sh",)), ("absent", ())])
def test_groups_that_cannot_be_listed_end_no_reading(missing: str, expected: tuple[str, ...]) -> None:
    """A missing right is told; a cluster that has no such API needs none."""
    server = _Server({"namespaces": [KUBE_SYSTEM], "nodes": [node("n1")], "pods": [IN_A_GROUP]}, **{missing: "podgroups"})
    found = _read(server)
    assert found.gangs.forbidden == expected
    assert found.odd == {}


def test_objects_that_could_not_be_read_are_counted_by_list() -> None:
    """One odd object blinds nobody."""
    server = _Server({"namespaces": [KUBE_SYSTEM], "pods": [pod("x")]}, odd="pods")
    assert _read(server).odd == {"pods: missing name": 1}


def test_the_directory_leaves_out_addresses_of_two_nodes() -> None:
    """An address that two nodes claim points at neither; pods lead to the nodes they are on."""
    objects = ClusterObjects(
        cluster="c",
        nodes=decoded(
            NodeWire,
            node("a", addresses=[("InternalIP", "10.0.0.1"), ("Hostname", "a.example"), ("ExternalIP", "1.1.1.1")]),
            node("b", addresses=[("InternalIP", "10.0.0.2"), ("Hostname", "b.example"), ("ExternalIP", "1.1.1.1")]),
        ),
        pods=decoded(PodWire, pod("exporter", on="a", namespace="monitoring"), pod("waiting")),
    )
    directory = node_directory(objects)
    assert directory.names == {"a", "b"}
    assert directory.addresses == {"10.0.0.1": "a", "a.example": "a", "10.0.0.2": "b", "b.example": "b"}
    assert directory.pod_nodes == {("monitoring", "exporter"): "a"}
