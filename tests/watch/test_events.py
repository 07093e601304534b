"""From the bytes of a watch to what they say."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import KubernetesError, KubernetesExpired
from rebalancer.kube.watch_events import Absent, EventDecoder, Garbled, Odd, Present, Progress, lines, version_number
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_pods import PodWire
from tests.watch.kit import bookmark, event, gone, pod

PODS = EventDecoder(PodWire, name="pods")


def test_what_is_there_is_its_struct_with_key_and_version() -> None:
    """Added and modified say the same: how it is now."""
    for kind in ("ADDED", "MODIFIED"):
        news = PODS.decode(event(kind, pod("web-1", 42, nodeName="n1")))
        assert isinstance(news, Present)
        assert (news.key, news.version, news.item.spec.node_name) == ("a/web-1", 42, "n1")


def test_what_was_deleted_is_its_key_and_the_version_of_the_deletion() -> None:
    """Its last state is not read, so an odd one is deleted like any other."""
    assert PODS.decode(event("DELETED", {**pod("web-1", 43), "spec": 7})) == Absent("a/web-1", 43)


def test_a_bookmark_is_progress() -> None:
    """It carries a version and nothing else."""
    assert PODS.decode(bookmark(99)) == Progress(99)


def test_an_object_without_a_namespace_is_its_name() -> None:
    """Nodes and volumes."""
    news = EventDecoder(NodeWire, name="nodes").decode(event("ADDED", {"metadata": {"name": "n1", "resourceVersion": "7"}}))
    assert isinstance(news, Present)
    assert news.key == "n1"


def test_kw6_an_odd_object_is_told_by_key_and_reason() -> None:
    """The reason names the field and not which element of an array it was."""
    odd = {**pod("web-1", 42), "status": {"conditions": [{"type": "Ready"}, {"status": "True"}]}}
    reason = "Object missing required field `type` - at `$.status.conditions[]`"
    assert PODS.decode(event("MODIFIED", odd)) == Odd("a/web-1", 42, reason)


def test_kw2_an_error_event_with_410_is_expired() -> None:
    """By its code or its reason, whichever a server leaves out."""
    with pytest.raises(KubernetesExpired, match=r"the watch of pods has expired \(too old resource version"):
        PODS.decode(gone())
    with pytest.raises(KubernetesExpired):
        PODS.decode(event("ERROR", {"reason": "Expired"}))
    with pytest.raises(KubernetesExpired):
        PODS.decode(event("ERROR", {"code": 410}))


@pytest.mark.parametrize("value", [{"code": 500, "message": "no leader"}, {}, {"code": "x"}], ids=str)
def test_any_other_error_event_is_an_error(value: dict[str, object]) -> None:
    """Whatever it holds."""
    with pytest.raises(KubernetesError, match="the watch of pods was ended by the server"):
        PODS.decode(event("ERROR", value))


@given(junk=st.binary(max_size=80))
def test_no_bytes_raise_anything_unforeseen(junk: bytes) -> None:
    """A line is news, an error of ours, or garbled."""
    try:
        PODS.decode(junk)
    except (Garbled, KubernetesError):
        return


@given(
    names=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=600), max_size=8),
)
def test_lines_do_not_depend_on_how_the_bytes_are_cut(names: list[str], cuts: list[int]) -> None:
    """Chunks end anywhere, also in the middle of a line or between two."""
    whole = b"".join(event("ADDED", pod(name, number + 1)) for number, name in enumerate(names))
    bounds = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [whole[start:end] for start, end in itertools.pairwise(bounds)]
    found = [json.loads(line)["object"]["metadata"]["name"] for batch in lines(iter(chunks)) for line in batch]
    assert found == names


@given(at=st.integers(min_value=1, max_value=400))
def test_a_stream_that_ends_within_a_line_is_garbled(at: int) -> None:
    """A prefix of an event is never taken for an event; what stands before it arrives."""
    first, second = event("ADDED", pod("a", 1)), event("ADDED", pod("b", 2))
    cut = first + second[: min(at, len(second) - 1)]
    batches = lines(iter([cut]))
    assert next(batches) == [first.rstrip(b"\n")]
    with pytest.raises(Garbled, match="ends within a line"):
        next(batches)


def test_a_line_without_end_is_given_up() -> None:
    """Memory is bounded, whatever is sent."""
    with pytest.raises(Garbled, match="has no end"):
        list(lines(b"x" * 2**20 for _ in range(100)))


def test_versions_are_numbers_or_cannot_be_put_in_order() -> None:
    """As etcd counts them; 0 means no version at all, and other stores may use any word."""
    assert version_number("123456789012345678901") == 123456789012345678901
    assert [version_number(text) for text in ("", "0", "abc", "1.5", "-3", "٣")] == [None] * 6
