"""The extender over HTTP, as kube-scheduler meets it."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace

import pytest

from rebalancer.runtime.extender_server import EXTENDER_LIMITS, MOST_BODY_BYTES, ExtenderServer
from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.extender import Steering
from rebalancer.steer.reservations import Reservation, Reservations
from tests.extender.kit import JUDGE, NODES, Broken, World
from tests.serving.kit import asked, connected, kept, until_closed
from tests.steer.kit import NOW, question

ALL = ["idle", "hot", "silent", "stranger"]


def put(server: ExtenderServer, path: str, body: bytes) -> tuple[int, object]:
    with kept(server) as client:
        status, answer = asked(client, "POST", path, body)
        return status, json.loads(answer)


def page(server: ExtenderServer, path: str) -> tuple[int, str]:
    with kept(server) as client:
        status, answer = asked(client, "GET", path)
        return status, answer.decode()


@pytest.fixture
def world() -> World:
    return World()


def test_filter_refuses_the_hot_node(world: World) -> None:
    """And counts what it made of each."""
    with world.serving() as server:
        status, answer = put(server, "/filter", question(ALL))
    assert status == 200
    assert answer["NodeNames"] == ["idle", "silent", "stranger"]  # type: ignore[index]
    assert answer["FailedNodes"] == {"hot": "cpu load 95 % of node hot is over 70 %"}  # type: ignore[index]
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="ok") == 1
    assert [world.counted("rebalancer_extender_nodes_total", result=each) for each in ("passed", "refused", "unknown")] == [1, 1, 2]
    assert world.counted("rebalancer_extender_duration_seconds_count", verb="filter") == 1


@pytest.mark.parametrize("path", ["/prioritize", "/prioritise", "/prioritize?timeout=1s"])
def test_prioritize_scores_in_both_spellings(world: World, path: str) -> None:
    """The verb is a word of whoever writes the scheduler's configuration."""
    with world.serving() as server:
        status, answer = put(server, path, question(["idle", "hot"]))
    assert (status, answer) == (200, [{"Host": "idle", "Score": 10}, {"Host": "hot", "Score": 0}])
    assert world.counted("rebalancer_extender_requests_total", verb="prioritize", result="ok") == 1


def test_whole_nodes_come_back_as_they_were(world: World) -> None:
    """Without nodeCacheCapable."""
    with world.serving() as server:
        _, answer = put(server, "/filter", question(["idle", "hot"], whole=True))
    assert answer["Nodes"]["items"] == [{"metadata": {"name": "idle", "labels": {"kept": "as is"}}}]  # type: ignore[index]


def test_who_would_refuse_all_refuses_none_and_counts_it(world: World) -> None:
    """Spared; the nodes count as passed."""
    with world.serving() as server:
        _, answer = put(server, "/filter", question(["hot"]))
    assert answer["NodeNames"] == ["hot"]  # type: ignore[index]
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="spared") == 1
    assert world.counted("rebalancer_extender_nodes_total", result="passed") == 1


@pytest.mark.parametrize(
    ("steering", "age"),
    [(Steering(None, None), math.nan), (Steering(NODES, None), 0.0), (Steering(replace(NODES, made_at=NOW - 601), JUDGE), 601.0)],
    ids=["nothing", "no judge", "old"],
)
def test_who_knows_nothing_abstains_and_is_not_ready(world: World, steering: Steering, age: float) -> None:
    """Alive all the same: a restart would know no more."""
    world.steering = steering
    with world.serving() as server:
        assert put(server, "/filter", question(ALL))[1]["NodeNames"] == ALL  # type: ignore[index]
        assert put(server, "/prioritize", question(["hot", "idle"]))[1] == [{"Host": "hot", "Score": 5}, {"Host": "idle", "Score": 5}]
        assert page(server, "/readyz")[0] == 503
        assert page(server, "/healthz")[0] == 200
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="abstained") == 1
    assert world.counted("rebalancer_extender_requests_total", verb="prioritize", result="abstained") == 1
    assert world.counted("rebalancer_extender_view_age_seconds") == pytest.approx(age, nan_ok=True)


def test_a_daemonset_pod_is_exempt_and_no_abstention(world: World) -> None:
    """Its node is given; nothing is wrong with what we know."""
    pod = {"metadata": {"name": "p", "ownerReferences": [{"kind": "DaemonSet", "name": "d"}]}}
    with world.serving() as server:
        assert put(server, "/filter", question(["hot"], pod=pod))[1]["NodeNames"] == ["hot"]  # type: ignore[index]
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="ok") == 1


