"""Bookings of devices that are taken back leave no trace."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.gpu.columns import Columns
from rebalancer.plan.ledger import Placements
from tests.plan_devices.fleets import Fleet, fleets

PROFILE = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def held(book: DeviceBook) -> dict[str, list[float]]:
    return {each.name: np.asarray(getattr(book.columns, each.name)).tolist() for each in fields(Columns)}


@PROFILE
@given(fleets(), st.data())
def test_a_rewound_plan_has_its_devices_back(fleet: Fleet, data: st.DataObject) -> None:
    """Any pods on any nodes, whether they fit there or not, and some of them gone from where they were."""
    state = fleet.state
    placements, fresh = Placements(state), Placements(state)
    pods = data.draw(st.permutations(range(len(fleet.pods))))[:6]
    moves = [(pod, data.draw(st.integers(0, len(fleet.nodes) - 1))) for pod in pods]
    for pod, node in moves[:2]:
        placements.book(pod, node)
        fresh.book(pod, node)
    placed, mark = placements.mark(), placements.devices.mark()
    for pod, node in moves[2:]:
        if data.draw(st.booleans()):
            placements.devices.release(pod)
        placements.book(pod, node)
    placements.rewind(placed)
    placements.devices.undo(mark)
    assert str(held(placements.devices)) == str(held(fresh.devices))  # NaN equals NaN in words


@PROFILE
@given(fleets(), st.data())
def test_what_a_copy_books_its_original_does_not_hear_of(fleet: Fleet, data: st.DataObject) -> None:
    """And the other way round."""
    book = DeviceBook(fleet.state)
    copied = book.copy()
    before = str(held(book))
    for pod in range(len(fleet.pods)):
        copied.book(pod, data.draw(st.integers(0, len(fleet.nodes) - 1)))
    assert str(held(book)) == before


@PROFILE
@given(fleets(), st.data())
def test_asking_of_some_nodes_is_asking_of_all_of_them(fleet: Fleet, data: st.DataObject) -> None:
    """With a booking or two, for every pod."""
    book = DeviceBook(fleet.state)
    nodes = st.integers(0, len(fleet.nodes) - 1)
    for pod in range(len(fleet.pods)):
        some = np.array(data.draw(st.lists(nodes, min_size=1, max_size=4)))
        assert book.fits(pod, some).tolist() == book.fits(pod)[some].tolist()
        if pod < 2:
            book.book(pod, data.draw(nodes))
