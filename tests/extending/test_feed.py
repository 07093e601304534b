"""What the extender is fed with: views that follow the news, pods that are anticipated, room that is kept, and what is said about it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rebalancer.collect.node_columns import NodeTable
from rebalancer.steer.extender import Chosen, filter_nodes, prioritize_nodes
from rebalancer.steer.judging import DynamicJudge
from rebalancer.units import format_time
from tests.extending.feeding import Scene, move, scene
from tests.extending.kit import node
from tests.steer.kit import NOW, crane, own, question
from tests.steer.test_reservations import STRANGER, pod

Logs = list[dict[str, Any]]


def load(cpu: float, *, at: float = NOW, lasts: float = 600.0) -> dict[str, str]:
    written = json.loads(own(cpu=cpu, memory=0.0, expires_at=at + lasts)["rebalancer.dev/load"])
    return {"rebalancer.dev/load": json.dumps({**written, "time": format_time(at)})}


def scores(here: Scene, *names: str, asking: object = None) -> dict[str, int]:
    asked = question(names, pod=asking)  # type: ignore[arg-type]
    answer = prioritize_nodes(asked, steering=here.feed.steering(), now=here.wall)
    return {each["Host"]: each["Score"] for each in json.loads(answer.body)}


def passed(here: Scene, *names: str, asking: object = None) -> list[str]:
    asked = question(names, pod=asking)  # type: ignore[arg-type]
    return list(json.loads(filter_nodes(asked, steering=here.feed.steering(), now=here.wall).body)["NodeNames"])


def told(logs: Logs, event: str) -> list[dict[str, Any]]:
    return [line for line in logs if event in line["event"]]


# ---- views ----------------------------------------------------------------------------------------------------------------


def test_views_follow_the_news() -> None:
    """Nothing before the first list; then by the marks of the policy: cpu 55 and 70 %."""
    here = scene()
    here.step()
    assert here.feed.steering().view is None
    assert passed(here, "idle", "hot") == ["idle", "hot"]
    here.nodes({"hot": load(0.9), "idle": load(0.0)})
    here.step()
    assert scores(here, "idle", "hot") == {"idle": 10, "hot": 0}
    assert passed(here, "idle", "hot") == ["idle"]
    here.nodes({"hot": load(0.55), "idle": load(0.0)})
    here.step()
    assert scores(here, "idle", "hot") == {"idle": 10, "hot": 5}


def test_without_news_a_view_gets_a_newer_date_from_time_to_time_and_nothing_else() -> None:
    """As long as what is known is known to be so."""
    here = scene()
    nodes = [node("a", load(0.1))]
    here.nodes(nodes)
    here.step()
    first = here.feed.steering().view
    here.pass_time(1)
    here.nodes(nodes)
    here.step()
    assert here.feed.steering().view is first
    here.pass_time(5)
    here.nodes(nodes)
    here.step()
    view = here.feed.steering().view
    assert view is not None
    assert view.made_at == NOW + 6


def test_while_nothing_newer_is_known_the_last_view_stays_until_it_is_too_old(said: Logs) -> None:
    """Then the extender abstains, says so once, and goes on once it knows again."""
    here = scene(oldest_view=60)
    here.nodes({"hot": load(0.9, lasts=10_000), "idle": load(0.0, lasts=10_000)})
    here.step()
    for _ in range(6):
        here.pass_time(10)
        here.step()
    assert passed(here, "idle", "hot") == ["idle"]
    assert told(said, "abstaining") == []
    for _ in range(3):
        here.pass_time(10)
        here.step()
    assert passed(here, "idle", "hot") == ["idle", "hot"]
    assert len(set(scores(here, "idle", "hot").values())) == 1
    here.nodes({"hot": load(0.9, lasts=10_000), "idle": load(0.0, lasts=10_000)})
    here.step()
    assert passed(here, "idle", "hot") == ["idle"]
    assert len(told(said, "abstaining")) == 1
    assert len(told(said, "steering")) == 2


def test_a_cluster_that_has_lost_all_its_nodes_is_not_believed() -> None:
    """An empty list is more likely a server that has lost its data: the last view stays, and grows old."""
    here = scene(oldest_view=60)
    here.nodes({"hot": load(0.9), "idle": load(0.0)})
    here.step()
    here.pass_time(30)
    here.nodes({})
    here.step()
    assert passed(here, "idle", "hot") == ["idle"]
    here.pass_time(31)
    here.nodes({})
    here.step()
    assert passed(here, "idle", "hot") == ["idle", "hot"]


def test_it_is_not_believed_after_an_edit_of_the_policy_either(tmp_path: Path) -> None:
    """Though then everything is read again."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY % (50, 70))
    here = scene(policy=file)
    here.nodes({"hot": load(0.9), "idle": load(0.0)})
    here.step()
    file.write_text(POLICY % (50, 80))
    here.pass_time(5)
    here.nodes({})
    here.step()
    assert passed(here, "idle", "hot") == ["idle"]


