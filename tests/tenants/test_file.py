"""The tenants file: what it may say, what is told of mistakes, and which quotas hold when."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy.reload import Reload
from rebalancer.policy.tenants import NO_TENANTS, TenantQuotas
from rebalancer.policy.tenants_in_force import TenantNow, tenants_in_force
from rebalancer.policy.tenants_loader import TenantsFile, load_tenants, parse_tenants

CONFIG = Path(__file__).parents[2] / "config"
HEAD = "apiVersion: rebalancer.dev/v1alpha1\nkind: TenantQuotas\nmetadata: {name: lab}\n"
TREE = (
    HEAD
    + """\
spec:
  default: rest
  tenants:
  - name: research
    guaranteed: {cpu: 50%, gpu: 8}
    tenants:
    - name: vision
      guaranteed: {gpu: 5, memory: 64Gi}
      limit: {gpu: 8}
      floor: {gpu: 2}
      weight: 2
      members: [{namespaces: [vision, vision-*]}]
      windows:
      - {from: "20:00", to: "06:00", timeZone: Europe/Berlin, guaranteed: {gpu: 7}}
    - name: speech
      lend: false
      guaranteed: {gpu: 3}
      members: [{queues: {kueue: [speech]}}]
  - name: rest
"""
)


def said(text: str) -> str:
    """The sentence about a file that is refused."""
    with pytest.raises(PolicyError) as refused:
        parse_tenants(text, origin="tenants.yaml")
    return str(refused.value)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def now(name: str, moment: str = "2026-03-02T12:00:00", text: str = TREE) -> TenantNow:
    found = tenants_in_force(parse_tenants(text, origin="t").spec, at=at(moment), capacity={"cpu": 100.0})
    return next(each for each in found if each.name == name)


def test_a_tree_is_read_with_leaves_and_levels() -> None:
    """Each tenant stands above those below it."""
    quotas = parse_tenants(TREE, origin="t")
    assert [tenant.name for tenant in quotas.spec.all()] == ["research", "vision", "speech", "rest"]
    assert [tenant.name for tenant in quotas.spec.leaves()] == ["vision", "speech", "rest"]
    found = tenants_in_force(quotas.spec, at=0.0, capacity={})
    assert [(each.name, each.parent, each.leaf) for each in found] == [
        ("research", -1, False),
        ("vision", 0, True),
        ("speech", 0, True),
        ("rest", -1, True),
    ]


def test_shares_are_of_the_capacity_and_unknown_without_it() -> None:
    """Half of a hundred cores; half of nobody knows what is unknown, not nothing."""
    assert now("research").guaranteed == {"cpu": 50.0, "gpu": 8.0}
    (research, *_) = tenants_in_force(parse_tenants(TREE, origin="t").spec, at=0.0, capacity={})
    assert math.isnan(research.guaranteed["cpu"])


def test_amounts_are_kubernetes_quantities() -> None:
    """And what is not said has no limit."""
    vision = now("vision")
    assert vision.guaranteed == {"gpu": 5.0, "memory": 64 * 2.0**30}
    assert (vision.limit, vision.floor, vision.weight) == ({"gpu": 8.0}, {"gpu": 2.0}, 2.0)


def test_what_is_not_lent_is_a_floor() -> None:
    """All of the guarantee."""
    assert now("speech").floor == {"gpu": 3.0}


@pytest.mark.parametrize(
    ("moment", "gpus"),
    [("2026-03-02T18:59:00", 5.0), ("2026-03-02T19:00:00", 7.0), ("2026-03-03T04:59:00", 7.0), ("2026-03-03T05:00:00", 5.0)],
)
def test_a_window_lasts_over_midnight_in_its_own_zone(moment: str, gpus: float) -> None:
    """From eight in the evening to six in the morning of Berlin; what the window does not say stays as it is."""
    assert now("vision", moment).guaranteed == {"gpu": gpus, "memory": 64 * 2.0**30}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("weight: 2", "wieght: 2"), "did you mean weight?"),
        (("guaranteed: {gpu: 3}", "guaranteed: {gpuu: 3}"), "is no resource"),
        (("cpu: 50%", "cpu: 150%"), "at most 100%"),
        (("limit: {gpu: 8}", "limit: {gpu: 4}"), "less than the 5 that it is guaranteed"),
        (("floor: {gpu: 2}", "floor: {gpu: 6}"), "more than the 5 that it is guaranteed"),
        (("floor: {gpu: 2}", "floor: {cpu: 6}"), "no guarantee of it"),
        (("name: speech", "name: vision"), "two tenants are called vision"),
        (("default: rest", "default: research"), "has tenants below it"),
        (("default: rest", "default: nobody"), "is no tenant of this file"),
        (('from: "20:00"', 'from: "25:00"'), "no time of the day"),
        (("timeZone: Europe/Berlin", "timeZone: Europe/Berlinn"), "is not a time zone"),
        (("- name: research", "- name: research\n    members: [{namespaces: [x]}]"), "its pods are theirs"),
        (("[{queues: {kueue: [speech]}}]", "[{}]"), "says nothing"),
        (("guaranteed: {gpu: 3}", "guaranteed: {gpu: -3}"), "write 0 or more"),
    ],
)
def test_a_mistake_is_told_with_its_line(change: tuple[str, str], sentence: str) -> None:
    """The thing, the place and the remedy in one sentence."""
    text = TREE.replace(*change, 1)
    assert text != TREE
    message = said(text)
    assert sentence in message
    assert "tenants.yaml, line " in message


def test_another_kind_of_file_is_refused() -> None:
    """A policy is no tenants file."""
    assert "must be TenantQuotas" in said(HEAD.replace("TenantQuotas", "RebalancePolicy") + "spec: {}\n")


def test_an_empty_file_holds_nobody() -> None:
    """So nobody is evicted for a quota."""
    assert parse_tenants("", origin="t") == NO_TENANTS


def test_the_last_good_file_stays_in_force(tmp_path: Path) -> None:
    """A broken edit is told once, and a mended one counts."""
    file = tmp_path / "tenants.yaml"
    file.write_text(TREE)
    source = TenantsFile(file)
    good: TenantQuotas = source.current()
    file.write_text(TREE.replace("weight: 2", "weight: -2"))
    first, second = source.refresh(), source.refresh()
    assert (first.outcome, first.news, second.news) == (Reload.FAILED, True, False)
    assert source.current() is good
    file.write_text(TREE.replace("weight: 2", "weight: 3"))
    assert source.refresh().outcome is Reload.CHANGED
    assert source.refresh().outcome is Reload.UNCHANGED
    assert next(iter(source.current().spec.leaves())).weight == 3


def test_without_a_file_there_are_no_tenants() -> None:
    """And nothing to read again."""
    source = TenantsFile(None)
    assert source.current() == NO_TENANTS
    assert source.refresh().outcome is Reload.UNCHANGED


def test_the_shipped_example_is_a_tenants_file() -> None:
    """With departments, windows and a default."""
    quotas = load_tenants(CONFIG / "tenants.yaml")
    assert [tenant.name for tenant in quotas.spec.leaves()] == ["vision", "speech", "everyone"]
