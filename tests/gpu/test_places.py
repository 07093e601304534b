"""Which device a pod holds: the golden rows of every scheme, how sure it is, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rebalancer.gpu.identities import SeenUuid, named
from rebalancer.gpu.meaning import Meaning
from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.gpu.places.clues import ClaimedDevice, KubeletDevice, PlaceClues, kai_groups
from rebalancer.gpu.places.held import NodeView
from rebalancer.gpu.places.reading import Placed, place
from rebalancer.gpu.sightings import SeenDevice
from rebalancer.state.devices import Confidence, DeviceSource, FaultReason, Health
from rebalancer.state.gpu import GIB, MIB, UNKNOWN, Family, GpuAsk, Scheme
from tests.gpu.asking import same


def device(
    index: int = -1, uuid: str = "", *, scheme: Scheme = Scheme.PLAIN, replicas: float = 1.0, profile: str = "", **more: object
) -> FoundDevice:
    return FoundDevice(
        family=Family.NVIDIA,
        scheme=scheme,
        source=DeviceSource.LABELS,
        index=index,
        uuid=uuid,
        replicas=replicas,
        mig_profile=profile,
        **more,  # type: ignore[arg-type]
    )


def view(*devices: FoundDevice, meaning: Meaning | None = None, groups: Mapping[str, int] | None = None) -> NodeView:
    return NodeView("n1", devices, meaning or Meaning(gpushare_unit_bytes=GIB), groups or {})


TWO = view(device(0, "GPU-a"), device(1, "GPU-b"))


def ask(scheme: Scheme, devices: float = 1.0, **more: object) -> GpuAsk:
    return GpuAsk(family=Family.NVIDIA, scheme=scheme, devices=devices, **more)  # type: ignore[arg-type]


def whole(count: float, scheme: Scheme = Scheme.PLAIN) -> GpuAsk:
    return ask(scheme, count, compute=1.0, memory_share=1.0, gpus=count)


def placed(
    annotations: Mapping[str, str] | None,
    asked: GpuAsk | Sequence[GpuAsk],
    node: NodeView = TWO,
    *,
    reported: Sequence[int] = (),
    **clues: object,
) -> Placed:
    asks = (asked,) if isinstance(asked, GpuAsk) else tuple(asked)
    return place(PlaceClues(node="n1", annotations=annotations or {}, **clues), node, asks, reported=reported)  # type: ignore[arg-type]


def the(found: Placed) -> tuple[int, Confidence, float, float]:
    """device, confidence, compute, bytes of the only thing that is held; -1 for unknown figures."""
    assert found.faults == ()
    (held,) = found.held
    return (
        held.device,
        held.confidence,
        -1 if held.compute != held.compute else held.compute,
        -1 if held.memory_bytes != held.memory_bytes else held.memory_bytes,
    )


GPUSHARE = ask(Scheme.GPUSHARE, memory_bytes=3 * GIB)


@pytest.mark.parametrize(("assigned", "confidence"), [("false", Confidence.DECLARED), ("true", Confidence.ALLOCATED)])
def test_gpushare_names_one_device_by_number(assigned: str, confidence: Confidence) -> None:
    """It is the scheduler's word until the plugin has assigned it."""
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3", "ALIYUN_COM_GPU_MEM_ASSIGNED": assigned}
    assert the(placed(annotations, GPUSHARE)) == (1, confidence, -1, 3 * GIB)


def test_the_newer_annotation_of_gpushare_is_read_first_and_adds_up_containers() -> None:
    """Amounts by container and device."""
    annotations = {"scheduler.framework.gpushare.allocation": '{"0":{"0":2},"1":{"0":1,"1":4}}', "ALIYUN_COM_GPU_MEM_IDX": "1"}
    found = placed(annotations, GPUSHARE)
    assert [(each.device, each.memory_bytes) for each in found.held] == [(0, 3 * GIB), (1, 4 * GIB)]


