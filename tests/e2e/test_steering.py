"""Steering: replacements land as planned, a burst keeps off hot nodes, a broken extender keeps nobody waiting, and nothing stays behind.

`make steering` (benchmarks/steering.py) runs the same course for every way, side by side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rebalancer.plan.grades import WARM_TAINT
from rebalancer.steer.own_annotation import LOAD
from tests.e2e.api import until
from tests.e2e.ground import Ground, ground
from tests.e2e.heat import HOT, heated
from tests.e2e.hollow import HollowNode
from tests.e2e.plane import ControlPlane
from tests.e2e.steering_failures import latencies
from tests.e2e.steering_marks import marks
from tests.e2e.steering_run import burst, half_hot, small_town, steered
from tests.e2e.steering_ways import ANNOTATIONS, NONE, OWN, RESERVATIONS, Way, one_move
from tests.e2e.table import Row
from tests.support.embedded import Process

AS_PLANNED = 0.8
"""The aim is 0.95, on a quiet machine."""
EVERYTHING = "softTaint: true, grades: 2, annotateNodes: both"
NOTHING = "softTaint: false, annotateNodes: none"
PROBED = "e2e-probed"
MARKED_S = 120.0


@pytest.fixture(autouse=True)
def _own_scheduler(plane: ControlPlane) -> None:
    if not plane.own:
        pytest.skip("the scheduler of a borrowed cluster is not ours to configure")


@pytest.mark.timeout(900)
def test_replacements_land_where_their_room_is_reserved(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Steering: with the extender and its reservations, replacements land as planned, by the rights of `policy rbac --extender` alone."""
    course = steered(plane, tmp_path / "town", small_town(), RESERVATIONS)
    planned = sum(course.settled.values())
    scenario.shows(f"{course.on_named} of {course.evictions} on the planned node, {course.as_planned} of {planned} there or as good")
    scenario.shows(f"hot nodes {course.hot(after=60):.2f} on average after a minute, left alone {course.hot_idle(after=60):.2f}")
    scenario.shows(f"{len(course.again)} workloads evicted twice")
    assert course.evictions > 0, (course.cycles, course.trouble)
    assert course.on_named >= AS_PLANNED * course.evictions, (course.moves, course.landed)
    assert not course.again
    assert course.hot(after=60) < course.hot_idle(after=60)
    assert marks(plane.api) == []


@pytest.mark.timeout(900)
def test_a_burst_keeps_off_hot_nodes(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Steering: of 200 new pods fewer land on hot nodes with the extender than without."""
    with half_hot(plane, tmp_path) as own:
        alone, led = burst(own, NONE), burst(own, ANNOTATIONS)
    for each in (alone, led):
        scenario.shows(f"{each.name}: {each.hot} of {each.pods} on hot nodes, all bound within {each.seconds:.0f} s")
    assert alone.hot > 0, "the scheduler alone keeps off the hot nodes; this shows nothing"
    assert led.hot <= alone.hot / 4


def test_pods_are_bound_whatever_becomes_of_the_extender(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Steering: kube-scheduler goes on when its extender hangs, answers garbage, or is gone."""
    nodes = [HollowNode(f"node-{number}") for number in range(4)]
    with ground(plane, tmp_path, nodes, monitored=False) as own:
        own.namespace(PROBED)
        for each in latencies(own, PROBED):
            scenario.shows(each.words)


@contextlib.contextmanager
def marked(plane: ControlPlane, folder: Path) -> Iterator[tuple[Ground, Process]]:
    """A controller that has put on everything that it can, on a ground whose hot nodes it may not cure."""
    with heated(plane, folder) as own:
        own.namespace(OWN)
        policy = own.policy(_steering(EVERYTHING))
        with own.process("run", "--policy", policy, "--listen", "127.0.0.1:0", env={"REBALANCER_NAMESPACE": OWN}) as process:
            _waited(process, "hot nodes are tainted, and all are annotated", lambda: _everything(own))
            yield own, process


def _steering(chosen: str) -> str:
    return one_move(Way("", chosen).spec)


def _everything(own: Ground) -> bool:
    there = marks(own.api)
    tainted = [line for line in there if f"taint {WARM_TAINT.key}" in line]
    return len(tainted) >= len(HOT) and sum(f"annotation {LOAD}" in line for line in there) == len(own.hollow.nodes)


def _waited(process: Process, what: str, done: Callable[[], object]) -> None:
    try:
        until(done, what, seconds=MARKED_S, step=0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error


def test_steering_that_is_switched_off_leaves_nothing(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Steering: an edit of the policy takes every taint and annotation off nodes and pods."""
    with marked(plane, tmp_path) as (own, process):
        scenario.shows(f"{len(marks(own.api))} marks on nodes")
        own.policy(_steering(NOTHING))
        _waited(process, "nothing of ours is left", lambda: not marks(own.api))
        scenario.shows("none after the edit")
        assert process.terminate() == 0
        assert marks(own.api) == []


def test_a_cleanup_after_a_kill_leaves_nothing(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Steering: the controller is killed; `rebalancer cleanup` takes every taint and annotation off nodes and pods."""
    with marked(plane, tmp_path) as (own, process):
        process.popen.kill()
        process.wait()
        scenario.shows(f"{len(marks(own.api))} marks after the kill")
        assert _everything(own)
        own.run("cleanup", env={"REBALANCER_NAMESPACE": OWN}).ended(0)
        assert marks(own.api) == []
        scenario.shows("none after the clean-up")
