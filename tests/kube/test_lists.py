"""Lists: whole, consistent, and not blinded by a bad moment or an odd object."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.deadline import Deadline
from rebalancer.errors import (
    Interrupted,
    KubernetesError,
    KubernetesExpired,
    KubernetesForbidden,
    KubernetesThrottled,
    KubernetesUnreachable,
)
from rebalancer.kube.client import KubeClient
from rebalancer.kube.decoding import NotAPage, PageDecoder
from rebalancer.kube.lists import MAX_RESTARTS, Resource, list_all
from rebalancer.kube.versions import version_now
from tests.kube.conftest import Connect
from tests.support.scripted_api import Reply, ScriptedApi, page, status


class Meta(msgspec.Struct):
    name: str


class Condition(msgspec.Struct):
    status: str


class Thing(msgspec.Struct):
    metadata: Meta
    conditions: list[Condition] = []


THINGS = Resource(name="things", path="/apis/example.dev/v1/things", item=Thing)


def thing(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


def names(things: list[Thing]) -> list[str]:
    return [thing.metadata.name for thing in things]


def test_pages_are_put_together_in_order(api: ScriptedApi, connect: Connect, deadline: Deadline) -> None:
    """Every page is asked for with a limit and with the token of the page before."""
    api.on("GET", THINGS.path, page([thing("a"), thing("b")], token="t1"), page([thing("c")], token="t2"), page([thing("d")]))
    listed = list_all(connect(page_size=2), THINGS, deadline=deadline, query=(("labelSelector", "a=b,c"),))
    assert names(listed.items) == ["a", "b", "c", "d"]
    assert listed.resource_version == "100"
    assert [asked.query for asked in api.asked] == [
        {"labelSelector": "a=b,c", "limit": "2"},
        {"labelSelector": "a=b,c", "limit": "2", "continue": "t1"},
        {"labelSelector": "a=b,c", "limit": "2", "continue": "t2"},
    ]


def test_a_version_is_named_on_the_first_page_only(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A continue token beside a resourceVersion would be refused by the server."""
    api.on("GET", THINGS.path, page([thing("a")], token="t1"), page([thing("b")]))
    list_all(client, THINGS, deadline=deadline, query=(("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan")))
    assert [sorted(asked.query) for asked in api.asked] == [["limit", "resourceVersion", "resourceVersionMatch"], ["continue", "limit"]]


