"""What holds for the asks of any pod, whatever stands in its limits and annotations."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.gpu.clues import ASK_ANNOTATIONS, MODEL_LABELS, ClaimRequest, ContainerClues, PodClues, pairs
from rebalancer.gpu.meaning import PLAIN_MEANING, UNDECIDED, Meaning, PlainUnit
from rebalancer.gpu.names import DEFAULT_NAMES
from rebalancer.state.gpu import GIB, UNKNOWN, GpuAsk, Scheme
from tests.gpu.asking import asked

ODD = "aZ09.,:;-_{}[]\"'\n \u0663\u00e9\U0001f600"
"""Letters, digits, every separator of the formats, and some that int() takes and Kubernetes does not."""
RESOURCES = (
    *(name for name, _ in DEFAULT_NAMES.plain),
    *(name for each in DEFAULT_NAMES.hami for name in (each.count, each.memory, each.memory_percentage, each.cores) if name),
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-1g.5gb.shared",
    "nvidia.com/mig-",
    "nvidia.com/mig-odd",
    "aliyun.com/gpu-mem",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-memory-percentage",
    "volcano.sh/vgpu-cores",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
    "koordinator.sh/gpu",
    "tencent.com/vcuda-core",
    "tencent.com/vcuda-memory",
    "amd.com/cpx_nps4",
    "amd.com/odd_one",
    "huawei.com/Ascend910",
    "enflame.com/vgcu",
)
AMOUNTS = st.one_of(
    st.integers(0, 1000).map(str), st.sampled_from(["", "1Gi", "0.5", "-1", "1e30", "nan", "50m", "٣", "1e400"]), st.text(ODD, max_size=6)
)
MAPPINGS = st.dictionaries(st.sampled_from(RESOURCES), AMOUNTS, max_size=4).map(pairs)
CONTAINERS = st.builds(ContainerClues, name=st.sampled_from(["main", "side", ""]), limits=MAPPINGS, requests=MAPPINGS, init=st.booleans())
TEXTS = st.one_of(st.text(ODD, max_size=12), st.sampled_from(["0.5", "1", "2000", "-0.5", "inf", "1e999", "A100,", ",", "1_0"]))
CLAIMS = st.builds(
    ClaimRequest,
    claim=st.just("c"),
    request=st.just("r"),
    device_class=st.sampled_from(["gpu.nvidia.com", "mig.nvidia.com", "other", ""]),
    count=st.sampled_from([UNKNOWN, 0.0, 1.0, 8.0]),
    memory_bytes=st.sampled_from([UNKNOWN, GIB]),
)
PODS = st.builds(
    PodClues,
    namespace=st.sampled_from(["ml", "kai-resource-reservation"]),
    containers=st.lists(CONTAINERS, max_size=3).map(tuple),
    annotations=st.dictionaries(st.sampled_from(sorted(ASK_ANNOTATIONS)), TEXTS, max_size=4).map(pairs),
    selector=st.dictionaries(st.sampled_from(sorted(MODEL_LABELS)), TEXTS, max_size=2).map(pairs),
    claims=st.lists(CLAIMS, max_size=2).map(tuple),
)
UNITS = st.builds(
    PlainUnit,
    scheme=st.sampled_from([Scheme.PLAIN, Scheme.TIME_SLICING, Scheme.MPS, Scheme.MIG]),
    replicas=st.sampled_from([1.0, 2.0, 10.0, UNKNOWN]),
    profile=st.sampled_from(["", "1g.5gb"]),
)
MEANINGS = st.builds(
    Meaning,
    nvidia=UNITS,
    amd=UNITS,
    hami=st.booleans(),
    shared=st.lists(st.tuples(st.just("nvidia.com/gpu.shared"), UNITS), max_size=1).map(tuple),
    gpushare_unit_bytes=st.sampled_from([UNKNOWN, GIB]),
)


def shares(ask: GpuAsk) -> tuple[float, ...]:
    return ask.compute, ask.memory_share, ask.cap


@given(PODS, MEANINGS)
def test_nothing_in_a_pod_makes_an_adapter_raise(pod: PodClues, meaning: Meaning) -> None:
    """Any text in any place is read or named, never an exception."""
    found = asked(pod, meaning)
    assert len(found.unreadable) <= len(found.asks)


@given(PODS, MEANINGS)
def test_shares_are_above_nothing_and_at_most_all(pod: PodClues, meaning: Meaning) -> None:
    """Shares of one device are in (0, 1], counts and bytes above 0, or they are unknown: unknown is never 0."""
    for ask in asked(pod, meaning).asks:
        assert all(math.isnan(value) or 0 < value <= 1 for value in shares(ask)), ask
        assert all(math.isnan(value) or 0 < value < math.inf for value in (ask.devices, ask.memory_bytes, ask.gpus, ask.slots)), ask


@given(PODS, MEANINGS)
def test_the_total_is_the_share_of_each_device_times_the_devices(pod: PodClues, meaning: Meaning) -> None:
    """Where all three are known."""
    for ask in asked(pod, meaning).asks:
        if not math.isnan(ask.gpus + ask.devices + ask.compute):
            assert math.isclose(ask.gpus, ask.devices * ask.compute)


@given(PODS)
def test_what_is_known_without_a_node_holds_on_every_node(pod: PodClues) -> None:
    """A pod on no node knows less, and nothing else, than the same pod on a node of whole devices."""
    pending, placed = asked(pod, UNDECIDED).asks, asked(pod, PLAIN_MEANING).asks
    assert len(pending) == len(placed)
    for vague, exact in zip(pending, placed, strict=True):
        for name in ("devices", "compute", "memory_share", "gpus", "slots"):
            known = getattr(vague, name)
            assert math.isnan(known) or known == getattr(exact, name), name


@given(PODS, MEANINGS)
def test_equal_pods_give_equal_asks(pod: PodClues, meaning: Meaning) -> None:
    """So that each distinct pod is read once; NaN does not get in the way."""
    assert asked(pod, meaning) == asked(pod, meaning)
    assert hash(asked(pod, meaning)) == hash(asked(pod, meaning))