@pytest.mark.parametrize("annotations", [{}, {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, {"ALIYUN_COM_GPU_MEM_IDX": ""}])
def test_without_an_index_the_pod_is_on_some_device_of_its_node(annotations: dict[str, str]) -> None:
    """Nothing is held for sure, nothing is a fault."""
    found = placed(annotations, GPUSHARE)
    assert (found.held, found.complete, found.faults) == ((), False, ())


HAMI = ask(Scheme.HAMI, 2.0)


def test_hami_lists_devices_by_container() -> None:
    """uuid, type, MiB, percent of cores; an empty container is a semicolon."""
    text = "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,2000,0:;;"
    found = placed({"hami.io/vgpu-devices-allocated": text, "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success"}, HAMI)
    assert [(each.device, each.memory_bytes, each.confidence) for each in found.held] == [
        (0, 3000 * MIB, Confidence.ALLOCATED),
        (1, 2000 * MIB, Confidence.ALLOCATED),
    ]
    assert found.held[0].compute == 0.3
    assert same(found.held[1].compute, None)
    assert found.complete


def test_containers_on_one_device_are_added_up() -> None:
    """Known parts; more than a device has is a fault."""
    both = {"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1000,30:;GPU-a,NVIDIA,500,20:;"}
    assert the(placed(both, HAMI)) == (0, Confidence.ALLOCATED, 0.5, 1500 * MIB)
    too_much = placed({"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1000,80:;GPU-a,NVIDIA,500,30:;"}, HAMI)
    assert too_much.held == ()
    assert [fault.reason for fault in too_much.faults] == [FaultReason.UNREADABLE_PLACE]


def test_g15_what_hami_wrote_for_another_node_is_refused() -> None:
    """And a list of what was to be allocated is ignored beside one of what was."""
    elsewhere = placed({"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1000,30:;", "hami.io/vgpu-node": "n2"}, HAMI)
    assert [fault.reason for fault in elsewhere.faults] == [FaultReason.WRONG_NODE]
    assert (elsewhere.held, elsewhere.complete) == ((), False)
    stale = {"hami.io/vgpu-devices-to-allocate": "GPU-b,NVIDIA,1000,30:;", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1000,30:;"}
    assert the(placed(stale, ask(Scheme.HAMI)))[0] == 0


def test_what_hami_has_only_planned_is_declared() -> None:
    """Before the node has confirmed it; a binding that failed holds nothing."""
    planned = {"hami.io/vgpu-devices-to-allocate": "GPU-b,NVIDIA,1000,30:;", "hami.io/bind-phase": "allocating"}
    assert the(placed(planned, ask(Scheme.HAMI)))[:2] == (1, Confidence.DECLARED)
    assert placed({**planned, "hami.io/bind-phase": "failed"}, ask(Scheme.HAMI)).held == ()


def test_hami_says_which_instance_of_which_gpu_it_made() -> None:
    """The GPU is the device; the profile says how much of it; before the instance is made the choice is only written down."""
    made = {"containerIndex": 0, "gpuUUID": "GPU-b", "profile": "1g.24gb", "placement": {"start": 9, "size": 3}, "migUUID": "MIG-1"}
    found = placed({"hami.io/vgpu-mig-allocations": json.dumps([made]), "hami.io/vgpu-node": "n1"}, ask(Scheme.HAMI))
    assert [(each.device, each.memory_bytes, each.confidence) for each in found.held] == [(1, 24 * GIB, Confidence.ALLOCATED)]
    planned = {key: made[key] for key in ("gpuUUID", "profile", "placement")}
    assert the(placed({"hami.io/vgpu-mig-allocations": json.dumps([planned])}, ask(Scheme.HAMI)))[1] is Confidence.DECLARED
    elsewhere = placed({"hami.io/vgpu-mig-allocations": json.dumps([made]), "hami.io/vgpu-node": "n2"}, ask(Scheme.HAMI))
    assert [fault.reason for fault in elsewhere.faults] == [FaultReason.WRONG_NODE]


@pytest.mark.parametrize("text", ["{", "[1]", '[{"gpuUUID": "GPU-a", "profile": "big"}]', '[{"profile": "1g.5gb"}]'])
def test_instances_of_hami_that_make_no_sense_place_nobody(text: str) -> None:
    """The pod is on some device of its node, and it is said why nobody knows which."""
    found = placed({"hami.io/vgpu-mig-allocations": text}, ask(Scheme.HAMI))
    assert found.held == ()
    assert [fault.reason for fault in found.faults] == [FaultReason.UNREADABLE_PLACE]


def test_an_older_form_of_hami_brackets_the_instance_behind_its_gpu() -> None:
    """The GPU is the device that is told."""
    assert the(placed({"hami.io/vgpu-devices-allocated": "GPU-a[0-3],NVIDIA,4864,0:;"}, ask(Scheme.HAMI)))[0] == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("GPU-a,NVIDIA,3000:;", FaultReason.UNREADABLE_PLACE),
        ("GPU-a,NVIDIA,much,30:;", FaultReason.UNREADABLE_PLACE),
        ("GPU-a,NVIDIA,3000,130:;", FaultReason.UNREADABLE_PLACE),
        ("GPU-z,NVIDIA,3000,30:;", FaultReason.NO_SUCH_DEVICE),
    ],
)
def test_a_list_that_makes_no_sense_is_named_and_places_nothing(text: str, reason: FaultReason) -> None:
    """Nor does a count of devices then."""
    found = placed({"hami.io/vgpu-devices-allocated": text}, ask(Scheme.HAMI), view(device(0, "GPU-a")))
    assert [fault.reason for fault in found.faults] == [reason]
    assert (found.held, found.complete) == ((), False)


