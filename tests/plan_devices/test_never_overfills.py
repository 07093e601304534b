"""Whatever a plan moves and whichever devices schemes choose: nothing is overfilled, ill, in doubt, or of another model.

The plan is carried out on the fleet as it truly is, in any order, by schemes that count what was asked for and choose as they like (as
gpushare does, where that is its way). Evicted pods stay to the end, so that nothing that they leave is counted on.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.model import Plan
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.gpu_holders import Overuse
from tests.plan.deciding import planned
from tests.plan_devices.fleets import WAYS, Fleet, Place, Way, fleets
from tests.plan_devices.test_moves import spec

SLACK = 1 + 1e-6
RELIEVING = spec(gpu=Gpu(overuse=Overuse(action="move", device_above=40)))
GOOD = frozenset(("", "over-used", "leaking"))


def could_get(fleet: Fleet, pod: str, way: Way, node: str) -> list[Place]:
    """The devices of the node that the scheme could give the pod, by what was asked for."""
    places = [place for place in fleet.size if place[0] == node and fleet.odd[place] != "unhealthy"]
    asked = {place: sum(fleet.tenths[holder] for holder in fleet.holders[place]) for place in places}
    if way.name in ("plain", "mig"):
        return [place for place in places if not fleet.holders[place]]
    if way.name == "time-slicing":
        return [place for place in places if len(fleet.holders[place]) < way.replicas]
    fitting = [place for place in places if asked[place] + fleet.tenths[pod] <= 10]
    if way.name == "gpushare" and fitting:
        return [min(fitting, key=lambda place: (10 - asked[place], place))]
    return fitting


def carry_out(fleet: Fleet, plan: Plan, data: st.DataObject) -> None:
    """Every replacement finds a device in its turn, and the device is a good one with it on."""
    moves = data.draw(st.permutations(plan.moves))
    for move in moves:
        pod, source = move.pod.name, next(place for place, holders in fleet.holders.items() if move.pod.name in holders)
        way, there = fleet.ways[source[0]], fleet.ways.get(move.destination)
        assert there == way or (way.name == "kai" and there is not None and there.name == "plain")
        devices = could_get(fleet, pod, way, move.destination)
        assert devices, f"no device is left for {pod} on {move.destination}"
        place = data.draw(st.sampled_from(devices))
        assert fleet.odd[place] in GOOD
        assert fleet.model[place] == fleet.model[source]
        fleet.holders[place].append(pod)
        fleet.bytes_used[place] += fleet.takes[pod]
        assert fleet.bytes_used[place] <= fleet.size[place] * SLACK
        assert way.name == "time-slicing" or sum(fleet.tenths[each] for each in fleet.holders[place]) <= 10


@settings(max_examples=250, suppress_health_check=list(HealthCheck), deadline=None)
@given(fleets(), st.data())
def test_no_plan_overfills_a_device_whatever_the_schemes_choose(fleet: Fleet, data: st.DataObject) -> None:
    """Every sharing scheme mixed, in one fleet."""
    carry_out(fleet, planned(fleet.state, spec()), data)


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(fleets(), st.data())
def test_nor_does_one_that_makes_room_on_devices_that_over_users_fill(fleet: Fleet, data: st.DataObject) -> None:
    """What leaves a full device does not fill another."""
    carry_out(fleet, planned(fleet.state, RELIEVING), data)


@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(fleets())
def test_no_node_is_called_infeasible_that_a_scheme_would_choose(fleet: Fleet) -> None:
    """A replacement would land where nobody expects it. Where places of pods are not known, a scheme may refuse what is called feasible."""
    state = fleet.state
    book, home = DeviceBook(state), {pod: place for place, pods in fleet.holders.items() for pod in pods}
    for row, pod in enumerate(state.pods.names):
        way, possible = fleet.ways[home[pod][0]], book.possible(row)
        for node, at in state.node_index.items():
            if fleet.ways.get(node) != way or fleet.model[node, 0] != fleet.model[home[pod]]:
                continue  # what is asked for in bytes is another part of another model
            would = bool(could_get(fleet, pod, way, node))
            assert possible[at] or not would
            if not state.gpus.unplaced.size and not way.units:
                assert possible[at] == would


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_there_are_plans_to_be_carried_out(way: Way) -> None:
    """The property says something of each way of sharing: some fleet has a move."""
    quick = settings(max_examples=2000, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    assert planned(find(fleets(ways=(way,)), lambda fleet: bool(planned(fleet.state, spec()).moves), settings=quick).state, spec()).moves


def test_there_are_plans_that_make_room() -> None:
    """The rule above is not kept by planning nothing."""

    def makes_room(fleet: Fleet) -> bool:
        plan = planned(fleet.state, RELIEVING)
        return plan.method == "relieve" and bool(plan.moves)

    assert makes_room(find(fleets(), makes_room))
