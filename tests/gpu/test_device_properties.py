"""What holds for any node and any pod on it, whatever stands in their labels, annotations and status."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.reading import asks_of
from rebalancer.gpu.identities import SeenUuid, named
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext, ObjectDevice, SliceDevice
from rebalancer.gpu.nodes.reading import NodeDevices, devices_of
from rebalancer.gpu.places.clues import PLACE_ANNOTATIONS, ClaimedDevice, KubeletDevice, PlaceClues, kai_groups
from rebalancer.gpu.places.held import NodeView
from rebalancer.gpu.places.reading import place
from rebalancer.gpu.sightings import SeenDevice
from rebalancer.state.devices import Confidence, FaultReason
from rebalancer.state.gpu import UNKNOWN
from tests.gpu.test_ask_properties import ODD, PODS
from tests.gpu.test_nodes import A100, REGISTER

COUNTS = st.sampled_from(["0", "1", "2", "8", "20", "200", "32552", "-1", "x", "", "1e30"])
RESOURCES = st.dictionaries(
    st.sampled_from(
        [
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.5gb",
            "nvidia.com/mig-1g.5gb.shared",
            "nvidia.com/mig-odd",
            "amd.com/gpu",
            "amd.com/cpx_nps4",
            "aliyun.com/gpu-mem",
            "aliyun.com/gpu-count",
            "volcano.sh/gpu-memory",
            "volcano.sh/gpu-number",
            "koordinator.sh/gpu-core",
            "koordinator.sh/gpu-memory",
            "tencent.com/vcuda-core",
            "tencent.com/vcuda-memory",
            "rdma/hca",
        ]
    ),
    COUNTS,
    max_size=4,
)
WORDS = st.one_of(
    st.text(ODD, max_size=16), COUNTS, st.sampled_from(["none", "mps", "time-slicing", "mixed", "A100-MIG-1g.5gb", "CPX_NPS4"])
)
LABELS = st.dictionaries(
    st.sampled_from(
        [
            *A100,
            "nvidia.com/gpu.replicas",
            "nvidia.com/gpu.sharing-strategy",
            "nvidia.com/mig.strategy",
            "nvidia.com/mig-1g.5gb.count",
            "nvidia.com/mig-1g.5gb.replicas",
            "amd.com/gpu.vram",
            "amd.com/gpu.compute-memory-partition",
            "cloud.google.com/gke-accelerator",
            "cloud.google.com/gke-max-shared-clients-per-gpu",
        ]
    ),
    WORDS,
    max_size=4,
)
LISTS = st.sampled_from(
    [
        REGISTER,
        "GPU-a,10,32768,100,V100,0,true:",
        "GPU-a,10,32768,V100,true,hami-core:",
        "GPU-a,NVIDIA,3000,30:;",
        '{"0":{"0":2}}',
        '{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50"}}]}',
        "0",
        "0,1",
        "7",
        "true",
        "n1",
        "n2",
        "{}",
        "[]",
        "null",
    ]
)
TEXTS = st.one_of(st.text(ODD, max_size=16), LISTS)
NODES = st.builds(
    NodeClues,
    name=st.just("n1"),
    labels=LABELS,
    annotations=st.dictionaries(
        st.sampled_from(
            [
                "hami.io/node-nvidia-register",
                "hami.io/device-cordon",
                "volcano.sh/node-vgpu-register",
                "volcano.sh/gpu-unhealthy-ids",
            ]
        ),
        TEXTS,
        max_size=2,
    ),
    capacity=RESOURCES,
    allocatable=RESOURCES,
    objects=st.none()
    | st.lists(
        st.builds(
            ObjectDevice,
            uuid=st.sampled_from(["GPU-a", "GPU-b", ""]),
            minor=st.integers(-1, 3),
            resources=st.dictionaries(st.just("koordinator.sh/gpu-memory"), COUNTS),
        ),
        max_size=2,
    ).map(tuple),
    slices=st.lists(
        st.builds(
            SliceDevice,
            driver=st.sampled_from(["gpu.nvidia.com", "dra.net"]),
            pool=st.just("n1"),
            name=st.sampled_from(["gpu-0", "gpu-1"]),
            attributes=st.dictionaries(st.sampled_from(["type", "uuid", "index", "profile"]), WORDS, max_size=3),
            memory=COUNTS,
        ),
        max_size=2,
    ).map(tuple),
)
PLACES = st.builds(
    PlaceClues,
    node=st.just("n1"),
    annotations=st.dictionaries(st.sampled_from(sorted(PLACE_ANNOTATIONS)), TEXTS, max_size=4),
    groups=st.dictionaries(st.sampled_from(["runai-gpu-group", "runai-gpu-group/g2"]), st.sampled_from(["g1", "g2", ""])).map(kai_groups),
    kubelet=st.lists(
        st.builds(
            KubeletDevice,
            container=st.just("main"),
            resource=st.just("nvidia.com/gpu"),
            id=st.one_of(st.text(ODD, max_size=8), st.sampled_from(["GPU-a", "GPU-b::1", "nvidia0", "nvidia9/vgpu1"])),
        ),
        max_size=2,
    ).map(tuple),
    claimed=st.lists(
        st.builds(
            ClaimedDevice,
            claim=st.just("ml/c"),
            driver=st.sampled_from(["gpu.nvidia.com", "dra.net"]),
            pool=st.just("n1"),
            device=st.sampled_from(["gpu-0", "gpu-9"]),
        ),
        max_size=2,
    ).map(tuple),
    missing_claims=st.sampled_from([(), ("c",)]),
)
SEEN = st.builds(
    SeenDevice,
    node=st.just("n1"),
    uuid=st.sampled_from(["GPU-a", "GPU-b", "GPU-z"]),
    index=st.integers(-1, 2),
    memory_bytes=st.sampled_from([UNKNOWN, 1e9, -1.0, 0.0]),
    instance=st.sampled_from([-1, 3]),
    profile=st.sampled_from(["", "1g.5gb"]),
)
UUIDS = st.builds(SeenUuid, uuid=st.sampled_from(["GPU-a", "GPU-x", "MIG-y"]), profile=st.sampled_from(["", "1g.5gb"]))


def known_and_positive(value: float) -> bool:
    return 0 < value < math.inf


@given(NODES, st.booleans())
def test_any_node_is_read_or_named(node: NodeClues, lost: bool) -> None:
    """No text raises; a figure is above 0 or unknown, never 0; nothing that is told twice is told of two devices."""
    found = devices_of(node, NodeContext(lost=lost))
    for device in found.devices:
        assert all(math.isnan(value) or known_and_positive(value) for value in (device.memory_bytes, device.handed_out_bytes))
        assert math.isnan(device.replicas) or 0 <= device.replicas < math.inf
        assert device.index >= -1
    uuids = [device.uuid for device in found.devices if device.uuid]
    assert len(set(uuids)) == len(uuids)
    told = {FaultReason.UNREADABLE_NODE, FaultReason.DEVICES_DISAGREE, FaultReason.TWO_SCHEMES}
    assert {fault.reason for fault in found.faults} <= told


@given(NODES, st.lists(UUIDS, max_size=3), st.lists(SEEN, max_size=3), st.booleans())
def test_names_are_given_to_one_device_each_and_make_none(
    node: NodeClues, kubelet: list[SeenUuid], seen: list[SeenDevice], by_number: bool
) -> None:
    """As many devices as before, no uuid on two of them, no memory lost."""
    before = devices_of(node, NodeContext()).devices
    after = named(before, kubelet=kubelet, seen=seen, by_number=by_number).devices
    assert len(after) == len(before)
    uuids = [device.uuid for device in after if device.uuid]
    assert len(set(uuids)) == len(uuids)
    for one, other in zip(before, after, strict=True):
        assert math.isnan(one.memory_bytes) or known_and_positive(other.memory_bytes)
        assert not one.uuid or one.uuid == other.uuid


@given(PODS, NODES, PLACES, st.lists(st.integers(0, 9), max_size=2))
def test_any_pod_is_placed_on_devices_of_its_node_or_on_none(pod: object, node: NodeClues, clues: PlaceClues, reported: list[int]) -> None:
    """No text raises; shares are of one device and at most all of it; a device is held once; what is not trusted is not held."""
    told: NodeDevices = devices_of(node, NodeContext())
    view = NodeView("n1", told.devices, told.meaning, {"g1": 0} if told.devices else {})
    asks = asks_of(pod, Context(told.meaning)).asks  # type: ignore[arg-type]
    found = place(clues, view, asks, reported=[each for each in reported if each < len(told.devices)])
    held = [each.device for each in found.held]
    assert len(set(held)) == len(held)
    for each in found.held:
        assert told.devices[each.device].trusted
        assert each.confidence is not Confidence.UNKNOWN
        assert all(math.isnan(share) or 0 <= share <= 1 + 1e-9 for share in (each.compute, each.memory_share))
        assert math.isnan(each.memory_bytes) or 0 <= each.memory_bytes < math.inf
    assert not found.complete or found.held or not asks
