"""Which devices a node has: the golden rows of every source, and what happens when sources do not go together."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from rebalancer.gpu.meaning import UNKNOWN_UNIT, PlainUnit
from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext, ObjectDevice, SliceDevice
from rebalancer.gpu.nodes.hami import is_lost
from rebalancer.gpu.nodes.reading import NodeDevices, devices_of
from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.state.devices import DeviceSource, FaultReason, Health
from rebalancer.state.gpu import GIB, MIB, Family, Scheme
from tests.gpu.asking import same

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.count": "2"}
REGISTER = json.dumps(
    [
        {
            "id": "GPU-a",
            "index": 0,
            "count": 10,
            "devmem": 32768,
            "devcore": 100,
            "type": "NVIDIA-V100",
            "mode": "hami-core",
            "health": True,
        },
        {"id": "GPU-b", "index": 1, "count": 10, "devmem": 16384, "devcore": 100, "type": "NVIDIA-V100", "numa": 0, "health": False},
    ]
)


def node(
    resources: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    objects: tuple[ObjectDevice, ...] | None = None,
    slices: tuple[SliceDevice, ...] = (),
    unhealthy: str = "",
) -> NodeClues:
    return NodeClues(
        name="n1",
        labels=labels or {},
        annotations=annotations or {},
        capacity=resources or {},
        allocatable=allocatable if allocatable is not None else resources or {},
        objects=objects,
        slices=slices,
        unhealthy=unhealthy,
    )


def read(of: NodeClues, **context: object) -> NodeDevices:
    return devices_of(of, NodeContext(**context))  # type: ignore[arg-type]


def devices(of: NodeClues, **context: object) -> tuple[FoundDevice, ...]:
    """Of a node about which everything goes together."""
    found = read(of, **context)
    assert found.faults == ()
    assert all(each.trusted for each in found.devices)
    return found.devices


def test_labels_tell_model_memory_and_number_of_whole_devices() -> None:
    """The memory label is MiB of one device."""
    found = devices(node({"nvidia.com/gpu": "2"}, labels=A100))
    assert [(each.index, each.model, each.memory_bytes, each.replicas) for each in found] == [
        (0, "NVIDIA-A100-SXM4-40GB", 40960 * MIB, 1.0),
        (1, "NVIDIA-A100-SXM4-40GB", 40960 * MIB, 1.0),
    ]
    assert {(each.scheme, each.source, each.health) for each in found} == {(Scheme.PLAIN, DeviceSource.LABELS, Health.HEALTHY)}


def test_without_labels_a_unit_is_a_device_of_which_nothing_else_is_known() -> None:
    """The source says that it is capacity alone."""
    found = devices(node({"nvidia.com/gpu": "2"}))
    assert [(each.source, each.model, each.replicas) for each in found] == [(DeviceSource.CAPACITY, "", 1.0)] * 2
    assert all(same(each.memory_bytes, None) for each in found)


@pytest.mark.parametrize(("strategy", "scheme"), [("time-slicing", Scheme.TIME_SLICING), ("mps", Scheme.MPS)])
def test_replicas_are_of_one_device_and_capacity_is_their_product(strategy: str, scheme: Scheme) -> None:
    """``gpu.replicas`` 4 on two devices are eight units, and the product loses its suffix."""
    labels = {**A100, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": strategy, "nvidia.com/gpu.product": "A100-SHARED"}
    found = devices(node({"nvidia.com/gpu": "8"}, labels=labels))
    assert [(each.scheme, each.replicas, each.model) for each in found] == [(scheme, 4.0, "A100")] * 2


@pytest.mark.parametrize("replicas", ["0", "1"])
def test_one_replica_and_none_are_no_sharing(replicas: str) -> None:
    """0 is how the label says that sharing is off."""
    labels = {**A100, "nvidia.com/gpu.replicas": replicas, "nvidia.com/gpu.sharing-strategy": "none"}
    assert [each.scheme for each in devices(node({"nvidia.com/gpu": "2"}, labels=labels))] == [Scheme.PLAIN] * 2


def test_renamed_replicas_are_counted_and_the_plain_name_stays_a_device() -> None:
    """``nvidia.com/gpu.shared`` carries the replicas."""
    labels = {**A100, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    found = read(node({"nvidia.com/gpu.shared": "8"}, labels=labels))
    assert [each.replicas for each in found.devices] == [4.0] * 2
    assert found.meaning.nvidia == PlainUnit()
    assert found.meaning.shared == (("nvidia.com/gpu.shared", PlainUnit(Scheme.TIME_SLICING, 4.0)),)


def test_mig_of_strategy_single_is_instances_of_the_profile_in_the_product() -> None:
    """Count and memory are those of instances."""
    labels = {
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "nvidia.com/gpu.count": "7",
        "nvidia.com/gpu.memory": "4864",
    }
    found = read(node({"nvidia.com/gpu": "7"}, labels=labels))
    assert [(each.mig_profile, each.model, each.index, each.memory_exact) for each in found.devices] == [
        ("1g.5gb", "NVIDIA-A100-SXM4-40GB", -1, True)
    ] * 7
    assert found.meaning.nvidia == PlainUnit(Scheme.MIG, 1.0, "1g.5gb")


def test_mig_of_strategy_mixed_is_instances_beside_whole_devices() -> None:
    """Each resource with its own labels; whole devices are those of the plain resource."""
    labels = {
        **A100,
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.me.count": "1",
        "nvidia.com/mig-2g.10gb.count": "3",
        "nvidia.com/mig-2g.10gb.memory": "9984",
    }
    found = devices(node({"nvidia.com/gpu": "1", "nvidia.com/mig-2g.10gb": "3", "nvidia.com/mig-1g.10gb.me": "1"}, labels=labels))
    assert sorted((each.mig_profile, each.memory_bytes if each.memory_bytes == each.memory_bytes else 0) for each in found) == [
        ("", 40960 * MIB),
        ("1g.10gb+me", 0),
        *([("2g.10gb", 9984 * MIB)] * 3),
    ]


def test_gke_tells_sharing_by_its_own_labels() -> None:
    """Where feature discovery has written nothing."""
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
    }
    found = devices(node({"nvidia.com/gpu": "6"}, labels=labels))
    assert [(each.scheme, each.replicas, each.model) for each in found] == [(Scheme.TIME_SLICING, 3.0, "nvidia-tesla-t4")] * 2


@pytest.mark.parametrize(
    ("resources", "labels", "reason"),
    [
        ({"nvidia.com/gpu": "7"}, {**A100, "nvidia.com/gpu.replicas": "4"}, FaultReason.DEVICES_DISAGREE),
        ({"nvidia.com/gpu": "3"}, A100, FaultReason.DEVICES_DISAGREE),
        (
            {"nvidia.com/gpu": "2"},
            {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.sharing-strategy": "mps"},
            FaultReason.DEVICES_DISAGREE,
        ),
        ({"nvidia.com/gpu": "2"}, {**A100, "nvidia.com/gpu.memory": "lots"}, FaultReason.UNREADABLE_NODE),
        ({"nvidia.com/gpu": "2"}, {**A100, "nvidia.com/gpu.sharing-strategy": "dice"}, FaultReason.UNREADABLE_NODE),
        ({"nvidia.com/gpu": "two"}, {}, FaultReason.UNREADABLE_NODE),
        ({"nvidia.com/mig-1g.5gb": "2"}, {"nvidia.com/mig-1g.5gb.count": "3"}, FaultReason.DEVICES_DISAGREE),
    ],
)
def test_labels_that_make_no_sense_leave_no_device_to_decide_on(
    resources: dict[str, str], labels: dict[str, str], reason: FaultReason
) -> None:
    """Nothing is divided, rounded or taken for granted."""
    found = read(node(resources, labels=labels))
    assert [fault.reason for fault in found.faults] == [reason]
    assert found.devices == ()


def test_replicas_that_nobody_counts_are_unknown() -> None:
    """The devices are counted all the same, by their own label."""
    found = devices(node({"nvidia.com/gpu": "8"}, labels={**A100, "nvidia.com/gpu.sharing-strategy": "mps"}))
    assert [(each.scheme, each.replicas != each.replicas) for each in found] == [(Scheme.MPS, True)] * 2


def test_a_label_that_cannot_be_read_leaves_the_meaning_of_an_ask_unknown() -> None:
    """A unit of that node may be anything."""
    assert read(node({"nvidia.com/gpu": "2"}, labels={**A100, "nvidia.com/gpu.replicas": "many"})).meaning.nvidia == UNKNOWN_UNIT


@pytest.mark.parametrize(
    ("total", "unit", "expected"), [("30", None, 15 * GIB), ("32552", None, 16276 * MIB), ("150", "GiB", 75 * GIB), ("8", "MiB", 4 * MIB)]
)
def test_gpushare_divides_the_total_and_finds_the_unit_by_its_size_or_the_policy(total: str, unit: str | None, expected: float) -> None:
    """More than 100 per device are MiB, unless the policy says what the unit is."""
    names = GpuNames() if unit is None else GpuNames(gpushare_unit_bytes={"GiB": GIB, "MiB": MIB}[unit])
    found = devices(node({"aliyun.com/gpu-mem": total, "aliyun.com/gpu-count": "2"}), names=names)
    assert [(each.index, each.handed_out_bytes) for each in found] == [(0, expected), (1, expected)]
    assert {each.scheme for each in found} == {Scheme.GPUSHARE}


def test_g13_what_gpushare_divides_is_not_what_each_device_has() -> None:
    """On a node of several devices the memory of each is unknown; of a single one the total is its own."""
    several = devices(node({"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}))
    assert all(same(each.memory_bytes, None) for each in several)
    (single,) = devices(node({"aliyun.com/gpu-mem": "15", "aliyun.com/gpu-count": "1"}))
    assert (single.memory_bytes, single.memory_exact) == (15 * GIB, True)


def test_gpushare_that_does_not_divide_evenly_is_a_fault() -> None:
    """The protocol cannot mean such a node."""
    found = read(node({"aliyun.com/gpu-mem": "31", "aliyun.com/gpu-count": "2"}))
    assert [fault.reason for fault in found.faults] == [FaultReason.DEVICES_DISAGREE]


def test_the_devices_that_gpushare_calls_unhealthy_are() -> None:
    """By their numbers, in the ConfigMap of the node; the others are as the node's figures say."""
    two = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}
    assert [each.health for each in devices(node(two, unhealthy="1"))] == [Health.HEALTHY, Health.UNHEALTHY]
    assert [each.health for each in devices(node(two, unhealthy=""))] == [Health.HEALTHY, Health.HEALTHY]


