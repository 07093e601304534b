"""What a pod asks for, by every scheme: the golden rows of how each is written and counted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rebalancer.gpu.asks.reading import READERS
from rebalancer.gpu.clues import ClaimRequest
from rebalancer.gpu.meaning import UNDECIDED, Meaning, PlainUnit, common_meaning
from rebalancer.gpu.names import HAMI_NVIDIA, GpuNames, VirtualGpuNames
from rebalancer.state.gpu import GIB, MIB, UNKNOWN, Family, ModelConstraint, Scheme
from tests.gpu.asking import asked, asks, container, one, pod, same

SLICED = Meaning(nvidia=PlainUnit(Scheme.TIME_SLICING, 4.0))
MPS = Meaning(nvidia=PlainUnit(Scheme.MPS, 4.0))
SINGLE_MIG = Meaning(nvidia=PlainUnit(Scheme.MIG, 1.0, "1g.5gb"))
HAMI = Meaning(hami=True)

# limits, meaning of the node -> family, scheme, devices, compute, bytes, memory share, gpus (None: unknown)
ROWS: dict[str, tuple[Mapping[str, str], Meaning, tuple[object, ...]]] = {
    "plain": ({"nvidia.com/gpu": "2"}, Meaning(), (Family.NVIDIA, Scheme.PLAIN, 2, 1, None, 1, 2)),
    "one replica by time": ({"nvidia.com/gpu": "1"}, SLICED, (Family.NVIDIA, Scheme.TIME_SLICING, 1, 0.25, None, None, 0.25)),
    "one replica by MPS": ({"nvidia.com/gpu": "1"}, MPS, (Family.NVIDIA, Scheme.MPS, 1, 0.25, None, 0.25, 0.25)),
    "MIG, strategy single": ({"nvidia.com/gpu": "1"}, SINGLE_MIG, (Family.NVIDIA, Scheme.MIG, 1, 1, None, 1, 1)),
    "nodes that differ": ({"nvidia.com/gpu": "1"}, UNDECIDED, (Family.NVIDIA, Scheme.PLAIN, None, None, None, None, None)),
    "renamed replicas": (
        {"nvidia.com/gpu.shared": "1"},
        Meaning(shared=(("nvidia.com/gpu.shared", PlainUnit(Scheme.MPS, 10.0)),)),
        (Family.NVIDIA, Scheme.MPS, 1, 0.1, None, 0.1, 0.1),
    ),
    "renamed replicas of an unknown node": (
        {"nvidia.com/gpu.shared": "1"},
        Meaning(),
        (Family.NVIDIA, Scheme.SHARED, None, None, None, None, None),
    ),
    "MIG, strategy mixed": ({"nvidia.com/mig-3g.20gb": "2"}, Meaning(), (Family.NVIDIA, Scheme.MIG, 2, 1, None, 1, 2)),
    "gpushare in GiB": (
        {"aliyun.com/gpu-mem": "3"},
        Meaning(gpushare_unit_bytes=GIB),
        (Family.NVIDIA, Scheme.GPUSHARE, 1, None, 3 * GIB, None, None),
    ),
    "gpushare in MiB": (
        {"aliyun.com/gpu-mem": "8138"},
        Meaning(gpushare_unit_bytes=MIB),
        (Family.NVIDIA, Scheme.GPUSHARE, 1, None, 8138 * MIB, None, None),
    ),
    "gpushare, unit not known": ({"aliyun.com/gpu-mem": "3"}, Meaning(), (Family.NVIDIA, Scheme.GPUSHARE, 1, None, None, None, None)),
    "HAMi": (
        {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"},
        Meaning(),
        (Family.NVIDIA, Scheme.HAMI, 2, 0.3, 3000 * MIB, None, 0.6),
    ),
    "HAMi by percentage": (
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"},
        Meaning(),
        (Family.NVIDIA, Scheme.HAMI, 1, None, None, 0.5, None),
    ),
    "HAMi by node": ({"nvidia.com/gpu": "1"}, HAMI, (Family.NVIDIA, Scheme.HAMI, 1, None, None, 1, None)),
    "HAMi exclusive": ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}, HAMI, (Family.NVIDIA, Scheme.HAMI, 1, 1, None, 1, 1)),
    "HAMi, cores 0": ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "0"}, HAMI, (Family.NVIDIA, Scheme.HAMI, 1, None, None, 1, None)),
    "Hygon": (
        {"hygon.com/dcunum": "1", "hygon.com/dcumem": "2000", "hygon.com/dcucores": "15"},
        Meaning(),
        (Family.HYGON, Scheme.HAMI, 1, 0.15, 2000 * MIB, None, 0.15),
    ),
    "Cambricon": (
        {"cambricon.com/vmlu": "1", "cambricon.com/mlu.smlu.vmemory": "10"},
        Meaning(),
        (Family.CAMBRICON, Scheme.HAMI, 1, None, None, None, None),
    ),
    "Metax": ({"metax-tech.com/sgpu": "1"}, Meaning(), (Family.METAX, Scheme.HAMI, 1, None, None, None, None)),
    "Enflame": ({"enflame.com/vgcu": "1"}, Meaning(), (Family.ENFLAME, Scheme.HAMI, 1, None, None, None, None)),
    "Huawei": (
        {"huawei.com/Ascend910B": "1", "huawei.com/Ascend910B-memory": "16384"},
        Meaning(),
        (Family.HUAWEI, Scheme.HAMI, 1, None, None, None, None),
    ),
    "Volcano vGPU": (
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": "50"},
        Meaning(),
        (Family.NVIDIA, Scheme.VOLCANO_VGPU, 1, 0.5, 1024 * MIB, None, 0.5),
    ),
    "Volcano vGPU by percentage": (
        {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory-percentage": "25"},
        Meaning(),
        (Family.NVIDIA, Scheme.VOLCANO_VGPU, 2, None, None, 0.25, None),
    ),
    "Volcano memory": (
        {"volcano.sh/gpu-memory": "1024"},
        Meaning(),
        (Family.NVIDIA, Scheme.VOLCANO_GPUSHARE, 1, None, 1024 * MIB, None, None),
    ),
    "Volcano number": ({"volcano.sh/gpu-number": "2"}, Meaning(), (Family.NVIDIA, Scheme.VOLCANO_GPUSHARE, 2, 1, None, 1, 2)),
    "koordinator part": (
        {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "60"},
        Meaning(),
        (Family.NVIDIA, Scheme.KOORDINATOR, 1, 0.5, None, 0.6, 0.5),
    ),
    "koordinator bytes": (
        {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "16Gi"},
        Meaning(),
        (Family.NVIDIA, Scheme.KOORDINATOR, 1, 0.5, 16 * GIB, None, 0.5),
    ),
    "koordinator several": (
        {"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"},
        Meaning(),
        (Family.NVIDIA, Scheme.KOORDINATOR, 2, 1, None, 1, 2),
    ),
    "koordinator bytes over several": (
        {"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory": "32Gi"},
        Meaning(),
        (Family.NVIDIA, Scheme.KOORDINATOR, 2, 1, 16 * GIB, None, 2),
    ),
    "koordinator divided": (
        {"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "50"},
        Meaning(),
        (Family.NVIDIA, Scheme.KOORDINATOR, 2, 0.5, None, 0.25, 1),
    ),
    "koordinator, the old word": ({"koordinator.sh/gpu": "50"}, Meaning(), (Family.NVIDIA, Scheme.KOORDINATOR, 1, 0.5, None, 0.5, 0.5)),
    "Tencent part": (
        {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "8"},
        Meaning(),
        (Family.NVIDIA, Scheme.TENCENT, 1, 0.3, 2048 * MIB, None, 0.3),
    ),
    "Tencent whole": (
        {"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "8"},
        Meaning(),
        (Family.NVIDIA, Scheme.TENCENT, 2, 1, None, 1, 2),
    ),
    "AMD": ({"amd.com/gpu": "1"}, Meaning(), (Family.AMD, Scheme.PLAIN, 1, 1, None, 1, 1)),
    "AMD, partitions of one name": (
        {"amd.com/gpu": "1"},
        Meaning(amd=PlainUnit(Scheme.PARTITION, 1.0, "cpx_nps4")),
        (Family.AMD, Scheme.PARTITION, 1, 1, None, 1, 1),
    ),
    "AMD partition": ({"amd.com/cpx_nps4": "3"}, Meaning(), (Family.AMD, Scheme.PARTITION, 3, 1, None, 1, 3)),
    "AMD, not cut": ({"amd.com/spx_nps1": "1"}, Meaning(), (Family.AMD, Scheme.PLAIN, 1, 1, None, 1, 1)),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_way_of_asking_is_read_in_its_own_units(row: str) -> None:
    """Family, scheme, devices, compute, bytes and share of memory, and GPUs in total; unknown stays unknown."""
    limits, meaning, (family, scheme, *figures) = ROWS[row]
    found = one(limits, meaning)
    assert (found.family, found.scheme) == (family, scheme)
    read = (found.devices, found.compute, found.memory_bytes, found.memory_share, found.gpus)
    assert all(same(value, expected) for value, expected in zip(read, figures, strict=True)), (read, figures)  # type: ignore[arg-type]


def test_every_scheme_that_reads_is_in_a_golden_row() -> None:
    """A scheme that is added needs its row; claims and annotations have their own tests below."""
    shown = {row[2][1] for row in ROWS.values()} | {Scheme.DRA, Scheme.KAI}
    assert {scheme for scheme, _ in READERS} <= shown


def test_a_pod_of_cpu_and_fabric_asks_for_no_gpu() -> None:
    """Other extended resources are nobody's GPU."""
    assert asks({"rdma/hca": "1", "smarter-devices/fuse": "1", "nvidia.com/priority": "1"}) == ()