def test_an_empty_cluster_is_known_to_be_empty() -> None:
    """From the start: nobody waits for it."""
    here = scene()
    here.nodes({})
    here.step()
    assert here.feed.steering().ready(now=here.wall)


def test_a_pass_that_meets_a_defect_is_tried_again(said: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said once; the thread lives on, and the view that stands is given up when it is too old."""
    here, stop = scene(refresh=0.05, oldest_view=10), threading.Event()
    here.nodes({"a": load(0.1)})
    calls = []

    def broken(*_: object) -> bool:
        calls.append(1)
        if len(calls) == 3:
            stop.set()
        raise ZeroDivisionError

    monkeypatch.setattr(NodeTable, "look", broken)
    monkeypatch.setattr(stop, "wait", lambda seconds: stop.is_set())
    here.feed.run(stop)
    assert len(calls) == 3
    assert len(told(said, "a defect of this program")) == 1


# ---- pods just bound ----------------------------------------------------------------------------------------------------


def test_a_pod_just_bound_counts_until_the_means_hold_it() -> None:
    """4 of 8 cores at once, half of them when the window has half of it, nothing a window later; then it is forgotten."""
    here = scene()
    here.nodes({"a": load(0.0), "b": load(0.0)})
    here.step()
    here.binds("p", "a", cpu="4.4")
    here.step()
    assert scores(here, "a", "b") == {"a": 5, "b": 10}
    here.pass_time(150)
    here.nodes({"a": load(0.275, at=here.wall), "b": load(0.0, at=here.wall)})
    here.step()
    view = here.feed.steering().view
    assert view is not None
    assert view.bound[:, 0].tolist() == pytest.approx([0.275, 0.0])
    assert scores(here, "a", "b") == {"a": 5, "b": 10}
    here.pass_time(150)
    here.nodes({"a": load(0.55, at=here.wall), "b": load(0.0, at=here.wall)})
    here.step()
    assert len(here.bound) == 0
    assert scores(here, "a", "b") == {"a": 5, "b": 10}


def test_a_burst_is_not_thrown_onto_the_one_node_that_looks_empty() -> None:
    """Each pod that lands makes the next one see a fuller node, though no annotation has changed."""
    here = scene()
    here.nodes({name: load(0.0) for name in "abcd"})
    here.step()
    landed: list[str] = []
    for number in range(12):
        found = scores(here, *"abcd")
        best = max(found, key=lambda name: (found[name], name))
        landed.append(best)
        here.binds(f"p{number}", best, cpu="1")
        here.step()
    assert {name: landed.count(name) for name in "abcd"} == dict.fromkeys("abcd", 3)


def test_the_dynamic_judge_can_count_bindings_by_itself() -> None:
    """Two in a minute are a point, at once; and they are remembered for as long as they are counted."""
    here = scene(judge="dynamic", hot_value="code")
    here.nodes({"a": crane(*[0.0] * 6), "b": crane(*[0.0] * 6)})
    for name in ("p", "q"):
        here.binds(name, "a")
    here.step()
    assert scores(here, "a", "b") == {"a": 9, "b": 10}
    here.pass_time(61)
    here.step()
    assert scores(here, "a", "b") == {"a": 10, "b": 10}


# ---- reservations -------------------------------------------------------------------------------------------------------


def test_a_planned_move_keeps_its_room_for_its_replacement() -> None:
    """From the moment that the controller writes it down, until the replacement is seen bound or the move is taken off."""
    here = scene()
    here.nodes({"idle": load(0.0), "planned": load(0.1)})
    here.moves(move("old", "planned"))
    here.step()
    assert scores(here, "idle", "planned", asking=pod()) == {"idle": 0, "planned": 10}
    assert scores(here, "idle", "planned", asking=STRANGER)["planned"] < 7
    here.moves()
    here.step()
    assert scores(here, "idle", "planned", asking=pod()) == {"idle": 10, "planned": 9}


def test_a_replacement_that_came_takes_its_room_with_what_it_really_uses() -> None:
    """Its request is 2 cores, the pod that it replaces used 4: that is what the node is taken to lack."""
    here = scene()
    here.nodes({"idle": load(0.0), "planned": load(0.1)})
    here.moves(move("old", "planned", cores=4.0))
    here.step()
    here.binds("new", "planned")
    here.step()
    steering = here.feed.steering()
    assert steering.reservations.open(now=here.wall) == 0
    assert steering.view is not None
    assert steering.view.bound[:, 0].tolist() == [0.0, 0.5]
    assert scores(here, "idle", "planned", asking=pod("another"))["idle"] == 10


def test_a_replacement_that_came_before_the_news_of_its_move_uses_it_up() -> None:
    """Two watches are not tied to each other."""
    here = scene()
    here.nodes({"planned": load(0.1)})
    here.binds("new", "planned")
    here.step()
    here.moves(move("old", "planned"))
    here.step()
    assert here.feed.steering().reservations.used == {"old": "uid-new"}
    here.step()
    view = here.feed.steering().view
    assert view is not None
    assert view.bound[0, 0] == 0.5


def test_a_hold_outlives_the_next_pass() -> None:
    """It is made by the thread that answers, between two passes."""
    here = scene()
    here.nodes({"one": load(0.1), "two": load(0.1)})
    here.moves(move("a", "one", at=NOW - 9), move("b", "two"))
    here.step()
    assert here.feed.hold(Chosen("a", "p1"))
    assert not here.feed.hold(Chosen("a", "p2"))
    here.nodes({"one": load(0.2), "two": load(0.2)})
    here.moves(move("a", "one", at=NOW - 9), move("b", "two"), move("c", "one"))
    here.step()
    assert not here.feed.hold(Chosen("a", "p2"))
    assert scores(here, "one", "two", asking=pod("p2")) == {"one": 0, "two": 10}


@pytest.mark.parametrize("text", ["{", '{"version": 99}', '{"version": 1, "open_moves": [{}]}'])
def test_a_record_that_cannot_be_read_reserves_nothing_and_is_said_once(said: Logs, text: str) -> None:
    """What was read before runs out by itself."""
    here = scene()
    here.nodes({"idle": load(0.0), "planned": load(0.1)})
    here.moves(move("old", "planned"))
    here.step()
    here.moves(text=text)
    for _ in range(3):
        here.step()
    assert len(told(said, "planned moves cannot be read")) == 1
    assert scores(here, "idle", "planned", asking=pod()) == {"idle": 0, "planned": 10}
    here.pass_time(300)
    here.step()
    assert here.feed.steering().reservations.open(now=here.wall) == 0


# ---- files --------------------------------------------------------------------------------------------------------------

POLICY = """apiVersion: rebalancer.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: t}
spec:
  pools: [{name: all, signals: {cpu: {low: 10, target: %d, high: %d}}}]
