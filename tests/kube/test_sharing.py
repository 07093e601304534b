"""Equal parts of pods are kept once, and nothing that a pod says is changed by it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.kube.sharing import share_pod_parts
from rebalancer.kube.wire_pods import PodWire

_OWNER = {"kind": "ReplicaSet", "name": "web-1", "uid": "u-1", "controller": True}
_WORDS = st.sampled_from(["a", "b"])
_RESOURCES = st.fixed_dictionaries({"requests": st.dictionaries(st.sampled_from(["cpu", "memory"]), _WORDS)})
_PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": _WORDS, "namespace": _WORDS},
            optional={"labels": st.dictionaries(_WORDS, _WORDS), "ownerReferences": st.just([_OWNER])},
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": _WORDS,
                "containers": st.lists(st.fixed_dictionaries({"name": _WORDS, "resources": _RESOURCES}), max_size=2),
                "tolerations": st.lists(st.fixed_dictionaries({}, optional={"key": _WORDS, "effect": _WORDS}), max_size=2),
                "nodeSelector": st.dictionaries(_WORDS, _WORDS),
                "schedulerName": _WORDS,
            },
        ),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": _WORDS,
                "conditions": st.lists(st.fixed_dictionaries({"type": _WORDS, "status": _WORDS}), max_size=2),
            },
        ),
    }
)


def _pods(values: list[dict[str, object]]) -> list[PodWire]:
    return msgspec.json.decode(msgspec.json.encode(values), type=list[PodWire])


@given(st.lists(_PODS, max_size=6))
def test_sharing_changes_nothing_that_a_pod_says(values: list[dict[str, object]]) -> None:
    """Whatever pods share an owner, each is afterwards equal to what was decoded."""
    shared = _pods(values)
    share = share_pod_parts()
    for pod in shared:
        share(pod)
    assert shared == _pods(values)


@pytest.fixture
def pair() -> tuple[PodWire, PodWire]:
    """Two pods of one owner that differ in their labels alone."""
    first: dict[str, object] = {
        "metadata": {"name": "web-1-a", "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": [_OWNER]},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    second = {**first, "metadata": {"name": "web-1-b", "namespace": "shop", "labels": {"app": "other"}, "ownerReferences": [_OWNER]}}
    one, other = _pods([first, second])
    share = share_pod_parts()
    share(one)
    share(other)
    return one, other


def test_equal_parts_of_one_owner_are_one_object(pair: tuple[PodWire, PodWire]) -> None:
    """Containers, conditions and the name of the node are kept once."""
    one, other = pair
    assert one.spec.containers is other.spec.containers
    assert one.status.conditions is other.status.conditions
    assert one.spec.node_name is other.spec.node_name


def test_conditions_are_shared_whenever_they_came_to_be() -> None:
    """What tells pods apart in them, the moment of each, is taken out, and kept of the one that matters."""
    pods = _pods(
        [
            {
                "metadata": {"name": name, "namespace": "shop", "ownerReferences": [_OWNER]},
                "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": f"2025-06-15T00:0{minute}:00Z"}]},
            }
            for minute, name in enumerate(("web-1-a", "web-1-b"))
        ]
    )
    share = share_pod_parts()
    for pod in pods:
        share(pod)
    assert pods[0].status.conditions is pods[1].status.conditions
    assert pods[1].status.ready_since - pods[0].status.ready_since == 60


def test_a_part_that_differs_stays_the_pods_own(pair: tuple[PodWire, PodWire]) -> None:
    """Labels that differ are not exchanged."""
    one, other = pair
    assert (one.metadata.labels, other.metadata.labels) == ({"app": "web"}, {"app": "other"})