def test_gpushare_counts_limits_of_the_whole_pod_and_no_requests() -> None:
    """The extender sums limits over containers and never looks at requests."""
    meaning = Meaning(gpushare_unit_bytes=GIB)
    two = pod(container("a", {"aliyun.com/gpu-mem": "2"}), container("b", {"aliyun.com/gpu-mem": "3"}))
    (found,) = asked(two, meaning).asks
    assert (found.memory_bytes, found.devices, found.container) == (5 * GIB, 1.0, "")
    assert asked(pod(container("a", requests={"aliyun.com/gpu-mem": "2"})), meaning).asks == ()


def test_hami_reads_limits_and_then_requests() -> None:
    """What only requests hold counts for HAMi, and a limit beside it wins."""
    by_request = pod(container(limits={"nvidia.com/gpu": "1"}, requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}))
    (found,) = asked(by_request).asks
    assert found.memory_bytes == 100 * MIB
    both = pod(container(limits={"nvidia.com/gpumem": "200"}, requests={"nvidia.com/gpumem": "100"}))
    (found,) = asked(both).asks
    assert (found.memory_bytes, found.devices) == (200 * MIB, 1.0)


def test_the_installation_of_hami_has_its_own_names_factor_and_defaults() -> None:
    """Names, memory factor and defaults come from the policy."""
    own = VirtualGpuNames(
        Family.NVIDIA, "corp/vgpu", memory="corp/vmem", cores="corp/vcores", memory_factor=256, default_memory_mib=4, default_cores=20
    )
    names = GpuNames(hami=(own,))
    found = one({"corp/vgpu": "1", "corp/vmem": "2"}, names=names)
    assert (found.memory_bytes, found.compute, found.cap) == (512 * MIB, 0.2, 0.2)
    assert one({"corp/vgpu": "1"}, names=names).memory_bytes == 1024 * MIB
    assert one({"nvidia.com/gpu": "1"}, names=names).scheme is Scheme.PLAIN