"""
CRANE = """apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{name: cpu_usage_avg_5m, period: 3m}, {name: disk_usage, period: 3m}]
  predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: %s}]
  priority: [{name: cpu_usage_avg_5m, weight: 1}, {name: disk_usage, weight: 1}]
"""


def test_an_edited_policy_is_judged_by_at_once_and_a_broken_one_not_at_all(said: Logs, tmp_path: Path) -> None:
    """The last good one stays in force; it is said once."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY % (50, 70))
    here = scene(policy=file)
    here.nodes({"a": load(0.5), "b": load(0.0)})
    here.step()
    assert scores(here, "a", "b")["a"] == 5
    file.write_text(POLICY % (80, 90))
    here.pass_time(5)
    here.step()
    assert scores(here, "a", "b")["a"] == 7
    file.write_text("kind: Nonsense")
    for _ in range(3):
        here.pass_time(5)
        here.nodes({"a": load(0.5), "b": load(0.0)})
        here.step()
    assert scores(here, "a", "b")["a"] == 7
    assert len(told(said, "not reloaded")) == 1


def test_an_edited_policy_of_crane_scheduler_reads_its_own_series(said: Logs, tmp_path: Path) -> None:
    """Unknown names are said once and read all the same; a broken edit keeps the last good file."""
    file = tmp_path / "crane.yaml"
    file.write_text(CRANE % "0.9")
    here = scene(judge="dynamic", crane=file)
    written = {**crane(0.5, *[0.0] * 5), "disk_usage": "1.00000,2026-01-02T11:04:05Z"}
    here.nodes({"a": written, "b": crane(*[0.0] * 6)})
    here.step()
    assert isinstance(here.feed.steering().judge, DynamicJudge)
    assert scores(here, "a", "b") == {"a": 2, "b": 5}
    assert passed(here, "a", "b") == ["a", "b"]
    file.write_text((CRANE % "0.4").replace("maxLimitPecent", "maxLimitPercent"))
    here.pass_time(5)
    here.step()
    assert passed(here, "a", "b") == ["b"]
    file.write_text(CRANE % "[]")
    for _ in range(3):
        here.pass_time(5)
        here.step()
    assert passed(here, "a", "b") == ["b"]
    notices = [line["notice"] for line in told(said, "policy of crane-scheduler")]
    assert sum("is none of the series that are known here" in notice for notice in notices) == 2  # once for each version of the file
    assert sum("maxLimitPercent is read as maxLimitPecent" in notice for notice in notices) == 1
    assert sum("stays in force" in notice for notice in notices) == 1


