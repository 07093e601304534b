"""Annotations of all kinds, and the sums of a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.steer.gpushare.allocations import ALLOCATION, INDEX, OF_POD, Share, share_of
from rebalancer.steer.gpushare.choice import choose_device
from rebalancer.steer.gpushare.devices import Devices, ask_of, devices_of, read_unhealthy
from rebalancer.steer.gpushare.ledger import Holder, node_ledger
from rebalancer.steer.gpushare.register import Entry, format_register, parse_register
from tests.gpushare.kit import held, ledger, lost

SHARED = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({INDEX: "1", OF_POD: "3"}, Share(((1, 3),))),
        ({INDEX: "1"}, Share(((1, 3),))),
        ({INDEX: "1", OF_POD: "5"}, Share(((1, 5),))),
        ({INDEX: "1", OF_POD: "1"}, Share(((1, 3),))),
        ({}, Share(somewhere=3, oddity=f"has no annotation {INDEX}")),
        ({INDEX: "-1", OF_POD: "3"}, Share(somewhere=3, oddity=f"has the annotation {INDEX}: '-1', which is no device")),
        ({INDEX: "one", OF_POD: "3"}, Share(somewhere=3, oddity=f"has the annotation {INDEX}: 'one', which is no device")),
        ({INDEX: "0", OF_POD: "?"}, Share(((0, 3),), oddity=f"has the annotation {OF_POD}: '?', which is no amount")),
        ({ALLOCATION: '{"0":{"0":1,"1":2}}'}, Share(((0, 1), (1, 2)))),
        ({ALLOCATION: '{"0":{"1":1},"1":{"1":2}}', INDEX: "0", OF_POD: "3"}, Share(((1, 3),))),
        (
            {ALLOCATION: '{"0":{"0":1}}'},
            Share(((0, 1),), somewhere=2, oddity=f"asks for 3, and the annotation {ALLOCATION} speaks of 1"),
        ),
        (
            {ALLOCATION: "{", INDEX: "0", OF_POD: "3"},
            Share(somewhere=3, oddity=f"has the annotation {ALLOCATION}: '{{', which makes no sense"),
        ),
        (
            {ALLOCATION: '{"0":{"-1":3}}'},
            Share(somewhere=3, oddity=f'has the annotation {ALLOCATION}: \'{{"0":{{"-1":3}}}}\', which makes no sense'),
        ),
    ],
)
def test_what_a_pod_holds_by_its_annotations(annotations: dict[str, str], share: Share) -> None:
    """The pod asks for 3."""
    assert share_of(annotations, asked=3) == share


def test_a_pod_that_asks_for_nothing_holds_what_is_annotated_in_good_order() -> None:
    """And nothing if that is nonsense: no device plugin has given it a device."""
    assert share_of({INDEX: "1", OF_POD: "3"}, asked=0) == Share(((1, 3),))
    assert share_of({INDEX: "1", OF_POD: "x"}, asked=0).of_device == ()
    assert share_of({INDEX: "1", OF_POD: "x"}, asked=0).somewhere == 0
    assert share_of({}, asked=0) == Share()


def test_an_index_that_the_node_does_not_have_is_an_unknown_device() -> None:
    """What the pod holds counts on every device, and on no particular one."""
    found = ledger("n", held("p", 5, 1000))
    assert (found.used, found.somewhere) == ((0, 0), 1000)
    assert [found.free(0), found.free(1)] == [15276, 15276]
    assert found.oddities == ("pod default/p is said to hold device 5, and its node has 2; its 1000 count on every device of n",)


def test_a_device_is_never_promised_what_a_lost_pod_may_hold() -> None:
    """16276 on each of two devices, and 10000 of somebody on one of them."""
    assert choose_device(ledger("n", lost("p", 10000)), 6276) == 0
    assert choose_device(ledger("n", lost("p", 10000)), 6277) is None


def test_an_unhealthy_device_takes_no_pod() -> None:
    """But what is on it is still its own."""
    assert choose_device(ledger("n", held("p", 1, 100), unhealthy=[1]), 100) == 0
    assert choose_device(ledger("n", unhealthy=[0, 1]), 1) is None
    assert ledger("n", unhealthy=[0, 1]).most_free == 0


@pytest.mark.parametrize(
    ("capacity", "devices"),
    [
        (SHARED, Devices(2, 30)),
        ({**SHARED, "aliyun.com/gpu-mem": "31"}, Devices(2, 31)),
        ({**SHARED, "aliyun.com/gpu-count": "0"}, None),
        ({"aliyun.com/gpu-mem": "30"}, None),
        ({"aliyun.com/gpu-count": "2"}, None),
        ({**SHARED, "aliyun.com/gpu-mem": "many"}, None),
        ({**SHARED, "aliyun.com/gpu-count": "1000000000"}, None),
        ({}, None),
    ],
)
def test_which_nodes_share_devices(capacity: dict[str, str], devices: Devices | None) -> None:
    """Both resources are needed, and both must make sense."""
    assert devices_of(capacity) == devices


def test_capacity_speaks_before_allocatable() -> None:
    """With an unhealthy device less is allocatable, and no device is smaller for it."""
    assert devices_of(SHARED, {**SHARED, "aliyun.com/gpu-mem": "15"}) == Devices(2, 30)
    assert devices_of({}, SHARED) == Devices(2, 30)
    assert Devices(2, 31).each == 15


def test_bytes_of_a_device_by_the_size_of_its_figure() -> None:
    """Above 100 they are MiB."""
    assert Devices(1, 16276).each_bytes == 16276 * 2**20
    assert Devices(1, 15).each_bytes == 15 * 2**30


def test_limits_alone_are_what_a_pod_asks_for() -> None:
    """Requests, other resources and empty containers do not count."""
    ask = ask_of([{"aliyun.com/gpu-mem": "3", "cpu": "1"}, None, {}, {"aliyun.com/gpu-mem": "0"}])
    assert (ask.memory, ask.containers, ask.obstacle) == (3, 1, "")
    assert not ask_of([{"cpu": "1"}]).asks


@pytest.mark.parametrize(
    ("text", "devices", "odd"),
    [("0,2", {0, 2}, ""), (" 1 , ", {1}, ""), ("", set(), ""), (None, set(), ""), ("0,x,-1", {0}, "x, -1")],
)
def test_unhealthy_devices(text: str | None, devices: set[int], odd: str) -> None:
    """A list with commas; what is no device is named."""
    assert read_unhealthy(text) == (frozenset(devices), odd)


ENTRIES = st.lists(
    st.builds(
        Entry,
        uid=st.text(max_size=5),
        namespace=st.just("a"),
        name=st.text(max_size=5),
        version=st.text(max_size=5),
        device=st.integers(0, 7),
        memory=st.integers(0, 10**9),
        at=st.floats(0, 2e9),
        repeated=st.booleans(),
    ),
    max_size=5,
)


@given(ENTRIES)
def test_a_register_is_read_as_it_was_written(entries: list[Entry]) -> None:
    """In an order of its own."""
    again = parse_register(format_register(entries))
    assert again is not None
    assert sorted(again, key=repr) == sorted(entries, key=repr)


@given(st.one_of(st.text(), st.just('[{"uid":1}]'), st.just('[{"device":-1}]')))
def test_what_is_no_register_is_not_taken_for_an_empty_one(text: str) -> None:
    """None, never ()."""
    assert parse_register(text) in (None, ()) if text.strip() == "[]" else parse_register(text) is None


HOLDERS = st.lists(
    st.one_of(
        st.builds(lambda d, m: Share(((d, m),)), st.integers(0, 4), st.integers(0, 60)),
        st.builds(lambda m: Share(somewhere=m), st.integers(0, 60)),
    ),
    max_size=8,
)


@given(HOLDERS, st.integers(1, 120), st.sets(st.integers(0, 4)), st.integers(0, 3))
def test_wherever_lost_pods_are_no_device_is_filled_beyond_its_memory(
    shares: list[Share], asked: int, unhealthy: set[int], guess: int
) -> None:
    """Property: put what is lost on any one device; the chosen one holds all the same, if it was not overfilled before."""
    holders = [Holder(f"u{i}", "a", f"p{i}", share) for i, share in enumerate(shares)]
    found = node_ledger("n", Devices(4, 400), holders, unhealthy=frozenset(unhealthy))
    device = choose_device(found, asked)
    if device is None:
        assert all(found.free(each) < asked for each in found.healthy)
        return
    assert device not in unhealthy
    assert found.used[device] + (found.somewhere if guess == device else 0) + asked <= 100
    assert all(found.free(device) <= found.free(each) for each in found.healthy if found.free(each) >= asked)