def test_hints_of_hami_name_models_and_devices() -> None:
    """Comma lists of parts of model names, and of uuids."""
    hints = {"nvidia.com/use-gputype": "A100,V100", "nvidia.com/nouse-gputype": "PCIe", "nvidia.com/nouse-gpuuuid": "GPU-9"}
    (found,) = asked(pod(container(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"}), annotations=hints)).asks
    assert found.model.admits(model="NVIDIA-A100-SXM4-40GB", uuid="GPU-1") is True
    assert found.model.admits(model="NVIDIA-A100-PCIE-40GB", uuid="GPU-1") is False
    assert found.model.admits(model="Tesla T4", uuid="GPU-1") is False
    assert found.model.admits(model="Tesla V100", uuid="GPU-9") is False
    assert found.model.admits(model="", uuid="GPU-1") is None


def test_a_node_selector_on_a_model_label_is_the_model_that_is_asked_for() -> None:
    """Exactly, unlike HAMi's hints."""
    wanted = pod(container(limits={"nvidia.com/gpu": "1"}), selector={"nvidia.com/gpu.product": "NVIDIA-H100"})
    (found,) = asked(wanted).asks
    assert found.model == ModelConstraint(models=("NVIDIA-H100",))
    assert found.model.admits(model="NVIDIA-H100-80GB") is False


def test_a_name_that_an_installation_added_counts_devices() -> None:
    """``nvidia.com/a100`` is a whole device once the policy says so, and nothing before."""
    names = GpuNames(plain=(("nvidia.com/gpu", Family.NVIDIA), ("nvidia.com/a100", Family.NVIDIA)))
    assert one({"nvidia.com/a100": "1"}, names=names).gpus == 1.0
    assert asks({"nvidia.com/a100": "1"}) == ()


def test_g12_two_replicas_are_not_two_gpus() -> None:
    """Two of four replicas are half a GPU, on one device or on two."""
    found = one({"nvidia.com/gpu": "2"}, SLICED)
    assert found.gpus == 0.5
    assert same(found.devices, None)
    assert same(found.compute, None)
    assert found.slots == 2


def test_mig_profiles_keep_their_attributes() -> None:
    """``.me`` in a resource is ``+me`` in a profile; a name that is no profile is a mistake, not an ask."""
    assert one({"nvidia.com/mig-1g.10gb.me": "1"}).mig_profile == "1g.10gb+me"
    assert one({"nvidia.com/mig-1c.3g.20gb": "1"}).mig_profile == "1c.3g.20gb"
    found = asked(pod(container(limits={"nvidia.com/mig-large": "1"})))
    assert [trouble.scheme for trouble in found.unreadable] == [Scheme.MIG]


def test_a_replica_of_a_mig_instance_keeps_its_profile() -> None:
    """``nvidia.com/mig-1g.5gb.shared``, with the replicas that the node tells."""
    meaning = Meaning(shared=(("nvidia.com/mig-1g.5gb.shared", PlainUnit(Scheme.TIME_SLICING, 2.0, "1g.5gb")),))
    found = one({"nvidia.com/mig-1g.5gb.shared": "1"}, meaning)
    assert (found.mig_profile, found.compute) == ("1g.5gb", 0.5)
    assert one({"nvidia.com/mig-1g.5gb.shared": "1"}).mig_profile == "1g.5gb"


@pytest.mark.parametrize(
    ("annotations", "devices", "compute", "memory_bytes", "share", "name"),
    [
        ({"gpu-fraction": "0.5"}, 1, 0.5, None, 0.5, "main"),
        ({"gpu-memory": "2000"}, 1, None, 2000 * MIB, None, "main"),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, 2, 0.25, None, 0.25, "main"),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "proxy"}, 1, 0.5, None, 0.5, "proxy"),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "warm"}, 1, 0.5, None, 0.5, "warm"),
    ],
)
def test_g19_a_kai_fraction_is_an_ask_without_any_resource(
    annotations: dict[str, str], devices: float, compute: float | None, memory_bytes: float | None, share: float | None, name: str
) -> None:
    """By annotation alone, of the named container, which may be an init container."""
    (found,) = asked(pod(container("warm", init=True), container("main"), container("proxy"), annotations=annotations)).asks
    assert (found.scheme, found.devices, found.container) == (Scheme.KAI, devices, name)
    assert same(found.compute, compute)
    assert same(found.memory_bytes, memory_bytes)
    assert same(found.memory_share, share)


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu-fraction": "1.5"},
        {"gpu-fraction": "0"},
        {"gpu-fraction": "nan"},
        {"gpu-fraction": "half"},
        {"gpu-fraction": "0.5", "gpu-memory": "2000"},
        {"gpu-memory": "2Gi"},
        {"gpu-memory": "0"},
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "none"},
        {"gpu-fraction": "0.5", "gpu-fraction-container-name": "nobody"},
    ],
)
def test_a_kai_annotation_that_cannot_be_read_leaves_an_ask_of_unknown_size(annotations: dict[str, str]) -> None:
    """The pod stays a GPU pod, of which nothing is known; the clause names the annotation."""
    found = asked(pod(container(), annotations=annotations))
    (ask,) = found.asks
    assert ask.scheme is Scheme.KAI
    assert all(same(value, None) for value in (ask.devices, ask.compute, ask.memory_bytes, ask.memory_share, ask.gpus))
    assert "gpu-" in found.unreadable[0].clause