def test_volcano_lists_devices_like_hami() -> None:
    """Under its own names."""
    annotations = {"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,1024,50:", "volcano.sh/vgpu-node": "n1", "volcano.sh/bind-phase": "success"}
    assert the(placed(annotations, ask(Scheme.VOLCANO_VGPU))) == (1, Confidence.ALLOCATED, 0.5, 1024 * MIB)


def test_volcano_names_devices_by_number_for_its_older_sharing() -> None:
    """Memory of one device, or whole ones."""
    shared = ask(Scheme.VOLCANO_GPUSHARE, memory_bytes=1024 * MIB)
    assert the(placed({"volcano.sh/gpu-index": "1"}, shared)) == (1, Confidence.DECLARED, -1, 1024 * MIB)
    found = placed({"volcano.sh/gpu-index": "0,1"}, whole(2, Scheme.VOLCANO_GPUSHARE))
    assert [(each.device, each.compute, each.memory_share) for each in found.held] == [(0, 1.0, 1.0), (1, 1.0, 1.0)]


def test_koordinator_names_minors_and_what_it_books_of_each() -> None:
    """Hundredths and quantities."""
    allocated = {
        "gpu": [
            {
                "minor": 1,
                "resources": {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu-memory-ratio": 50},
            }
        ]
    }
    annotations = {"scheduling.koordinator.sh/device-allocated": json.dumps(allocated)}
    assert the(placed(annotations, ask(Scheme.KOORDINATOR))) == (1, Confidence.DECLARED, 0.5, 8 * GIB)
    assert the(placed(annotations, whole(1)))[0] == 1, "it books what is asked of the vendor's resource as well"


def test_tencent_names_devices_for_each_container() -> None:
    """How much is what the pod asks for."""
    asked = ask(Scheme.TENCENT, compute=0.3, memory_bytes=2 * GIB)
    assert the(placed({"tencent.com/predicate-gpu-idx-0": "1"}, asked)) == (1, Confidence.DECLARED, 0.3, 2 * GIB)
    confirmed = {"tencent.com/predicate-gpu-idx-1": "0", "tencent.com/gpu-assigned": "true"}
    assert the(placed(confirmed, asked))[:2] == (0, Confidence.ALLOCATED)


def test_g19_a_fraction_of_kai_is_where_its_group_is_reserved() -> None:
    """One group, or several; the group is read from either form of the label."""
    node = view(device(0, "GPU-a"), device(1, "GPU-b"), groups={"g1": 1, "g2": 0})
    half = ask(Scheme.KAI, compute=0.5, memory_share=0.5, gpus=0.5)
    assert the(placed(None, half, node, groups=kai_groups({"runai-gpu-group": "g1"})))[:3] == (1, Confidence.ALLOCATED, 0.5)
    both = placed(None, replace(half, devices=2.0), node, groups=kai_groups({"runai-gpu-group/g1": "g1", "runai-gpu-group/g2": "g2"}))
    assert [each.device for each in both.held] == [0, 1]


def test_a_group_of_kai_that_nobody_reserves_is_named() -> None:
    """The device is not guessed."""
    found = placed(None, ask(Scheme.KAI, compute=0.5), groups=("g9",))
    assert [fault.reason for fault in found.faults] == [FaultReason.MISSING_OBJECT]
    assert found.held == ()


def test_a_reservation_pod_holds_its_device_and_takes_nothing_of_it() -> None:
    """By number or by uuid; what it holds is booked for those who share the device."""
    reserving = whole(1, Scheme.KAI_RESERVATION)
    assert the(placed({"run.ai/reserve_for_gpu_index": "1"}, reserving)) == (1, Confidence.ALLOCATED, 0.0, 0.0)
    assert the(placed({"run.ai/reserve_for_gpu_index": "GPU-a"}, reserving)) == (0, Confidence.ALLOCATED, 0.0, 0.0)
    kubelet = (KubeletDevice("main", "nvidia.com/gpu", "GPU-b"),)
    assert the(placed(None, reserving, kubelet=kubelet)) == (1, Confidence.ALLOCATED, 0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("GPU-b", 1), ("GPU-b::2", 1), ("nvidia1", 1), ("nvidia1/vgpu3", 1)],
)
def test_the_kubelet_names_devices_in_several_shapes(given: str, expected: int) -> None:
    """Uuid, uuid and replica, and GKE's numbers."""
    assert the(placed(None, whole(1), kubelet=(KubeletDevice("main", "nvidia.com/gpu", given),)))[:3] == (
        expected,
        Confidence.ALLOCATED,
        1.0,
    )


