"""Whose each pod is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.tenants.membership import Membership, membership
from rebalancer.policy.quantities import LabelSelector
from rebalancer.policy.tenants import Members, Tenant, TenantSpec
from rebalancer.state.scheduling import LabelSet

NAMESPACES = {"vision": {"team": "vision"}, "vision-dev": {"team": "vision"}, "speech": {}, "other": {}}


def tenant(name: str, *members: Members) -> Tenant:
    return Tenant(name=name, members=members)


def found(spec: TenantSpec, *pods: tuple[str, dict[str, str]]) -> Membership:
    sets = [LabelSet(namespace, tuple(labels.items())) for namespace, labels in pods]
    return membership(spec, labels=np.arange(len(pods)), label_sets=sets, namespaces=NAMESPACES)


def owners(result: Membership) -> list[str | None]:
    return [result.names[row] if row >= 0 else None for row in result.tenant.tolist()]


@pytest.mark.parametrize(
    "entry",
    [
        Members(namespaces=("vision", "vision-dev")),
        Members(namespaces=("vision*",)),
        Members(namespace_selector=LabelSelector(match_labels={"team": "vision"})),
        Members(namespaces=("vision*",), namespace_selector=LabelSelector(match_labels={"team": "vision"})),
    ],
)
def test_namespaces_by_name_beginning_or_label(entry: Members) -> None:
    """All pods of the namespaces, and no others."""
    spec = TenantSpec(tenants=(tenant("vision", entry),))
    assert owners(found(spec, ("vision", {}), ("vision-dev", {}), ("speech", {}))) == ["vision", "vision", None]


@pytest.mark.parametrize(
    ("system", "label"),
    [
        ("kueue", "kueue.x-k8s.io/queue-name"),
        ("kueueClusterQueue", "kueue.x-k8s.io/cluster-queue-name"),
        ("kai", "kai.scheduler/queue"),
        ("volcano", "volcano.sh/queue-name"),
        ("koordinator", "quota.scheduling.koordinator.sh/name"),
    ],
)
def test_queues_by_the_labels_of_their_systems(system: str, label: str) -> None:
    """In whatever namespace."""
    spec = TenantSpec(tenants=(tenant("a", Members(queues={system: ("q",)})),))  # type: ignore[dict-item]
    assert owners(found(spec, ("other", {label: "q"}), ("other", {label: "r"}), ("other", {}))) == ["a", None, None]


def test_all_that_an_entry_says_must_hold_and_any_entry_will_do() -> None:
    """A queue within a namespace; or a label of the pod."""
    entries = (Members(namespaces=("speech",), queues={"kai": ("q",)}), Members(pod_selector=LabelSelector(match_labels={"pays": "a"})))
    spec = TenantSpec(tenants=(tenant("a", *entries),))
    pods = [("speech", {"kai.scheduler/queue": "q"}), ("other", {"kai.scheduler/queue": "q"}), ("other", {"pays": "a"})]
    assert owners(found(spec, *pods)) == ["a", None, "a"]


def test_a_pod_that_two_claim_is_nobodys_and_is_told() -> None:
    """With both names."""
    spec = TenantSpec(tenants=(tenant("a", Members(namespaces=("vision",))), tenant("b", Members(namespaces=("vis*",)))), default="b")
    result = found(spec, ("vision", {}), ("vision-dev", {}))
    assert owners(result) == [None, "b"]
    assert result.claimed_twice == ((0, ("a", "b")),)
    assert result.claimed_twice_pods == 1


def test_the_unclaimed_go_to_the_default() -> None:
    """Where there is one; and tenants without a pod are told."""
    spec = TenantSpec(tenants=(tenant("a", Members(namespaces=("speech",))), tenant("rest")), default="rest")
    result = found(spec, ("other", {}))
    assert owners(result) == ["rest"]
    assert result.without_pods == ("a",)


entries = st.one_of(
    st.lists(st.sampled_from([*NAMESPACES, "vision*", "s*"]), min_size=1, max_size=2).map(lambda names: Members(namespaces=tuple(names))),
    st.sampled_from(["q", "r"]).map(lambda queue: Members(queues={"kai": (queue,)})),
    st.just(Members(pod_selector=LabelSelector(match_labels={"x": "1"}))),
)
pods = st.tuples(
    st.sampled_from(list(NAMESPACES)),
    st.dictionaries(st.sampled_from(["kai.scheduler/queue", "x"]), st.sampled_from(["q", "r", "1"]), max_size=2),
)


@given(members=st.lists(st.lists(entries, max_size=2), min_size=1, max_size=4), all_pods=st.lists(pods, min_size=1, max_size=6))
def test_the_order_of_tenants_changes_nothing(members: list[list[Members]], all_pods: list[tuple[str, dict[str, str]]]) -> None:
    """Nobody owns a pod by standing first in the file."""
    tenants = [tenant(f"t{row}", *entries) for row, entries in enumerate(members)]
    one, other = TenantSpec(tenants=tuple(tenants)), TenantSpec(tenants=tuple(reversed(tenants)))
    assert owners(found(one, *all_pods)) == owners(found(other, *all_pods))