def test_the_pod_that_reserves_a_device_for_kai_is_told_apart() -> None:
    """By its namespace, whatever that is called here, or by the index that it reports."""
    held = container(limits={"nvidia.com/gpu": "1"})
    by_place = asked(pod(held, namespace="kai-resource-reservation")).asks
    by_report = asked(pod(held, annotations={"run.ai/reserve_for_gpu_index": "0"})).asks
    elsewhere = asked(pod(held, namespace="reserved"), names=GpuNames(kai_namespace="reserved")).asks
    assert {each.scheme for each in (*by_place, *by_report, *elsewhere)} == {Scheme.KAI_RESERVATION}


@pytest.mark.parametrize(
    "limits",
    [
        {"koordinator.sh/gpu-core": "150"},
        {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "1Gi", "koordinator.sh/gpu-memory-ratio": "50"},
        {"koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-core": "200"},
        {"tencent.com/vcuda-core": "130"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "130"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "101"},
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "400"},
        {"amd.com/gpu": "-1"},
    ],
)
def test_an_amount_that_no_device_can_have_is_named_and_unknown(limits: dict[str, str]) -> None:
    """It is neither clipped nor dropped."""
    found = asked(pod(container(limits=limits)))
    assert found.unreadable
    assert all(same(each.gpus, None) for each in found.asks)
    assert found.asks