def test_readyz_says_how_old_the_knowledge_is(world: World) -> None:
    """Fresh enough is ready."""
    world.time = NOW + 12
    with world.serving() as server:
        assert page(server, "/readyz") == (200, "[+] nodes: known as of 12 s ago, at most 600 s\nok\n")


def test_metrics_are_served(world: World) -> None:
    """Every counter stands at 0 before anything happens."""
    with world.serving() as server:
        status, text = page(server, "/metrics")
    assert status == 200
    assert 'rebalancer_extender_requests_total{result="failed",verb="prioritize"} 0.0' in text
    assert 'rebalancer_extender_certificate_renewals_total{result="used"} 0.0' in text
    assert "_created" not in text


def test_a_defect_of_a_judge_keeps_no_pod_from_running(world: World) -> None:
    """Every node passes, all score alike, and it is counted as what it is."""
    world.steering = Steering(NODES, Broken())  # type: ignore[arg-type]
    with world.serving() as server:
        assert put(server, "/filter", question(ALL))[1]["NodeNames"] == ALL  # type: ignore[index]
        assert put(server, "/prioritize", question(["hot"]))[1] == [{"Host": "hot", "Score": 5}]
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="failed") == 1
    assert world.counted("rebalancer_extender_requests_total", verb="prioritize", result="failed") == 1


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"Pod":{}}', b"\x00" * 1000])
def test_what_cannot_be_read_is_told_and_counted(world: World, body: bytes) -> None:
    """The connection goes on."""
    with world.serving() as server, kept(server) as client:
        status, answer = asked(client, "POST", "/filter", body)
        assert (status, "rebalancer extender, filter: " in json.loads(answer)["Error"]) == (200, True)
        assert asked(client, "POST", "/prioritize", body)[0] == 400
        assert asked(client, "POST", "/filter", question(["idle"]))[0] == 200
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="unreadable") == 1
    assert world.counted("rebalancer_extender_requests_total", verb="prioritize", result="unreadable") == 1


def test_a_reservation_is_held_before_the_scores_are_sent(world: World) -> None:
    """When another pod was faster, the scores are found anew."""
    owner = WorkloadRef("Deployment", "shop", "web")
    planned = [Reservation("old", owner, "", "shop", "idle", NOW - 5), Reservation("other", owner, "", "shop", "hot", NOW - 4)]
    world.steering = Steering(NODES, JUDGE, reservations=Reservations().with_planned(planned, now=NOW))
    world.holds = [False, True]
    pod = {
        "metadata": {
            "name": "web-7d4-x",
            "namespace": "shop",
            "uid": "new",
            "labels": {"pod-template-hash": "7d4"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-7d4", "uid": "rs", "controller": True}],
        }
    }
    with world.serving() as server:
        _, answer = put(server, "/prioritize", question(["idle", "hot"], pod=pod))
    assert answer == [{"Host": "idle", "Score": 10}, {"Host": "hot", "Score": 0}]
    assert [(each.reservation, each.pod_uid) for each in world.held] == [("old", "new"), ("old", "new")]


def test_a_body_beyond_the_bound_is_refused(world: World) -> None:
    """413, which kube-scheduler tells as the status; other clients go on."""
    with world.serving() as server:
        with connected(server) as client:
            client.sendall(f"POST /filter HTTP/1.1\r\nContent-Length: {MOST_BODY_BYTES + 1}\r\n\r\n".encode())
            assert until_closed(client).startswith(b"HTTP/1.1 413 ")
        assert put(server, "/filter", question(["idle"]))[0] == 200


def test_two_hundred_schedulers_at_once_are_all_answered(world: World) -> None:
    """While as many others hang in the middle of their request."""
    body, results = question(ALL), []
    with world.serving(limits=replace(EXTENDER_LIMITS, request_s=60.0)) as server:
        hanging = [connected(server) for _ in range(40)]
        try:
            for each in hanging:
                each.__enter__().sendall(b"POST /filter HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
            threads = [threading.Thread(target=lambda: results.append(put(server, "/filter", body)[0])) for _ in range(200)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for each in hanging:
                each.__exit__(None, None, None)
    assert results == [200] * 200
    assert world.counted("rebalancer_extender_requests_total", verb="filter", result="ok") == 200