@pytest.mark.parametrize(("text", "clause"), [("0,2", "names device 2, and the node has 2"), ("one", "one")])
def test_an_unhealthy_device_that_is_none_leaves_the_node_unknown(text: str, clause: str) -> None:
    """Which device is meant nobody knows, so none is known to be healthy."""
    found = read(node({"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}, unhealthy=text))
    assert found.devices == ()
    assert clause in found.faults[0].clause


def test_hami_registers_each_device_with_uuid_memory_and_health() -> None:
    """The capacity of 20 virtual GPUs is two devices."""
    found = read(node({"nvidia.com/gpu": "20"}, annotations={"hami.io/node-nvidia-register": REGISTER, "hami.io/device-cordon": "GPU-b"}))
    assert found.faults == ()
    assert [(d.uuid, d.index, d.memory_bytes, d.health, d.cordoned, d.replicas) for d in found.devices] == [
        ("GPU-a", 0, 32768 * MIB, Health.HEALTHY, False, 10.0),
        ("GPU-b", 1, 16384 * MIB, Health.UNHEALTHY, True, 10.0),
    ]
    assert found.meaning.hami


def test_an_older_register_of_hami_is_joined_by_colons() -> None:
    """With and without index and mode at the end."""
    text = "GPU-a,10,32768,100,NVIDIA-V100,0,true:GPU-b,10,32768,100,NVIDIA-V100,0,false,1,hami-core:"
    found = devices(node({"nvidia.com/gpu": "20"}, annotations={"hami.io/node-nvidia-register": text}))
    assert [(each.uuid, each.index, each.health) for each in found] == [("GPU-a", -1, Health.HEALTHY), ("GPU-b", 1, Health.UNHEALTHY)]


def test_memory_that_hami_scales_is_not_the_memory_of_the_device() -> None:
    """By the policy's factor, or by the label that says less."""
    annotations = {"hami.io/node-nvidia-register": "GPU-a,10,81920,100,A100,0,true:"}
    (by_policy,) = devices(node(annotations=annotations), names=GpuNames(hami_memory_scaling=2.0))
    assert (by_policy.memory_bytes, by_policy.handed_out_bytes) == (40960 * MIB, 81920 * MIB)
    (by_label,) = devices(node(annotations=annotations, labels={**A100, "nvidia.com/gpu.count": "1"}))
    assert (by_label.memory_bytes, by_label.handed_out_bytes) == (40960 * MIB, 81920 * MIB)


def test_a_heartbeat_of_hami_counts_where_it_names_its_time_zone() -> None:
    """Older than five minutes is lost; a local time without a zone says nothing."""
    old = {"hami.io/node-handshake": "Reported 2024-01-23 04:30:04.434037031 +0000 UTC m=+1104711.77"}
    at = 1705984204.0
    assert is_lost(old, at=at + 301)
    assert not is_lost(old, at=at + 200)
    assert not is_lost({"hami.io/node-handshake": "Requesting_2024.01.23 04:30:04"}, at=at + 9000)
    annotations = {"hami.io/node-nvidia-register": REGISTER}
    assert {each.health for each in devices(node(annotations=annotations), lost=True)} == {Health.UNHEALTHY}


@pytest.mark.parametrize(
    "text",
    [
        "[{",
        '[{"id":"GPU-a"}]',
        '[{"id":"","count":1,"devmem":1}]',
        '[{"id":"GPU-a","count":1,"devmem":0}]',
        '[{"id":"GPU-a","count":1,"devmem":5},{"id":"GPU-a","count":1,"devmem":5}]',
        "GPU-a,ten,32768,100,V100,0,true:",
        "GPU-a,10:",
        "GPU-a,10,32768,100,V100,0,perhaps:",
    ],
)
def test_a_register_that_cannot_be_read_is_named_and_gives_no_device(text: str) -> None:
    """Not even those of its entries that could be."""
    found = read(node(annotations={"hami.io/node-nvidia-register": text}))
    assert [(fault.reason, fault.scheme) for fault in found.faults] == [(FaultReason.UNREADABLE_NODE, Scheme.HAMI)]
    assert "hami.io/node-nvidia-register" in found.faults[0].clause
    assert found.devices == ()


def test_volcano_registers_virtual_gpus() -> None:
    """uuid, count, MiB, type, health, mode."""
    text = "GPU-a,10,32768,NVIDIA-V100,true,hami-core:GPU-b,10,32768,NVIDIA-V100,false,hami-core:"
    found = devices(node({"volcano.sh/vgpu-number": "20"}, annotations={"volcano.sh/node-vgpu-register": text}))
    assert [(each.uuid, each.health, each.memory_bytes) for each in found] == [
        ("GPU-a", Health.HEALTHY, 32768 * MIB),
        ("GPU-b", Health.UNHEALTHY, 32768 * MIB),
    ]


def test_volcano_names_unhealthy_devices_by_number() -> None:
    """Of its older sharing, by memory and number."""
    resources = {"volcano.sh/gpu-memory": "32552", "volcano.sh/gpu-number": "2"}
    found = devices(node(resources, annotations={"volcano.sh/gpu-unhealthy-ids": "1"}))
    assert [(each.index, each.handed_out_bytes, each.health) for each in found] == [
        (0, 16276 * MIB, Health.HEALTHY),
        (1, 16276 * MIB, Health.UNHEALTHY),
    ]


def test_koordinator_tells_devices_by_its_object() -> None:
    """Minor, uuid, bytes, health; the model from a label of the node."""
    objects = (
        ObjectDevice(uuid="GPU-a", minor=0, healthy=True, resources={"koordinator.sh/gpu-memory": "16Gi"}),
        ObjectDevice(uuid="GPU-b", minor=1, healthy=False, resources={"koordinator.sh/gpu-memory": "32Gi"}),
    )
    labels = {"node.koordinator.sh/gpu-model": "V100"}
    found = devices(node({"nvidia.com/gpu": "2", "koordinator.sh/gpu-core": "200"}, labels=labels, objects=objects))
    assert [(d.index, d.uuid, d.memory_bytes, d.health, d.model) for d in found] == [
        (0, "GPU-a", 16 * GIB, Health.HEALTHY, "V100"),
        (1, "GPU-b", 32 * GIB, Health.UNHEALTHY, "V100"),
    ]


def test_koordinator_without_its_object_tells_devices_by_capacity() -> None:
    """100 of gpu-core are one."""
    found = devices(node({"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory": "34359738368"}))
    assert [(each.index, each.handed_out_bytes) for each in found] == [(0, 16 * GIB), (1, 16 * GIB)]


def test_tencent_counts_hundredths_and_blocks() -> None:
    """256 MiB a block."""
    labels = {"gaia.tencent.com/gpu-model": "T4"}
    found = devices(node({"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "120"}, labels=labels))
    assert [(each.index, each.handed_out_bytes, each.model) for each in found] == [(0, 15 * GIB, "T4"), (1, 15 * GIB, "T4")]


def test_amd_labels_tell_product_and_memory() -> None:
    """In both styles; partitions have no memory of their own in any label."""
    labels = {"amd.com/gpu.product-name": "MI300X", "amd.com/gpu.vram": "192G"}
    (found,) = devices(node({"amd.com/gpu": "1"}, labels=labels))
    assert (found.family, found.model, found.memory_bytes) == (Family.AMD, "MI300X", 192 * GIB)
    (old,) = devices(node({"amd.com/gpu": "1"}, labels={"beta.amd.com/gpu.vram.16G": "1"}))
    assert old.memory_bytes == 16 * GIB
    cut = read(node({"amd.com/gpu": "8"}, labels={**labels, "amd.com/gpu.compute-memory-partition": "CPX_NPS4"}))
    assert {(each.scheme, each.mig_profile) for each in cut.devices} == {(Scheme.PARTITION, "cpx_nps4")}
    assert all(same(each.memory_bytes, None) for each in cut.devices)
    assert cut.meaning.amd == PlainUnit(Scheme.PARTITION, 1.0, "cpx_nps4")
    mixed = devices(node({"amd.com/cpx_nps4": "2", "amd.com/gpu": "1"}, labels=labels))
    assert sorted(each.mig_profile for each in mixed) == ["", "cpx_nps4", "cpx_nps4"]


def test_resource_slices_tell_gpus_and_instances() -> None:
    """A device that is offered to virtual machines is the same one again; another driver's devices are no GPUs."""
    gpu = {"type": "gpu", "uuid": "GPU-a", "productName": "H100", "index": "0"}
    mig = {"type": "mig", "uuid": "MIG-b", "productName": "H100", "profile": "1g.10gb", "parentUUID": "GPU-c"}
    found = devices(
        node(
            slices=(
                SliceDevice(driver="gpu.nvidia.com", pool="n1", name="gpu-0", attributes=gpu, memory="80Gi"),
                SliceDevice(driver="gpu.nvidia.com", pool="n1", name="mig-1", attributes=mig, memory="10Gi"),
                SliceDevice(driver="gpu.nvidia.com", pool="n1", name="vfio-0", attributes={"type": "vfio"}),
                SliceDevice(driver="dra.net", pool="n1", name="eth0"),
            )
        )
    )
    assert [(d.uuid, d.parent, d.mig_profile, d.memory_bytes, d.claimed_as) for d in found] == [
        ("GPU-a", "", "", 80 * GIB, ("gpu.nvidia.com", "n1", "gpu-0")),
        ("MIG-b", "GPU-c", "1g.10gb", 10 * GIB, ("gpu.nvidia.com", "n1", "mig-1")),
    ]


def test_two_schemes_on_one_node_are_named_and_their_devices_not_trusted() -> None:
    """gpushare beside NVIDIA's own plugin hands out the same devices twice."""
    found = read(node({"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2", "nvidia.com/gpu": "2"}))
    assert [fault.reason for fault in found.faults] == [FaultReason.TWO_SCHEMES]
    assert "gpushare and plain" in found.faults[0].clause
    assert [each.trusted for each in found.devices] == [False, False]
    assert all(same(each.handed_out_bytes, None) for each in found.devices)


def test_a_scheme_that_has_gone_and_left_its_name_behind_is_no_second_one() -> None:
    """Capacity stays at 0 when a device plugin is removed."""
    found = devices(node({"aliyun.com/gpu-mem": "0", "aliyun.com/gpu-count": "0", "nvidia.com/gpu": "2"}, labels=A100))
    assert {each.scheme for each in found} == {Scheme.PLAIN}


def test_two_sources_that_count_differently_are_named() -> None:
    """HAMi registers one device, labels count two."""
    found = read(node(annotations={"hami.io/node-nvidia-register": "GPU-a,10,40960,100,A100,0,true:"}, labels=A100))
    assert [fault.reason for fault in found.faults] == [FaultReason.DEVICES_DISAGREE]
    assert [each.trusted for each in found.devices] == [False]


def test_a_plugin_that_gives_away_fewer_than_there_are_leaves_health_open() -> None:
    """Which is sick, nobody says; when it gives none, all are."""
    some = devices(node({"nvidia.com/gpu": "2"}, labels=A100, allocatable={"nvidia.com/gpu": "1"}))
    assert {each.health for each in some} == {Health.UNKNOWN}
    none = devices(node({"nvidia.com/gpu": "2"}, labels=A100, allocatable={"nvidia.com/gpu": "0"}))
    assert {each.health for each in none} == {Health.UNHEALTHY}


def test_a_node_without_gpus_has_none() -> None:
    """Whatever else it has."""
    found = read(node({"rdma/hca": "1"}, labels={"kubernetes.io/os": "linux"}))
    assert (found.devices, found.faults) == ((), ())
