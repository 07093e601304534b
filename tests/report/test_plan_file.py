"""A plan survives the way to a file and back, and a bad file is refused in one sentence."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.errors import PlanFileError
from rebalancer.report.plan_file import plan_from_json, plan_to_json
from tests.report import samples


def _edited(change: Callable[[dict[str, object]], object]) -> bytes:
    value = json.loads(plan_to_json(samples.plan()))
    change(value)
    return json.dumps(value).encode()


def _refusal(data: bytes) -> str:
    with pytest.raises(PlanFileError) as caught:
        plan_from_json(data, "plan.json")
    assert caught.value.exit_status == 2
    assert caught.value.remedy
    return caught.value.message


def test_a_plan_comes_back_as_it_went() -> None:
    """Writing and reading change nothing."""
    assert plan_from_json(plan_to_json(samples.plan()), "plan.json") == samples.plan()


def test_unknown_numbers_come_back_unknown() -> None:
    """NaN is written as null and read as None, not as zero."""
    plan = samples.plan()
    plan = replace(plan, summary=replace(plan.summary, max_load=math.nan))
    assert plan_from_json(plan_to_json(plan), "plan.json").summary.max_load is None


def test_the_file_can_be_reviewed() -> None:
    """One value a line, a line break at the end."""
    data = plan_to_json(samples.plan())
    assert data.startswith(b'{\n  "apiVersion": "rebalancer.dev/v1alpha1",\n  "kind": "Plan",\n')
    assert data.endswith(b"}\n")


def test_fields_of_a_newer_version_are_ignored() -> None:
    """Fields are added freely, so an unknown one is no damage."""
    assert plan_from_json(_edited(lambda plan: plan.update(futureField=1)), "plan.json") == samples.plan()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "plan file plan.json is empty"),
        (b"\x00\xff\xfe", "plan file plan.json is not a JSON object"),
        (b"[1, 2]", "plan file plan.json is not a JSON object"),
        (b'{"kind": "Plan", "apiVersion": "rebalancer.dev/v1alpha1"', "plan file plan.json is not a JSON object"),
        (b"{}", "plan.json holds no kind, not a Plan"),
        (b'{"kind": "\\u001b[31mPod", "apiVersion": "v1"}', "plan.json holds a Pod, not a Plan"),
        (b'{"kind": "Plan", "apiVersion": "rebalancer.dev/v2"}', "has apiVersion rebalancer.dev/v2, this program reads"),
        (b'{"kind": "Plan", "apiVersion": "rebalancer.dev/v1alpha1"}', "is damaged (object missing required field"),
    ],
)
def test_what_is_no_plan_is_named(data: bytes, message: str) -> None:
    """Empty, binary, cut off, another kind, another version."""
    assert message in _refusal(data)


def _first(key: str, value: object) -> Callable[[dict[str, object]], object]:
    def change(plan: dict[str, object]) -> None:
        moves = plan["moves"]
        assert isinstance(moves, list)
        moves[0][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_first("pod", {"namespace": "a", "name": "b", "uid": ""}), "moves[0] has a pod without namespace, name or uid"),
        (_first("source", ""), "moves[0] has no source or no destination"),
        (_first("action", "delete"), "moves[0] has action 'delete', which is neither evict nor annotate"),
        (_first("gain", None), "expected `float`, got `null` - at `$.moves[0].gain`"),
        (lambda plan: plan.update(createdAt="yesterday"), "createdAt 'yesterday' is not a time with a zone"),
        (lambda plan: plan.update(mode="EVICT"), "mode 'EVICT' is not known"),
        (lambda plan: plan.update(cluster=""), "it does not name its cluster"),
        (lambda plan: plan.update(moves=[*plan["moves"], plan["moves"][0]]), "a second time"),
    ],
)
def test_an_edited_plan_that_could_do_harm_is_refused(change: Callable[[dict[str, object]], object], message: str) -> None:
    """Everything that an eviction depends on is checked before anything is evicted."""
    assert message in _refusal(_edited(change))


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_numbers_that_are_none_are_refused(number: bytes) -> None:
    """Python's own writers leave NaN and Infinity in files that call themselves JSON."""
    data = plan_to_json(samples.plan()).replace(b"0.0484", number, 1)
    assert "plan file plan.json is" in _refusal(data)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_stumble(data: bytes) -> None:
    """Whatever the file holds, the answer is a PlanFileError."""
    with pytest.raises(PlanFileError):
        plan_from_json(data, "plan.json")


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_one_damaged_byte_is_noticed_or_harmless(place: int, value: int) -> None:
    """A flipped byte gives a plan or a PlanFileError, never another failure."""
    data = bytearray(plan_to_json(samples.plan()))
    data[place % len(data)] = value
    with contextlib.suppress(PlanFileError):
        assert plan_from_json(bytes(data), "plan.json").kind == "Plan"
