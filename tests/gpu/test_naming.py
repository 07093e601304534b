"""The policy's names of GPUs: what they become, and what is refused."""

from __future__ import annotations

import pytest

from rebalancer.errors import PolicyError
from rebalancer.gpu.names import DEFAULT_NAMES
from rebalancer.gpu.naming import names_of
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.loader import parse_policy
from rebalancer.state.gpu import MIB, Family


def policy(gpu: str) -> str:
    return f"apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nspec:\n  gpu: {gpu}\n"


def test_the_defaults_of_the_policy_are_those_of_the_rules() -> None:
    """Whoever has no policy at hand reads GPUs in the same way."""
    assert names_of(Gpu()) == DEFAULT_NAMES


def test_names_units_and_factors_reach_the_rules() -> None:
    """Each key of the section."""
    text = (
        "{resources: {nvidia.com/a100: nvidia}, gpushare: {memory: corp.io/mem, count: corp.io/count, unit: MiB}, "
        "hami: {count: corp.io/vgpu, memory: corp.io/vmem, memoryPercentage: corp.io/vpercent, cores: corp.io/vcores, memoryFactor: 4, "
        "defaultMemory: 2, defaultCores: 10, deviceMemoryScaling: 1.5}, volcanoMemoryFactor: 8, kaiReservationNamespace: reserved, "
        "deviceClasses: {corp-gpu: amd}}"
    )
    names = names_of(parse_policy(policy(text), origin="policy.yaml").spec.gpu)
    assert ("nvidia.com/a100", Family.NVIDIA) in names.plain
    assert (names.gpushare_memory, names.gpushare_count, names.gpushare_unit_bytes) == ("corp.io/mem", "corp.io/count", MIB)
    hami = names.hami[0]
    assert (hami.count, hami.memory, hami.memory_percentage, hami.cores) == (
        "corp.io/vgpu",
        "corp.io/vmem",
        "corp.io/vpercent",
        "corp.io/vcores",
    )
    assert (hami.memory_factor, hami.default_memory_mib, hami.default_cores, names.hami_memory_scaling) == (4, 2, 10, 1.5)
    assert (names.volcano_memory_factor, names.kai_namespace) == (8, "reserved")
    assert names.family_of_class("corp-gpu") is Family.AMD


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{resources: {a100: nvidia}}", "a100"),
        ("{resources: {nvidia.com/a100: voodoo}}", "spec.gpu.resources"),
        ("{gpushare: {unit: GB}}", "spec.gpu.gpushare.unit"),
        ("{gpushare: {memory: corp.io/x, count: corp.io/x}}", "two things"),
        ("{hami: {memory: nvidia.com/gpucores}}", "two things"),
        ("{resources: {nvidia.com/gpumem: nvidia}}", "two things"),
        ("{hami: {deviceMemoryScaling: 0}}", "spec.gpu.hami.deviceMemoryScaling"),
        ("{hamy: {}}", "hami"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, place: str) -> None:
    """Strict at every level."""
    with pytest.raises(PolicyError, match=place):
        parse_policy(policy(text), origin="policy.yaml")
