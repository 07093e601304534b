"""Snapshots come back as they went, or are refused in one sentence; under other names they still mean the same."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from rebalancer.errors import SnapshotError
from rebalancer.state.cluster import ClusterState, Yesterday
from rebalancer.state.matching import LabelIndex, matches, namespaces_of_term
from rebalancer.state.scheduling import Constraints, Selector
from rebalancer.state.snapshot import anonymize, dump_snapshot, load_snapshot
from tests.state.states import EVERYTHING, rich_state, same, states

Document = dict[str, Any]


def _document() -> Document:
    found: Document = json.loads(gzip.decompress(dump_snapshot(rich_state())))
    return found


def _refusal(data: bytes) -> str:
    with pytest.raises(SnapshotError) as caught:
        load_snapshot(data)
    assert caught.value.remedy
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_state_with_everything_in_it_comes_back_equal() -> None:
    """Every column, NaN and infinity included, and read-only again."""
    state = rich_state()
    loaded = load_snapshot(dump_snapshot(state))
    assert same(state, loaded)
    assert not loaded.pods.usage.flags.writeable


def test_yesterday_is_in_the_file() -> None:
    """A plan from a snapshot foresees what the cycle did; what of it does not fit the nodes is damage."""
    now = rich_state()
    shape = (len(now.nodes.names), len(now.signals), 2)
    state = replace(now, yesterday=Yesterday(ahead_s=np.array([0.0, 300.0]), load=np.full(shape, np.nan)))
    assert same(state, load_snapshot(dump_snapshot(state)))
    odd = replace(now, yesterday=Yesterday(ahead_s=np.array([0.0]), load=np.full(shape, np.nan)))
    assert "yesterday" in _refusal(dump_snapshot(odd))


@settings(deadline=None, max_examples=50)
@given(state=states())
def test_any_state_comes_back_equal(state: ClusterState) -> None:
    """Empty tables keep their shapes."""
    assert same(state, load_snapshot(dump_snapshot(state)))


def test_equal_states_give_equal_bytes() -> None:
    """No clock and no chance is in the file."""
    assert dump_snapshot(rich_state()) == dump_snapshot(rich_state())


def test_a_snapshot_that_was_unzipped_is_read_as_well() -> None:
    """Whoever looked into it need not zip it again."""
    assert same(rich_state(), load_snapshot(json.dumps(_document()).encode()))


def test_unknown_is_null_in_the_file() -> None:
    """Never zero."""
    values = _document()["state"]["nodes"]["usage"]["values"]
    assert values[-1] is None


@pytest.mark.parametrize("data", [b"", b"hello", b"\x1f\x8b not gzip", b"[]", b'{"kind": "Snapshot"}', b"\xff\xfe"])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    """Text, rubbish, other JSON."""
    assert _refusal(data)


def test_every_truncation_is_refused() -> None:
    """Cut anywhere."""
    data = dump_snapshot(rich_state())
    for end in range(0, len(data), max(1, len(data) // 40)):
        assert _refusal(data[:end])


def test_another_version_or_kind_is_named() -> None:
    """The sentence says which one was found."""
    document = _document()
    assert "rebalancer.dev/v2" in _refusal(json.dumps({**document, "apiVersion": "rebalancer.dev/v2"}).encode())
    assert "Plan" in _refusal(json.dumps({**document, "kind": "Plan"}).encode())


def _drop_a_name(state: Document) -> None:
    state["nodes"]["names"].pop()


def _drop_a_number(state: Document) -> None:
    state["pods"]["usage"]["values"].pop()


def _text_for_a_number(state: Document) -> None:
    state["nodes"]["usage"]["values"][0] = "lots"


def _a_row_that_is_not_there(state: Document) -> None:
    state["pods"]["node"]["values"][0] = 99


def _a_signal_too_many(state: Document) -> None:
    state["signals"].append({"name": "psi", "unit": "ratio", "resource": None})


def _no_pods(state: Document) -> None:
    del state["pods"]


def _a_class_that_is_none(state: Document) -> None:
    state["pods"]["classes"][0] = "precious"


def _a_device_of_no_node(state: Document) -> None:
    state["gpus"]["devices"]["node"]["values"][1] = 9


def _devices_out_of_order(state: Document) -> None:
    state["gpus"]["devices"]["node"]["values"][0] = 1


def _a_device_without_a_model(state: Document) -> None:
    state["gpus"]["devices"]["models"].pop()


def _a_member_that_is_not_there(state: Any) -> None:
    state["gangs"]["pod"]["values"][0] = 99


def _a_gang_without_a_minimum(state: Any) -> None:
    state["gangs"]["minimum"] = {"shape": [0], "values": []}


def _an_ask_that_is_not_there(state: Document) -> None:
    state["gpus"]["ask"]["values"][0] = 7


def _true_for_a_row(state: Document) -> None:
    state["pods"]["workload"]["values"][0] = True


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (_drop_a_name, "nodes"),
        (_drop_a_number, "pods.usage"),
        (_text_for_a_number, "nodes.usage"),
        (_a_row_that_is_not_there, "pods.node"),
        (_a_signal_too_many, "nodes.usage"),
        (_no_pods, "pods"),
        (_a_class_that_is_none, "pods.classes"),
        (_true_for_a_row, "pods.workload"),
        (_a_device_of_no_node, "gpus.devices.node"),
        (_devices_out_of_order, "gpus.devices.node"),
        (_a_device_without_a_model, "gpus.devices.models"),
        (_an_ask_that_is_not_there, "gpus.ask"),
        (_a_member_that_is_not_there, "gangs.pod"),
        (_a_gang_without_a_minimum, "gangs"),
    ],
)
def test_damage_inside_is_refused_and_located(damage: Callable[[Document], None], place: str) -> None:
    """A changed file is not half believed."""
    document = _document()
    damage(document["state"])
    assert place in _refusal(json.dumps(document).encode())


def test_a_snapshot_of_before_there_were_gpus_is_read_with_none() -> None:
    """Everything else of it is as it was."""
    document = json.loads(gzip.decompress(dump_snapshot(rich_state())))
    del document["state"]["gpus"]
    old = load_snapshot(json.dumps(document).encode())
    assert (len(old.gpus.devices), len(old.gpus.held), old.gpus.asks, old.gpus.faults) == (0, 0, (), ())
    assert same(old.pods, rich_state().pods)


def test_no_name_survives_anonymisation() -> None:
    """Every name of the state, wherever it stands, is gone from the file; numbers and well-known names stay."""
    hidden = gzip.decompress(dump_snapshot(anonymize(rich_state(), salt="s"))).decode()
    assert "secret" in gzip.decompress(dump_snapshot(rich_state())).decode()
    assert "secret" not in hidden
    for kept in ("kube-system", "amd64", "topology.kubernetes.io/zone", "system-cluster-critical", '"9"', '"training"'):
        assert kept in hidden


def test_anonymisation_changes_no_number() -> None:
    """All arrays and all booleans are the same."""
    state = rich_state()
    hidden = anonymize(state, salt="s")
    for table in ("nodes", "pods", "workloads"):
        for column in getattr(state, table).__dataclass_fields__:
            value = getattr(getattr(state, table), column)
            if isinstance(value, np.ndarray):
                assert same(value, getattr(getattr(hidden, table), column)), column


def test_one_salt_gives_one_pseudonym_and_another_another() -> None:
    """The same twice; different with another salt."""
    assert same(anonymize(rich_state(), salt="s"), anonymize(rich_state(), salt="s"))
    assert anonymize(rich_state(), salt="s").nodes.names != anonymize(rich_state(), salt="t").nodes.names


def test_pseudonyms_keep_the_order_of_names() -> None:
    """Ties are broken by name, so the order must hold."""
    names = anonymize(rich_state(), salt="s").nodes.names
    assert list(names) == sorted(names)


def test_selectors_match_what_they_matched() -> None:
    """Node terms, volume terms, pod selectors, namespaces and taints, under their other names."""
    state = rich_state()
    hidden = anonymize(state, salt="s")
    row = state.constraints.index(EVERYTHING)
    plain, other = state.constraints[row], hidden.constraints[row]

    def nodes_of(each: ClusterState, rules: Constraints) -> list[list[bool]]:
        index = LabelIndex(each.nodes.labels)
        masks = [index.pairs_mask(rules.node_selector), index.node_terms_mask(rules.node_terms or (), each.node_index)]
        masks += [index.node_terms_mask(terms, each.node_index) for terms in rules.volume_terms]
        masks += [index.node_terms_mask((term,), each.node_index) for _, term in rules.preferred_nodes]
        return [mask.tolist() for mask in masks]

    def pods_of(each: ClusterState, selector: Selector | None) -> list[bool]:
        return LabelIndex(each.label_sets).mask(selector).tolist()

    assert nodes_of(state, plain) == nodes_of(hidden, other)
    assert any(any(mask) for mask in nodes_of(state, plain))
    assert pods_of(state, plain.affinity[0].selector) == pods_of(hidden, other.affinity[0].selector)
    assert pods_of(state, plain.spread[0].selector) == pods_of(hidden, other.spread[0].selector)
    chosen = [namespaces_of_term(s.anti_affinity[0], "x", e.namespaces) for e, s in ((state, plain), (hidden, other))]
    assert [matches(Selector(), e.namespaces[next(iter(c))].get) for e, c in zip((state, hidden), chosen, strict=True)] == [True, True]
    assert len(chosen[1]) == 1
    assert hidden.nodes.taints[0][0].value == other.tolerations[0].value
    assert hidden.nodes.labels[0]["topology.kubernetes.io/zone"] in other.volume_zones[0].values
    assert other.exclusive_claims[0] == f"{hidden.pods.namespaces[0]}/{hidden.pods.volumes[0].claims[0]}"


@settings(deadline=None, max_examples=30)
@given(state=states())
def test_an_anonymous_state_can_be_saved_and_read(state: ClusterState) -> None:
    """Anonymisation makes a whole state."""
    hidden = anonymize(state, salt="s")
    assert same(hidden, load_snapshot(dump_snapshot(hidden)))
