"""From API objects to the tables of GPUs: clusters of every scheme, as the API server writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import ClusterObjects
from rebalancer.collect.gpu.assembling import GpuObjects, GpuWords
from rebalancer.collect.pod_table import PodTable
from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.sightings import SeenDevice, SeenPod, Sightings
from rebalancer.kube.gpu_sharing import UnhealthyWire
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_devices import DeviceClaimWire, NodeDevicesWire, ResourceSliceWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import NO_GPUS, Confidence, FaultReason, Gpus, Health
from rebalancer.state.gpu import GIB, MIB, Family, Scheme
from rebalancer.state.snapshot import dump_snapshot, load_snapshot
from tests.collect_cluster.objects import NOW, Json, container, decoded, node, pod, samples

A100 = {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.count": "2"}
HAMI = json.dumps([{"id": f"GPU-{n}", "index": n, "count": 10, "devmem": 16384, "type": "V100", "health": True} for n in (0, 1)])


def asking(limits: Mapping[str, str], name: str = "main", **more: object) -> Json:
    made = container(name, **more)
    made["resources"] = {"requests": {"cpu": "1", **limits}, "limits": {"cpu": "1", **limits}}
    return made


def gpu_pod(name: str, limits: Mapping[str, str], *, on: str | None = "n1", **more: object) -> Json:
    return pod(name, on=on, containers=[asking(limits)], **more)  # type: ignore[arg-type]


def objects_of(nodes: Sequence[Json], pods: Sequence[Json], **gpus: object) -> ClusterObjects:
    return ClusterObjects(
        cluster="uid-kube-system",
        nodes=decoded(NodeWire, *nodes),
        pods=decoded(PodWire, *pods),
        gpus=GpuObjects(**gpus),  # type: ignore[arg-type]
    )


def state_of(nodes: Sequence[Json], pods: Sequence[Json], *, words: GpuWords | None = None, **gpus: object) -> ClusterState:
    return assemble(objects_of(nodes, pods, **gpus), samples(), at=NOW, gpus=words or GpuWords())


def held(state: ClusterState) -> list[tuple[str, str, str, Confidence]]:
    """(pod, node, device, confidence) of every pair."""
    gpus = state.gpus
    return [
        (
            state.pods.names[pod],
            state.nodes.names[int(gpus.devices.node[device])],
            gpus.devices.name(device),
            Confidence(confidence),
        )
        for device, pod, confidence in zip(gpus.held.device.tolist(), gpus.held.pod.tolist(), gpus.held.confidence.tolist(), strict=True)
    ]


def unplaced(state: ClusterState) -> list[str]:
    return [state.pods.names[row] for row in state.gpus.unplaced.tolist()]


def test_unhealthy_devices_of_gpushare_are_read_from_the_config_map_of_their_node() -> None:
    """Those of other names, and those that name nothing, say nothing."""
    sharing = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}
    maps = [
        {"metadata": {"name": name}, "data": {"gpus": text}}
        for name, text in (("unhealthy-gpu-n1", "1"), ("unhealthy-gpu-n2", ""), ("coredns", "0"))
    ]
    nodes = [node("n1", extended=sharing), node("n2", extended=sharing)]
    state = state_of(nodes, [], unhealthy=decoded(UnhealthyWire, *maps))
    assert state.gpus.devices.health.tolist() == [Health.HEALTHY, Health.UNHEALTHY, Health.HEALTHY, Health.HEALTHY]
    assert state.gpus.faults == ()


def same_gpus(one: Gpus, other: Gpus) -> None:
    tables = ("devices", "held", "use", "held_use")
    for a, b in ((one, other), *((getattr(one, name), getattr(other, name)) for name in tables)):
        for column in fields(a):
            left, right = getattr(a, column.name), getattr(b, column.name)
            if isinstance(left, np.ndarray):
                assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), column.name
            elif column.name not in tables:
                assert left == right, column.name


PLAIN_NODE = node("n1", extended={"nvidia.com/gpu": "2"}, labels=A100)
GIVEN = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-b", "health": "Healthy"}]}]


def test_a_cluster_without_gpus_has_empty_tables() -> None:
    """The very same ones each time, whatever else pods ask for and nodes have."""
    state = state_of([node("n1", extended={"rdma/hca": "1"})], [gpu_pod("a", {"rdma/hca": "1"}), pod("b", on="n1")])
    same_gpus(state.gpus, NO_GPUS)


def test_pods_that_ask_and_nodes_that_have_are_in_the_tables() -> None:
    """Rows of asks are ascending, devices are sliced by node, a pod without GPUs has no ask."""
    state = state_of([node("a0"), PLAIN_NODE], [gpu_pod("both", {"nvidia.com/gpu": "2"}), pod("cpu", on="n1")])
    gpus = state.gpus
    assert [state.pods.names[row] for row in gpus.pod.tolist()] == ["both"]
    (ask,) = gpus.asks_of(0)
    assert (ask.scheme, ask.gpus) == (Scheme.PLAIN, 2.0)
    assert gpus.asks_of(1) == ()
    assert gpus.devices.of_node(0) == slice(0, 0)
    assert gpus.devices.of_node(1) == slice(0, 2)
    assert gpus.devices.memory_bytes.tolist() == [40960 * MIB] * 2
    assert held(state) == [("both", "n1", "0", Confidence.INFERRED), ("both", "n1", "1", Confidence.INFERRED)]
    assert gpus.held.exclusive.tolist() == [True, True]
    assert gpus.held.memory_bytes.tolist() == [40960 * MIB] * 2
    assert gpus.asking(2).tolist() == [True, False]


def test_a_pod_on_some_device_of_its_node_is_unplaced() -> None:
    """Nothing in the API says which."""
    state = state_of([PLAIN_NODE], [gpu_pod("one", {"nvidia.com/gpu": "1"})])
    assert (held(state), unplaced(state), state.gpus.faults) == ([], ["one"], ())


def test_finished_and_pending_pods_ask_and_hold_nothing() -> None:
    """They are not on the devices of any node."""
    done = gpu_pod("done", {"nvidia.com/gpu": "2"}, phase="Succeeded")
    state = state_of([PLAIN_NODE], [done, gpu_pod("waiting", {"nvidia.com/gpu": "2"}, on=None)])
    assert (held(state), unplaced(state)) == ([], [])
    assert len(state.gpus.pod) == 2


def test_a_pending_pod_asks_with_the_meaning_that_all_nodes_agree_on() -> None:
    """And with none where they differ."""
    labels = {**A100, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"}
    sliced = node("n2", extended={"nvidia.com/gpu": "8"}, labels=labels)
    waiting = gpu_pod("w", {"nvidia.com/gpu": "1"}, on=None)
    (agreed,) = state_of([sliced], [waiting]).gpus.asks_of(0)
    assert (agreed.scheme, agreed.gpus) == (Scheme.MPS, 0.25)
    (open_ask,) = state_of([sliced, PLAIN_NODE], [waiting]).gpus.asks_of(0)
    assert open_ask.gpus != open_ask.gpus


def test_what_the_kubelet_gave_names_the_device_and_places_the_pod() -> None:
    """Uuids that no label tells."""
    status = {"containerStatuses": [{"name": "main", "allocatedResourcesStatus": GIVEN}]}
    state = state_of([PLAIN_NODE], [gpu_pod("one", {"nvidia.com/gpu": "1"}, status=status)])
    assert held(state) == [("one", "n1", "GPU-b", Confidence.ALLOCATED)]
    assert (unplaced(state), state.gpus.devices.uuids) == ([], ("GPU-b", ""))


def test_gpushare_places_by_number_in_the_unit_of_the_node() -> None:
    """3 of 15 GiB each on device 1."""
    shared = node("n1", extended={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"})
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
    state = state_of([shared], [gpu_pod("s", {"aliyun.com/gpu-mem": "3"}, annotations=annotations)])
    assert held(state) == [("s", "n1", "1", Confidence.ALLOCATED)]
    assert state.gpus.held.memory_bytes.tolist() == [3 * GIB]
    assert np.isnan(state.gpus.held.compute).all()
    assert dict(state.pods.annotations[0]) == {}, "lists of devices are nobody else's business"


def test_an_index_that_the_node_does_not_have_is_a_fault() -> None:
    """The sentence names pod, node, annotation and number."""
    shared = node("n1", extended={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"})
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": "7", "ALIYUN_COM_GPU_MEM_POD": "3"}
    state = state_of([shared], [gpu_pod("s", {"aliyun.com/gpu-mem": "3"}, annotations=annotations)])
    (fault,) = state.gpus.faults
    assert (fault.reason, fault.pod, fault.node) == (FaultReason.NO_SUCH_DEVICE, "default/s", "n1")
    assert "pod default/s on node n1: annotation ALIYUN_COM_GPU_MEM_IDX names device 7" in fault.sentence
    assert (held(state), unplaced(state)) == ([], ["s"])


def test_hami_places_by_uuid_and_g15_refuses_another_node() -> None:
    """A pod whose annotation names another node is on some device of its own."""
    virtual = node("n1", extended={"nvidia.com/gpu": "20"}, annotations={"hami.io/node-nvidia-register": HAMI})
    right = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,3000,30:;", "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success"}
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}
    pods = [gpu_pod("r", limits, annotations=right), gpu_pod("w", limits, annotations={**right, "hami.io/vgpu-node": "n2"})]
    state = state_of([virtual], pods)
    assert held(state) == [("r", "n1", "1", Confidence.ALLOCATED)]
    assert state.gpus.held.compute.tolist() == [0.3]
    assert [fault.reason for fault in state.gpus.faults] == [FaultReason.WRONG_NODE]
    assert unplaced(state) == ["w"]


def test_volcano_and_tencent_place_by_their_annotations() -> None:
    """Each on a node of its own."""
    volcano = node("n1", annotations={"volcano.sh/node-vgpu-register": "GPU-v,10,32768,V100,true,hami-core:"})
    tencent = node("n2", extended={"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "120"})
    marks = {"volcano.sh/vgpu-ids-new": "GPU-v,NVIDIA,1024,50:", "volcano.sh/bind-phase": "success"}
    by_volcano = gpu_pod("v", {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024"}, annotations=marks)
    index = {"tencent.com/predicate-gpu-idx-0": "1", "tencent.com/gpu-assigned": "true"}
    by_tencent = gpu_pod("t", {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "8"}, on="n2", annotations=index)
    state = state_of([volcano, tencent], [by_tencent, by_volcano])
    assert held(state) == [("v", "n1", "GPU-v", Confidence.ALLOCATED), ("t", "n2", "1", Confidence.ALLOCATED)]
    assert state.gpus.held.memory_bytes.tolist() == [1024 * MIB, 2 * GIB]


def test_koordinator_places_by_minor_of_its_device_object() -> None:
    """The object is cluster-wide and named after the node."""
    booked = node("n1", extended={"koordinator.sh/gpu-core": "200", "nvidia.com/gpu": "2"})
    devices = [
        {"type": "gpu", "id": f"GPU-{n}", "minor": n, "health": True, "resources": {"koordinator.sh/gpu-memory": "16Gi"}} for n in (0, 1)
    ]
    device_object = decoded(NodeDevicesWire, {"metadata": {"name": "n1"}, "spec": {"devices": [*devices, {"type": "rdma", "id": "r"}]}})
    allocated = {"gpu": [{"minor": 1, "resources": {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}}]}
    annotations = {"scheduling.koordinator.sh/device-allocated": json.dumps(allocated)}
    limits = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}
    state = state_of([booked], [gpu_pod("k", limits, annotations=annotations)], devices=device_object)
    assert held(state) == [("k", "n1", "1", Confidence.DECLARED)]
    assert state.gpus.held.memory_bytes.tolist() == [8 * GIB]
    assert state.gpus.devices.uuids == ("GPU-0", "GPU-1")


@pytest.mark.parametrize("report", ["1", "GPU-b"])
def test_g19_fractions_of_kai_are_on_the_device_that_their_group_reserves(report: str) -> None:
    """The reservation pod reports number or uuid, and takes nothing itself."""
    reserving = pod(
        "gpu-reservation-n1-x",
        namespace="kai-resource-reservation",
        on="n1",
        containers=[asking({"nvidia.com/gpu": "1"})],
        labels={"runai-gpu-group": "g1"},
        annotations={"run.ai/reserve_for_gpu_index": report},
        status={"containerStatuses": [{"name": "main", "allocatedResourcesStatus": GIVEN if report != "1" else []}]},
    )
    halves = [pod(name, on="n1", labels={"runai-gpu-group": "g1"}, annotations={"gpu-fraction": "0.5"}) for name in ("a", "b")]
    state = state_of([PLAIN_NODE], [*halves, reserving])
    device = "1" if report == "1" else "GPU-b"
    assert held(state) == [(name, "n1", device, Confidence.ALLOCATED) for name in ("a", "b", "gpu-reservation-n1-x")]
    assert state.gpus.held.compute.tolist() == [0.5, 0.5, 0.0]
    assert state.gpus.asks_of(2)[0].scheme is Scheme.KAI_RESERVATION


def test_claims_place_by_the_slices_of_the_node() -> None:
    """From a template: the pod's status names the claim, the claim its device, a slice the uuid. The API's older version gives the same."""
    gpu = {"type": {"string": "gpu"}, "uuid": {"string": "GPU-d"}, "productName": {"string": "H100"}, "index": {"int": 0}}
    device = {"name": "gpu-0", "attributes": gpu, "capacity": {"memory": {"value": "80Gi"}}}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 2}}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    claim = {
        "metadata": {"name": "c-1", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
        "status": {
            "allocation": {"devices": {"results": [{"request": "r", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    }
    user = container("main")
    user["resources"] = {"claims": [{"name": "gpu"}]}
    claiming = pod(
        "p",
        on="n1",
        containers=[user],
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c-1"}]},
    )
    outdated = {"metadata": {"name": "s0"}, "spec": {**spec, "pool": {"name": "n1", "generation": 1}, "devices": [{"name": "gone"}]}}
    slices = decoded(ResourceSliceWire, outdated, {"metadata": {"name": "s1"}, "spec": {**spec, "devices": [device]}})
    state = state_of([node("n1")], [claiming], claims=decoded(DeviceClaimWire, claim), slices=slices)
    assert held(state) == [("p", "n1", "0", Confidence.ALLOCATED)]
    (ask,) = state.gpus.asks_of(0)
    assert (ask.scheme, ask.gpus, ask.container) == (Scheme.DRA, 1.0, "main")
    assert state.gpus.held.memory_bytes.tolist() == [80 * GIB]
    old_claim = {**claim, "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu.nvidia.com"}]}}}
    old_device = {"name": "gpu-0", "basic": {"attributes": gpu, "capacity": device["capacity"]}}
    old = state_of(
        [node("n1")],
        [claiming],
        claims=decoded(DeviceClaimWire, old_claim),
        slices=decoded(ResourceSliceWire, {"metadata": {"name": "s1"}, "spec": {**spec, "devices": [old_device]}}),
    )
    same_gpus(state.gpus, old.gpus)


def test_an_extended_resource_that_a_claim_was_made_for_is_what_the_claim_is() -> None:
    """Its name says nothing of GPUs, the DeviceClass of the claim does. Where the name is known, it is the one ask that there is."""
    gpu = {"type": {"string": "gpu"}, "uuid": {"string": "GPU-d"}, "index": {"int": 0}}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1}}
    slices = decoded(ResourceSliceWire, {"metadata": {"name": "s"}, "spec": {**spec, "devices": [{"name": "gpu-0", "attributes": gpu}]}})
    result = {"request": "r", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    claim = {
        "metadata": {"name": "made", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    for resource, scheme in (("example.com/fast", Scheme.DRA), ("nvidia.com/gpu", Scheme.PLAIN)):
        made = gpu_pod("p", {resource: "1"}, status={"extendedResourceClaimStatus": {"resourceClaimName": "made"}})
        state = state_of([node("n1")], [made], claims=decoded(DeviceClaimWire, claim), slices=slices)
        assert [ask.scheme for ask in state.gpus.asks_of(0)] == [scheme]
        assert held(state) == [("p", "n1", "0", Confidence.ALLOCATED)]


def test_a_claim_that_is_not_there_is_a_fault_of_its_pod() -> None:
    """What it asks for is then not known either; what the pod asks for beside it is placed all the same."""
    claiming = pod("p", on="n1", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "lost"}]})
    also = pod(
        "q",
        on="n1",
        containers=[asking({"nvidia.com/gpu": "2"})],
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "lost"}]},
    )
    state = state_of([PLAIN_NODE], [claiming, also])
    assert [(fault.pod, fault.reason) for fault in state.gpus.faults] == [
        ("default/p", FaultReason.MISSING_OBJECT),
        ("default/q", FaultReason.MISSING_OBJECT),
    ]
    assert unplaced(state) == ["p", "q"]
    assert {pod for pod, *_ in held(state)} == {"q"}
    (unknown,) = state.gpus.asks_of(0)
    assert unknown.gpus != unknown.gpus
    forbidden = state_of([PLAIN_NODE], [claiming], claims=None)
    assert forbidden.gpus.asks_of(0) == (), "where claims may not be listed that is said once, and not of every pod"


def test_exporters_name_devices_and_place_pods() -> None:
    """Their labels reach the tables through the seam; of pods that ask for no GPU they say nothing."""
    seen = Sightings(
        devices=(
            SeenDevice(node="n1", uuid="GPU-a", index=0, memory_bytes=40 * GIB),
            SeenDevice(node="n1", uuid="GPU-b", index=1, memory_bytes=80 * GIB),
            SeenDevice(node="elsewhere", uuid="GPU-z", index=0),
        ),
        pods=(
            SeenPod(node="n1", uuid="GPU-b", namespace="default", pod="one"),
            SeenPod(node="n1", uuid="GPU-a", namespace="default", pod="exporter"),
        ),
    )
    state = state_of([PLAIN_NODE], [gpu_pod("one", {"nvidia.com/gpu": "1"}), pod("exporter", on="n1")], words=GpuWords(sightings=seen))
    assert held(state) == [("one", "n1", "1", Confidence.REPORTED)]
    assert state.gpus.devices.uuids == ("GPU-a", "GPU-b")
    assert state.gpus.devices.memory_bytes.tolist() == [40 * GIB, 80 * GIB]


def test_g13_sightings_tell_unequal_devices_of_a_gpushare_node_apart() -> None:
    """16 and 32 GiB; before, the memory of each is unknown."""
    shared = node("n1", extended={"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"})
    assert np.isnan(state_of([shared], []).gpus.devices.memory_bytes).all()
    seen = tuple(SeenDevice(node="n1", uuid=f"GPU-{n}", index=n, memory_bytes=(16, 32)[n] * GIB) for n in (0, 1))
    told = state_of([shared], [], words=GpuWords(sightings=Sightings(devices=seen)))
    assert told.gpus.devices.memory_bytes.tolist() == [16 * GIB, 32 * GIB]


def test_a_device_that_exporters_see_and_nobody_tells_of_is_a_fault() -> None:
    """It makes no device."""
    seen = tuple(SeenDevice(node="n1", uuid=f"GPU-{n}", index=n) for n in range(3))
    state = state_of([PLAIN_NODE], [], words=GpuWords(sightings=Sightings(devices=seen)))
    assert [(fault.node, fault.reason) for fault in state.gpus.faults] == [("n1", FaultReason.DEVICES_DISAGREE)]
    assert len(state.gpus.devices) == 2


def test_names_of_the_policy_reach_pods_and_nodes() -> None:
    """A renamed resource is nothing before, and a device after."""
    renamed = node("n1", extended={"nvidia.com/a100": "1"})
    asks = gpu_pod("p", {"nvidia.com/a100": "1"})
    same_gpus(state_of([renamed], [asks]).gpus, NO_GPUS)
    names = GpuNames(plain=(("nvidia.com/a100", Family.NVIDIA),))
    assert held(state_of([renamed], [asks], words=GpuWords(names=names))) == [("p", "n1", "0", Confidence.INFERRED)]


def test_what_is_kept_from_cycle_to_cycle_changes_nothing() -> None:
    """The tables of a table of pods that has seen other cycles are those of a fresh one."""
    virtual = node("n1", extended={"nvidia.com/gpu": "20"}, annotations={"hami.io/node-nvidia-register": HAMI})
    marks = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,3000,30:;", "hami.io/vgpu-node": "n1"}
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    table = PodTable()
    cycles = [
        ([virtual], [gpu_pod("a", limits, annotations=marks, resourceVersion="1")]),
        ([virtual], [gpu_pod("a", limits, annotations=marks, resourceVersion="1"), gpu_pod("b", limits, resourceVersion="2")]),
        ([PLAIN_NODE], [gpu_pod("a", limits, annotations=marks, resourceVersion="1"), gpu_pod("b", limits, resourceVersion="2")]),
        ([PLAIN_NODE], [gpu_pod("b", {"nvidia.com/gpu": "2"}, resourceVersion="3")]),
        ([node("n1")], []),
    ]
    for nodes, pods in cycles:
        for words in (GpuWords(), GpuWords(names=GpuNames(hami_memory_scaling=2.0))):
            objects = objects_of(nodes, pods)
            kept = assemble(replace(objects, columns=table.read(objects.pods)), samples(), at=NOW, gpus=words)
            same_gpus(kept.gpus, assemble(objects, samples(), at=NOW, gpus=words).gpus)


def test_tables_of_gpus_are_in_a_snapshot() -> None:
    """And come back as they were, faults and NaN included."""
    shared = node("n1", extended={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"})
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3"}
    bad = {**annotations, "ALIYUN_COM_GPU_MEM_IDX": "9"}
    pods = [gpu_pod(name, {"aliyun.com/gpu-mem": "3"}, annotations=each) for name, each in (("a", annotations), ("b", bad))]
    state = state_of([shared], pods)
    same_gpus(load_snapshot(dump_snapshot(state)).gpus, state.gpus)
