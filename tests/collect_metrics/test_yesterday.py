"""Yesterday: the query of today at another time, on whole steps, and never needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rebalancer.collect.asking import Asking
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.yesterday import DAY_S, read_yesterday
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Anticipation, Confirm, Pool, Spec, Threshold
from rebalancer.state.cluster import Yesterday
from tests.collect_metrics.conftest import Connect
from tests.support.scripted_prometheus import Form, Reply, ScriptedPrometheus, success

AT = 1_750_000_100.0
NAMES = ("n1", "n2", "n3")
SPEC = Spec(
    pools=(Pool(name="default", signals={"cpu": Threshold(low=30, target=55, high=65)}),),
    anticipation=Anticipation(horizon=1200, step=300),
    confirm=Confirm(windows=10, at_least=8, step=60),
)
CAPACITY = np.array([[4.0], [8.0], [np.nan]])


def read(prometheus: Prometheus, directory: NodeDirectory, **options: object) -> tuple[Yesterday, list[str]]:
    asking = Asking(prometheus, directory=directory, at=AT, deadline=Deadline.after(20))
    given: dict[str, object] = {"sources": {"cpu": "node_exporter"}, "wanted": ["cpu"], **options}
    found = read_yesterday(asking, spec=SPEC, names=NAMES, capacity=CAPACITY, **given)  # type: ignore[arg-type]
    return found, sorted(asking.heard.notes)


def answering(series: Sequence[tuple[Mapping[str, str], float]], *, without: int = -1) -> object:
    """The value of each series at every moment that is asked for, but for one of them."""

    def reply(form: Form) -> Reply:
        start, end, step = float(form["start"]), float(form["end"]), float(form["step"])
        moments = [start + step * number for number in range(round((end - start) / step) + 1)]
        shown = [moment for number, moment in enumerate(moments) if number != without]
        return success("matrix", [{"metric": labels, "values": [[moment, str(value)] for moment in shown]} for labels, value in series])

    return reply


def test_the_query_of_today_is_asked_for_whole_steps_of_yesterday(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """From the oldest window to twice the horizon, so that the next cycle asks for the same moments."""
    server.on("node_cpu_seconds_total", answering([({"node": "n1"}, 2.0), ({"node": "n2"}, 2.0)]))
    found, notes = read(connect(server), directory)
    (asked,) = [each for each in server.asked if each.path.endswith("query_range")]
    start, end = float(asked.form["start"]), float(asked.form["end"])
    assert (start % 300, end % 300, float(asked.form["step"])) == (0, 0, 300)
    assert start <= AT - DAY_S - 540 < start + 300
    assert end - 300 < AT - DAY_S + 2400 <= end
    assert found.ahead_s[0] == start + DAY_S - AT
    assert found.ahead_s[-1] == end + DAY_S - AT
    np.testing.assert_allclose(found.load[0, 0], 0.5)
    np.testing.assert_allclose(found.load[1, 0], 0.25)
    assert np.isnan(found.load[2]).all()
    assert notes == ["signal cpu: yesterday at this time is known of 2 of 3 nodes"]


def test_what_is_missing_or_contradicts_itself_is_unknown(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """A point without a value, and a node with two series; nothing of another cluster's node."""
    series = [({"node": "n1"}, 2.0), ({"node": "n2", "job": "a"}, 2.0), ({"node": "n2", "job": "b"}, 2.0), ({"node": "else"}, 9.0)]
    server.on("node_cpu_seconds_total", answering(series, without=1))
    load = read(connect(server), directory)[0].load
    assert np.flatnonzero(np.isnan(load[0, 0])).tolist() == [1]
    assert np.isnan(load[1, 0]).all()


@pytest.mark.parametrize("options", [{"wanted": []}, {"sources": {}}, {"sources": {"cpu": "another way"}}])
def test_nothing_is_asked_for_without_need(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory, options: dict[str, object]
) -> None:
    """Of signals that no node is hot by, and where today was measured in no way that is known."""
    found, notes = read(connect(server), directory, **options)
    assert np.isnan(found.load).all()
    assert (server.asked, notes) == ([], [])


def test_a_refusal_is_a_note_and_nothing_is_known(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """A server that keeps half a day may answer so, and the cycle goes on."""
    server.on("node_cpu_seconds_total", Reply(status=422, body=b'{"status":"error","errorType":"execution","error":"too old"}'))
    found, notes = read(connect(server), directory)
    assert np.isnan(found.load).all()
    assert len(notes) == 1
    assert notes[0].startswith("signal cpu: yesterday is unknown: ")