def test_times_are_read_in_the_zone_of_the_setting_else_of_the_policy(tmp_path: Path) -> None:
    """The Z does not mean UTC: written in Tokyo and read in Shanghai, a value lies an hour ahead."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY % (50, 70) + "  steering: {craneTimeZone: Etc/UTC}\n")
    written = {"a": {"cpu_usage_avg_5m": "0.50000,2026-01-02T03:04:05Z"}}  # NOW, in UTC
    for options, at in (({}, NOW - 8 * 3600), ({"policy": file}, NOW), ({"policy": file, "crane_time_zone": "Asia/Tokyo"}, NOW - 9 * 3600)):
        here = scene(judge="dynamic", **options)  # type: ignore[arg-type]
        here.nodes(written)
        here.step()
        view = here.feed.steering().view
        assert view is not None
        assert view.crane.written_at[0, 0] == at


# ---- words --------------------------------------------------------------------------------------------------------------


def notices(logs: Logs) -> list[str]:
    return [line["notice"] for line in told(logs, "odd")]


def test_what_is_odd_is_said_once_with_the_name_of_a_node(said: Logs) -> None:
    """Whatever other nodes come with the same; when it is over and comes back, it is said again."""
    here = scene(judge="dynamic")
    odd = {**crane(*[0.1] * 6), "cpu_usage_avg_5m": "50%", "rebalancer.dev/load": "high"}
    for nodes in ({"n1": odd}, {"n1": odd, "n2": odd}, {"n1": crane(*[0.1] * 6)}, {"n2": odd}):
        here.pass_time(10)
        here.nodes(nodes)
        here.step()
    about = [notice.partition(" of node ")[0] for notice in notices(said)]
    assert about == ["the annotation cpu_usage_avg_5m", "the annotation rebalancer.dev/load"] * 2
    assert "of node n1 is not <number>,<time> and does not count" in notices(said)[0]
    assert passed(here, "n2") == ["n2"]


def test_a_clock_or_a_zone_that_is_off_is_said_and_blocks_nobody(said: Logs) -> None:
    """Values of a real UTC, read in the default zone, are eight hours old; the server's clock is another one than ours."""
    here = scene(judge="dynamic")
    here.server_off_s = 3600
    here.nodes({"n1": crane(*[0.9] * 6, at=NOW - 8 * 3600)})
    here.step()
    assert any("about 8h old" in notice and "(node n1)" in notice for notice in notices(said))
    assert any("1h behind that of the API server" in notice for notice in notices(said))
    assert passed(here, "n1") == ["n1"]


def test_what_is_known_is_counted() -> None:
    """Open reservations and pods that are anticipated."""
    here = scene()
    here.nodes({"a": load(0.1)})
    here.moves(move("old", "a"), move("older", "a"))
    here.binds("p", "a", controller="rs-7")
    here.step()
    page = here.metrics.exposition().decode()
    assert "rebalancer_extender_anticipated_pods 1.0" in page
    assert "rebalancer_extender_reservations 1.0" in page
    assert 'rebalancer_extender_watch_restarts_total{reason="expired",resource="nodes"} 0.0' in page
