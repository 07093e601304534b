"""Faults on demand, and a server that leaves nothing behind."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, Reply, node, pod, serving

Setup = tuple[World, EmbeddedCluster, Http]


@pytest.fixture
def setup() -> Iterator[Setup]:
    world = World()
    node(world, "n1")
    pod(world, "p", on="n1")
    with serving(world) as (cluster, client):
        yield world, cluster, client


def test_a_status_hits_only_what_it_names_and_only_so_often(setup: Setup) -> None:
    """Two 503 for lists of pods, with a Retry-After; nodes are not concerned."""
    _, cluster, client = setup
    cluster.faults.status(503, method="GET", path="/pods", count=2, retry_after=3)
    replies: list[Reply] = [client("GET", "/api/v1/pods") for _ in range(3)]
    assert [reply.status for reply in replies] == [503, 503, 200]
    assert replies[0].headers["retry-after"] == "3"
    assert client("GET", "/api/v1/nodes").status == 200


def test_a_dropped_connection_does_nothing_and_a_late_drop_does_it_all_the_same(setup: Setup) -> None:
    """An eviction whose answer is lost has happened; one whose request is dropped has not."""
    world, cluster, client = setup
    body = {"metadata": {"name": "p"}}
    for after, gone in ((False, False), (True, True)):
        cluster.faults.drop(method="POST", count=1, after=after)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            client("POST", "/api/v1/namespaces/a/pods/p/eviction", body)
        client.close()
        assert ("deletionTimestamp" in world.get("pods", "p", "a")["metadata"]) is gone


def test_a_truncated_body_is_shorter_than_announced(setup: Setup) -> None:
    """The reader notices that the body is incomplete."""
    _, cluster, client = setup
    cluster.faults.truncate(path="/pods", count=1)
    with pytest.raises(http.client.IncompleteRead):
        client("GET", "/api/v1/pods")
    client.close()
    assert client("GET", "/api/v1/pods").status == 200


def test_a_hanging_request_ends_when_the_server_stops() -> None:
    """Nothing is answered, and the end of the block does not wait for the hang."""
    with serving(World()) as (cluster, client):
        cluster.faults.hang(path="/version")
        failures: list[type[BaseException]] = []

        def ask() -> None:
            try:
                client("GET", "/version")
            except (http.client.HTTPException, OSError) as error:
                failures.append(type(error))

        thread = threading.Thread(target=ask)
        thread.start()
        while not cluster.api.requests.of("GET", "/version"):
            thread.join(0.01)
    thread.join(10)
    assert not thread.is_alive()
    assert len(failures) == 1


def test_a_login_page_is_html_with_status_200(setup: Setup) -> None:
    """What a proxy answers when the session is over."""
    _, cluster, _ = setup
    cluster.prometheus.faults.login_page()
    client = Http(cluster.prometheus_url)
    reply = client("GET", "/api/v1/query", query={"query": "up"})
    client.close()
    assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/html")


def test_no_thread_is_left_when_the_block_ends() -> None:
    """Also with a watch open, whose client has gone."""
    before = set(threading.enumerate())
    with serving(World()) as (cluster, client):
        connection = http.client.HTTPConnection(cluster.api_url.removeprefix("http://"), timeout=10)
        connection.request("GET", "/api/v1/pods?watch=1")
        response = connection.getresponse()
        client("GET", "/version")
    response.close()
    connection.close()
    assert set(threading.enumerate()) <= before


def test_every_request_is_recorded_with_its_body(setup: Setup) -> None:
    """Tests can say what was asked, and what was never asked."""
    _, cluster, client = setup
    client("POST", "/api/v1/namespaces/a/pods/p/eviction", {"metadata": {"name": "p"}})
    (request,) = cluster.api.requests.of("POST", "eviction")
    assert request.json() == {"metadata": {"name": "p"}}
    assert cluster.api.requests.of("DELETE") == []