@pytest.mark.parametrize("given", ["nvidia0/gi1/vgpu0", "0000:03:00.0", "card0", ""])
def test_an_id_of_the_kubelet_that_names_no_device_places_nothing(given: str) -> None:
    """It is no fault either: the id is good for what it is made for."""
    found = placed(None, whole(1), kubelet=(KubeletDevice("main", "nvidia.com/gpu", given),))
    assert (found.held, found.faults) == ((), ())


def test_g12_two_replicas_of_one_device_are_on_one_device() -> None:
    """By their uuids, with the part that both are together."""
    node = view(device(0, "GPU-a", scheme=Scheme.TIME_SLICING, replicas=4.0), device(1, "GPU-b", scheme=Scheme.TIME_SLICING, replicas=4.0))
    two = ask(Scheme.TIME_SLICING, UNKNOWN, gpus=0.5)
    ids = tuple(KubeletDevice("main", "nvidia.com/gpu", f"GPU-a::{replica}") for replica in (0, 1))
    found = placed(None, two, node, kubelet=ids)
    assert the(found)[:3] == (0, Confidence.ALLOCATED, 0.5)
    assert found.complete
    apart = (KubeletDevice("main", "nvidia.com/gpu", "GPU-a::0"), KubeletDevice("main", "nvidia.com/gpu", "GPU-b::0"))
    assert [(each.device, each.compute) for each in placed(None, two, node, kubelet=apart).held] == [(0, 0.25), (1, 0.25)]


def test_claims_name_devices_and_a_shared_one_gives_unknown_parts() -> None:
    """By driver, pool and name."""
    node = view(device(0, "GPU-a", claimed_as=("gpu.nvidia.com", "n1", "gpu-0")))
    claim = ClaimedDevice("ml/c1", "gpu.nvidia.com", "n1", "gpu-0")
    assert the(placed(None, ask(Scheme.DRA), node, claimed=(claim,)))[:3] == (0, Confidence.ALLOCATED, 1.0)
    assert the(placed(None, ask(Scheme.DRA), node, claimed=(replace(claim, shared=True),)))[2] == -1
    strange = placed(None, ask(Scheme.DRA), node, claimed=(replace(claim, device="gpu-9"),))
    assert [fault.reason for fault in strange.faults] == [FaultReason.NO_SUCH_DEVICE]
    missing = placed(None, ask(Scheme.DRA), node, missing_claims=("c1",))
    assert [fault.reason for fault in missing.faults] == [FaultReason.MISSING_OBJECT]


def test_counts_place_a_pod_only_where_one_answer_is_possible() -> None:
    """On all devices, or on the only one; else it is on some of them."""
    assert [each.device for each in placed(None, whole(2)).held] == [0, 1]
    assert {each.confidence for each in placed(None, whole(2)).held} == {Confidence.INFERRED}
    assert placed(None, whole(1)).held == ()
    assert [each.device for each in placed(None, [whole(1), whole(1)]).held] == [0, 1]