def test_a_cap_on_compute_is_told_beside_the_ask() -> None:
    """``vcuda-core-limit`` limits use; it is not what is asked for."""
    capped = pod(container(limits={"tencent.com/vcuda-core": "30"}), annotations={"tencent.com/vcuda-core-limit": "50"})
    (found,) = asked(capped).asks
    assert (found.compute, found.cap) == (0.3, 0.5)


def test_an_init_container_and_the_containers_after_it_share_their_devices() -> None:
    """Its devices are given back before the others begin; they count only where the others ask for none."""
    before = container("warm", {"nvidia.com/gpu": "1"}, init=True)
    assert [each.container for each in asked(pod(before, container("main", {"nvidia.com/gpu": "1"}))).asks] == ["main"]
    assert [each.container for each in asked(pod(before, container("main"))).asks] == ["warm"]


def test_claims_of_gpu_classes_are_asks_and_others_are_not() -> None:
    """A network card comes by a claim too."""
    claims = (
        ClaimRequest("gpu", "one", "gpu.nvidia.com", 2.0, container="main"),
        ClaimRequest("slice", "small", "mig.nvidia.com", 1.0, memory_bytes=10 * GIB),
        ClaimRequest("net", "nic", "dra.net", 1.0),
        ClaimRequest("all", "every", "gpu.amd.com", UNKNOWN),
    )
    first, second, third = asked(pod(container(), claims=claims)).asks
    assert (first.scheme, first.devices, first.gpus, first.container) == (Scheme.DRA, 2.0, 2.0, "main")
    assert second.memory_bytes == 10 * GIB
    assert third.family is Family.AMD
    assert same(third.devices, None)


def test_a_pod_that_asks_in_two_ways_is_named_and_keeps_both_asks() -> None:
    """A fraction by annotation beside a whole device; resources of one device plugin may be mixed."""
    found = asked(pod(container(limits={"nvidia.com/gpu": "1"}), annotations={"gpu-fraction": "0.5"}))
    assert len(found.asks) == 2
    assert set(found.mixed) == {Scheme.PLAIN, Scheme.KAI}
    assert asked(pod(container(limits={"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"}))).mixed == ()


def test_a_meaning_that_all_nodes_share_holds_for_a_pod_on_none() -> None:
    """Where they differ it is unknown; a node that does not tell its unit of gpushare contradicts nobody."""
    assert common_meaning([SLICED, SLICED]) == SLICED
    assert common_meaning([SLICED, MPS]).nvidia == UNDECIDED.nvidia
    assert same(common_meaning([HAMI, Meaning()]).nvidia.replicas, None)
    assert common_meaning([]) == UNDECIDED
    assert common_meaning([Meaning(gpushare_unit_bytes=GIB), Meaning()]).gpushare_unit_bytes == GIB
    assert same(common_meaning([Meaning(gpushare_unit_bytes=GIB), Meaning(gpushare_unit_bytes=MIB)]).gpushare_unit_bytes, None)


def test_the_names_of_hami_for_nvidia_are_those_it_ships_with() -> None:
    """What the defaults of the policy repeat."""
    assert (HAMI_NVIDIA.memory, HAMI_NVIDIA.cores) == ("nvidia.com/gpumem", "nvidia.com/gpucores")