def test_an_empty_list_is_empty_also_when_the_server_says_null(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Go writes an empty slice as null."""
    api.on("GET", THINGS.path, Reply(body={"metadata": {"resourceVersion": "5"}, "items": None}))
    listed = list_all(client, THINGS, deadline=deadline)
    assert listed.items == []
    assert listed.resource_version == "5"


def test_one_connection_serves_all_pages(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A connection is given back whole after each answer, compressed or not."""
    api.on("GET", THINGS.path, page([thing("a")], token="t1"), page([thing("b")], token="t2", gzip=True), page([thing("c")]))
    assert names(list_all(client, THINGS, deadline=deadline).items) == ["a", "b", "c"]
    assert len({asked.client for asked in api.asked}) == 1
    assert {asked.headers["accept-encoding"] for asked in api.asked} == {"gzip"}


def test_kw6_one_odd_object_among_ten_is_left_out_and_counted(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A condition without status makes one object odd; nine arrive, and the reason names the field."""
    items: list[object] = [thing(f"n{index}") for index in range(10)]
    items[4] = {"metadata": {"name": "odd"}, "conditions": [{"type": "Ready"}]}
    api.on("GET", THINGS.path, page(items))
    listed = list_all(client, THINGS, deadline=deadline)
    assert names(listed.items) == [f"n{index}" for index in range(10) if index != 4]
    assert dict(listed.odd) == {"Object missing required field `status` - at `$.conditions[]`": 1}


def test_kw6_odd_objects_of_all_pages_add_up(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Two pages with one odd object each of the same kind: counted twice under one reason."""
    api.on("GET", THINGS.path, page([{"metadata": {}}, thing("a")], token="t"), page([thing("b"), {"metadata": {}}]))
    listed = list_all(client, THINGS, deadline=deadline)
    assert names(listed.items) == ["a", "b"]
    assert list(listed.odd.values()) == [2]


@given(odd=st.lists(st.booleans(), max_size=30))
def test_kw6_exactly_the_odd_ones_are_missing(odd: list[bool]) -> None:
    """For any mixture, what is well formed arrives in order and the rest is counted."""
    items: list[object] = [{"metadata": {"name": 7}} if bad else thing(f"n{index}") for index, bad in enumerate(odd)]
    decoded = PageDecoder(Thing).decode(json.dumps({"metadata": {}, "items": items}).encode())
    assert names(decoded.items) == [f"n{index}" for index, bad in enumerate(odd) if not bad]
    assert sum(decoded.odd.values()) == sum(odd)


@pytest.mark.parametrize("metadata_only", [False, True])
def test_metadata_only_lists_ask_for_metadata_with_plain_json_as_second_choice(
    api: ScriptedApi, client: KubeClient, deadline: Deadline, metadata_only: bool
) -> None:
    """One request serves old and new servers, since the header names both forms."""
    api.on("GET", THINGS.path, page([thing("a")]))
    list_all(client, Resource(name="things", path=THINGS.path, item=Thing, metadata_only=metadata_only), deadline=deadline)
    wanted = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    assert api.asked[0].headers["accept"] == (wanted if metadata_only else "application/json")


def test_a_server_that_refuses_the_metadata_form_is_asked_for_plain_json(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """406 to the combined header falls back to whole objects."""
    api.on("GET", THINGS.path, status(406, "only the following media types are accepted"), page([thing("a")]))
    listed = list_all(client, Resource(name="things", path=THINGS.path, item=Thing, metadata_only=True), deadline=deadline)
    assert names(listed.items) == ["a"]
    assert api.asked[1].headers["accept"] == "application/json"


EXPIRED = status(410, "The provided continue parameter is too old", reason="Expired")


def test_an_expired_token_starts_the_list_afresh_once(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """410 in the middle: no page of the old version is kept, and the expired token is never sent again."""
    api.on("GET", THINGS.path, page([thing("old")], token="t1"), EXPIRED, page([thing("a")], token="t2", version="200"))
    api.on("GET", THINGS.path, page([thing("b")], version="200"))
    listed = list_all(client, THINGS, deadline=deadline)
    assert names(listed.items) == ["a", "b"]
    assert (listed.resource_version, listed.restarts) == ("200", 1)
    assert [asked.query.get("continue") for asked in api.asked] == [None, "t1", None, "t2"]


def test_a_list_that_expires_for_ever_is_given_up(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Bounded: first try and MAX_RESTARTS more, then a sentence."""
    api.on("GET", THINGS.path, EXPIRED)
    with pytest.raises(KubernetesExpired, match=r"the list of things .* expired 4 times"):
        list_all(client, THINGS, deadline=deadline)
    assert len(api.asked) == MAX_RESTARTS + 1


def test_a_server_that_repeats_its_token_does_not_make_us_list_for_ever(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The same token twice in a row is an error, not an endless list."""
    api.on("GET", THINGS.path, page([thing("a")], token="t"))
    with pytest.raises(KubernetesError, match="same continue token twice"):
        list_all(client, THINGS, deadline=deadline)
    assert len(api.asked) == 2


GOOD = page([thing("a")])
PASSING = {
    "throttled with Retry-After": status(429, "slow down", headers={"Retry-After": "0"}),
    "throttled without": status(429, "slow down"),
    "internal error": status(500, "etcdserver: leader changed"),
    "load balancer": Reply(status=502, body=b"<html>Bad Gateway</html>", content_type="text/html"),
    "shutting down": status(503, "apiserver is shutting down"),
    "dropped before the answer": Reply(drop=True),
    "dropped in the middle": Reply(body=GOOD.body, cut=20),
    "cut where HTTP does not notice": Reply(body=GOOD.body, cut=20, unannounced=True),
    "cut in the middle of gzip": Reply(body=GOOD.body, cut=20, gzip=True),
    "cut between two pieces": Reply(body=GOOD.body, cut=32, chunked=True),
    "empty": Reply(body=b""),
    "another answer than a list": Reply(body={"kind": "Status"}),
}


def test_answers_in_pieces_are_put_together(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Long answers come chunked, compressed or not, and leave the connection usable."""
    body = {"metadata": {}, "items": [thing(f"thing-{index}") for index in range(50)]}
    api.on("GET", THINGS.path, Reply(body=body, chunked=True), Reply(body=body, chunked=True, gzip=True))
    assert len(list_all(client, THINGS, deadline=deadline).items) == 50
    assert len(list_all(client, THINGS, deadline=deadline).items) == 50
    assert len({asked.client for asked in api.asked}) == 1


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING.keys())
def test_a_bad_moment_costs_one_more_request(api: ScriptedApi, client: KubeClient, deadline: Deadline, failure: Reply) -> None:
    """What passes is tried again, with the same query, and the list is whole."""
    api.on("GET", THINGS.path, page([thing("first")], token="t"), failure, GOOD)
    listed = list_all(client, THINGS, deadline=deadline)
    assert names(listed.items) == ["first", "a"]
    assert [asked.query.get("continue") for asked in api.asked] == [None, "t", "t"]
    assert listed.restarts == 0


LASTING = {
    "throttled": (PASSING["throttled without"], KubernetesThrottled, "too many requests"),
    "internal error": (PASSING["internal error"], KubernetesError, "status 500 .etcdserver: leader changed"),
    "dropped": (PASSING["dropped before the answer"], KubernetesUnreachable, "dropped the connection"),
    "cut": (PASSING["cut where HTTP does not notice"], KubernetesUnreachable, "cut short"),
}


@pytest.mark.parametrize(("failure", "kind", "words"), LASTING.values(), ids=LASTING.keys())
def test_what_never_passes_is_given_up_with_a_sentence(
    api: ScriptedApi, client: KubeClient, deadline: Deadline, failure: Reply, kind: type[KubernetesError], words: str
) -> None:
    """Four tries, as the back-off of these tests says, then the error names the list and the server."""
    api.on("GET", THINGS.path, failure)
    with pytest.raises(kind, match=words) as raised:
        list_all(client, THINGS, deadline=deadline)
    assert len(api.asked) == 4
    assert "list things" in raised.value.message
    assert api.url in raised.value.message


def test_a_refusal_is_not_tried_again(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """403 once, and the sentence names the rule to add."""
    api.on("GET", THINGS.path, status(403, 'things is forbidden: User "me" cannot list', reason="Forbidden"))
    with pytest.raises(KubernetesForbidden) as raised:
        list_all(client, THINGS, deadline=deadline)
    assert len(api.asked) == 1
    assert '{apiGroups: ["example.dev"], resources: ["things"], verbs: ["list"]}' in raised.value.remedy


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(api: ScriptedApi, client: KubeClient) -> None:
    """The error comes at once, with what the server asked for."""
    api.on("GET", THINGS.path, status(429, "slow down", headers={"Retry-After": "3600"}))
    with pytest.raises(KubernetesThrottled) as raised:
        list_all(client, THINGS, deadline=Deadline.after(5.0))
    assert raised.value.retry_after_s == 3600
    assert len(api.asked) == 1


def test_kp2_a_hanging_server_ends_with_the_deadline(api: ScriptedApi, connect: Connect) -> None:
    """The server accepts and never answers: the read time-out and then the deadline end it."""
    api.on("GET", THINGS.path, Reply(silent=True))
    with pytest.raises(KubernetesUnreachable, match="did not finish its answer to list things within"):
        list_all(connect(timeout_s=0.1), THINGS, deadline=Deadline.after(0.35))
    assert 1 <= len(api.asked) <= 4


def test_a_hang_that_passes_is_survived(api: ScriptedApi, connect: Connect, deadline: Deadline) -> None:
    """A time-out is tried again on another connection."""
    api.on("GET", THINGS.path, Reply(silent=True), GOOD)
    assert names(list_all(connect(timeout_s=0.3), THINGS, deadline=deadline).items) == ["a"]


def test_a_past_deadline_sends_nothing(api: ScriptedApi, client: KubeClient) -> None:
    """No time left: an error, and no request."""
    with pytest.raises(KubernetesUnreachable, match="no time was left to list things"):
        list_all(client, THINGS, deadline=Deadline.after(0.0))
    assert api.asked == []


def test_a_stop_ends_a_list_between_pages(api: ScriptedApi, client: KubeClient) -> None:
    """The stop event is seen before the next page is asked for."""
    deadline = Deadline.after(20.0)
    api.on("GET", THINGS.path, page([thing("a")], token="t1"), page([thing("b")], token="t2"), page([thing("c")]))
    pages = client.pages(THINGS, deadline=deadline)
    next(pages)
    deadline.stop.set()
    with pytest.raises(Interrupted):
        next(pages)
    assert len(api.asked) == 1


@given(at=st.integers(min_value=0, max_value=60))
def test_wherever_an_answer_is_cut_it_is_never_taken_for_a_whole_one(at: int) -> None:
    """No prefix of a page decodes as a shorter page."""
    whole = json.dumps({"metadata": {}, "items": [thing("a"), thing("b")]}).encode()
    with pytest.raises(NotAPage):
        PageDecoder(Thing).decode(whole[: min(at, len(whole) - 1)])


def test_a_narrowed_resource_lists_what_it_is_narrowed_to(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The selector goes with every page, as the continue token demands."""
    narrow = replace(THINGS, query=(("fieldSelector", "metadata.name=a"),))
    api.on("GET", THINGS.path, page([thing("a")], token="more"), page([]))
    assert names(list_all(client, narrow, deadline=deadline).items) == ["a"]
    assert [asked.query["fieldSelector"] for asked in api.requests()] == ["metadata.name=a"] * 2


def test_the_version_to_watch_from_costs_one_object(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A list of one, of which the metadata is all that is asked for."""
    api.on("GET", THINGS.path, page([thing("a")], token="more", version="4711"))
    assert version_now(client, replace(THINGS, query=(("fieldSelector", "x!="),)), deadline=deadline) == 4711
    (asked,) = api.requests()
    assert (asked.query["limit"], asked.query["fieldSelector"]) == ("1", "x!=")
    assert "PartialObjectMetadataList" in asked.headers["accept"]


def test_a_version_that_is_no_number_is_told(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """It could not be continued."""
    api.on("GET", THINGS.path, page([], version="newest"))
    with pytest.raises(KubernetesError, match="no usable resourceVersion for things"):
        version_now(client, THINGS, deadline=deadline)