def test_g2_sharers_of_the_only_device_are_all_on_it() -> None:
    """Whatever a label says of one of them."""
    node = view(device(0, scheme=Scheme.TIME_SLICING, replicas=4.0))
    one = ask(Scheme.TIME_SLICING, 1.0, compute=0.25, gpus=0.25)
    assert the(placed(None, one, node))[:3] == (0, Confidence.INFERRED, 0.25)
    assert the(placed(None, one, node, reported=(0,)))[:3] == (0, Confidence.REPORTED, 0.25)


def test_labels_of_exporters_place_pods_of_device_plugins_alone() -> None:
    """The kubelet is believed before them, and schemes that choose devices on their own do not use them."""
    assert the(placed(None, whole(1), reported=(1,)))[:3] == (1, Confidence.REPORTED, 1.0)
    kubelet = (KubeletDevice("main", "nvidia.com/gpu", "GPU-a"),)
    assert the(placed(None, whole(1), reported=(1,), kubelet=kubelet))[0] == 0
    for scheme in (Scheme.GPUSHARE, Scheme.HAMI, Scheme.KAI):
        assert placed(None, ask(scheme), reported=(1,)).held == ()


def test_fewer_devices_than_asked_for_are_held_and_not_all() -> None:
    """One of two is known."""
    found = placed(None, whole(2), view(device(0, "GPU-a"), device(1, "GPU-b"), device(2, "GPU-c")), reported=(1,))
    assert [each.device for each in found.held] == [1]
    assert not found.complete


def test_devices_that_are_not_trusted_hold_nobody_for_sure() -> None:
    """Two schemes mean two numberings."""
    node = view(device(0, trusted=False), device(1, trusted=False))
    found = placed({"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "3"}, GPUSHARE, node)
    assert (found.held, found.complete) == ((), False)


NAMELESS = (device(0), device(1))


def test_uuids_of_the_kubelet_name_devices_that_had_none() -> None:
    """Which number is whose is then unknown; a sick one is marked."""
    found = named(NAMELESS, kubelet=(SeenUuid("GPU-x", healthy=False),), seen=(), by_number=False).devices
    assert [(each.uuid, each.index, each.health) for each in found] == [("GPU-x", -1, Health.UNHEALTHY), ("", -1, Health.UNKNOWN)]


def test_numbers_that_place_pods_are_not_given_away_to_uuids() -> None:
    """Two sorts of names that do not mention each other stay apart."""
    assert named(NAMELESS, kubelet=(SeenUuid("GPU-x"),), seen=(), by_number=True).devices == NAMELESS


def test_exporters_join_number_uuid_model_and_memory() -> None:
    """16 and 32 GiB on one node are told apart by what is seen of each."""
    seen = (
        SeenDevice(node="n1", uuid="GPU-b", index=0, model="T4", memory_bytes=16 * GIB),
        SeenDevice(node="n1", uuid="GPU-a", index=1, model="V100", memory_bytes=32 * GIB),
    )
    found = named(NAMELESS, kubelet=(SeenUuid("GPU-a"),), seen=seen, by_number=False).devices
    assert [(each.index, each.uuid, each.model, each.memory_bytes, each.memory_exact) for each in found] == [
        (0, "GPU-b", "T4", 16 * GIB, True),
        (1, "GPU-a", "V100", 32 * GIB, True),
    ]


def test_a_device_that_is_only_seen_is_a_stranger() -> None:
    """It is reported, and makes no device."""
    seen = tuple(SeenDevice(node="n1", uuid=f"GPU-{number}", index=number) for number in range(3))
    found = named(NAMELESS, kubelet=(), seen=seen, by_number=False)
    assert [each.uuid for each in found.strangers] == ["GPU-2"]
    assert len(found.devices) == 2


def test_instances_are_named_by_their_gpu_and_number() -> None:
    """By profile; then no uuid of the kubelet is joined to them, since nothing ties the two."""
    cut = (device(profile="1g.5gb", scheme=Scheme.MIG), device(profile="2g.10gb", scheme=Scheme.MIG))
    seen = (SeenDevice(node="n1", uuid="GPU-a", instance=5, profile="2g.10gb", index=0),)
    found = named(cut, kubelet=(SeenUuid("MIG-x", profile="2g.10gb"),), seen=seen, by_number=False).devices
    assert [(each.parent, each.instance, each.uuid) for each in found] == [("", -1, ""), ("GPU-a", 5, "")]
