"""Load-watcher's API on the service's port, as its clients meet it."""

from __future__ import annotations

import http.client
import json

from rebalancer.runtime.health import Health
from rebalancer.runtime.load_watching import LoadWatch
from rebalancer.runtime.server import HealthServer
from rebalancer.state.ledger import node_load
from tests.serving.kit import LOOPBACK, kept
from tests.support.builder import NOW, cluster, node

STATE = cluster(nodes=[node("hot", load={"cpu": 0.9, "memory": 0.5}), node("cool", load={"cpu": 0.2})], pods=[])


class Hands:
    """A clock that goes when it is told to."""

    at = NOW

    def now(self) -> float:
        return self.at


def serving(loads: LoadWatch) -> HealthServer:
    return HealthServer(LOOPBACK, health=Health(interval_s=60), exposition=lambda: b"", more=loads.routes)


def ask(client: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
    client.request("GET", path, headers={"Content-Type": "application/json"})
    return client.getresponse()


def test_nodes_are_told_over_a_kept_connection() -> None:
    """All of them, one of them, none of them."""
    loads = LoadWatch(Hands())
    loads.observed(STATE, node_load(STATE))
    with serving(loads) as server, kept(server) as client:
        whole = ask(client, "/watcher")
        assert whole.headers["Content-Type"] == "application/json"
        assert set(json.loads(whole.read())["data"]["NodeMetricsMap"]) == {"hot", "cool"}
        mine = client.sock.getsockname()
        one = json.loads(ask(client, "/watcher?host=hot").read())["data"]["NodeMetricsMap"]
        assert next((each["type"], each["operator"], each["value"]) for each in one["hot"]["metrics"]) == ("CPU", "AVG", 90)
        missing = ask(client, "/watcher?host=elsewhere")
        assert (missing.status, missing.read()) == (404, b'{"error":"nothing is known of a node of that name"}')
        healthy = ask(client, "/watcher/health")
        assert (healthy.status, healthy.read()) == (200, b"")
        assert client.sock.getsockname() == mine


def test_a_replica_that_stands_by_sends_its_clients_away() -> None:
    """The connection ends with the answer, so that the next one may find the leader."""
    loads = LoadWatch(Hands())
    loads.observed(STATE, node_load(STATE))
    loads.stood_down()
    with serving(loads) as server, kept(server) as client:
        answer = ask(client, "/watcher")
        assert (answer.status, answer.headers["Connection"]) == (500, "close")
        assert json.loads(answer.read()) == {"error": "this replica stands by, and the one that leads has the data; ask again"}
        assert ask(client, "/watcher/health").status == 503


def test_a_reading_becomes_too_old_to_be_told() -> None:
    """Cycles that fail leave the last reading; a client would keep it for ever."""
    clock = Hands()
    loads = LoadWatch(clock)
    loads.observed(STATE, node_load(STATE))
    clock.at = NOW + 301
    with serving(loads) as server, kept(server) as client:
        assert ask(client, "/watcher").status == 500
