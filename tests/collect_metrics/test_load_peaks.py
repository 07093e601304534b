"""Maxima when Prometheus answers badly: a part is not taken for the whole, a failure is a note, and the next cycle asks again."""

from __future__ import annotations

import numpy as np

from rebalancer.collect.load_peaks import LoadPeaks, Peaks, PeriodsS
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Pool, Spec, Threshold
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import AT, LABELS, NODES
from tests.support.scripted_prometheus import ScriptedPrometheus, vector

SPEC = Spec(pools=(Pool(name="p", signals={"cpu": Threshold(low=40, target=55, high=70)}),))
HOUR = "max_over_time((sum without (cpu, mode) (rate(node_cpu_seconds_total"
MEAN = np.array([1.0, 2.0, 3.0])


def read(
    peaks: LoadPeaks, directory: NodeDirectory, *, at: float = AT, mean: np.ndarray = MEAN, names: tuple[str, ...] = NODES
) -> tuple[Peaks, tuple[str, ...]]:
    found, notes = peaks.read(
        ("cpu",), spec=SPEC, directory=directory, names=names, usage={"cpu": mean}, periods=PeriodsS(), at=at, deadline=Deadline.after(30)
    )
    return found["cpu"], notes


def whole(*values: float, warnings: tuple[str, ...] = ()) -> object:
    return vector(*zip(LABELS, values, strict=True), warnings=warnings)


def peaks_of(server: ScriptedPrometheus, connect: Connect) -> tuple[LoadPeaks, Prometheus]:
    prometheus = connect(server)
    return LoadPeaks(prometheus, budget_s=60), prometheus


def test_an_answer_that_may_be_partial_is_not_remembered(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """What a part of the storage does not know may be the peak; the next cycle asks again."""
    server.on(HOUR, whole(4.0, 5.0, 6.0, warnings=("a store is down",)))
    peaks, _ = peaks_of(server, connect)
    found, notes = read(peaks, directory)
    assert np.isnan(found.hour).all()
    assert np.isnan(found.day).all()
    assert [note for note in notes if "may be partial: a store is down" in note]
    server.on(HOUR, whole(4.0, 5.0, 6.0))
    found, notes = read(peaks, directory, at=AT + 120)
    assert found.hour.tolist() == found.day.tolist() == [4.0, 5.0, 6.0]
    assert notes == ()


def test_a_node_that_comes_and_one_that_goes_do_not_disturb_the_others(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """What is remembered goes by name; a new node has no maxima before the next query."""
    server.on(HOUR, whole(4.0, 5.0, 6.0))
    peaks, _ = peaks_of(server, connect)
    read(peaks, directory)
    found, _ = read(peaks, directory, at=AT + 120, mean=np.array([3.0, 9.0, 1.0]), names=("n3", "n9", "n1"))
    assert found.hour[[0, 2]].tolist() == [6.0, 4.0]
    assert np.isnan(found.hour[1])


def test_an_absurd_maximum_is_unknown(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """A counter gone wild is no load."""
    server.on(HOUR, whole(4.0, 1e9, 6.0))
    found, _ = read(peaks_of(server, connect)[0], directory, mean=np.array([1.0, np.nan, 3.0]))
    assert np.isnan(found.hour[1])
    assert found.hour[0] == 4.0
