"""A Prometheus that is restarted, down, frozen, behind a login page, elsewhere: the same plan again, or status 5 and no eviction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.report.plan_file import plan_to_json
from tests.integration.end_to_end.conftest import Town
from tests.integration.end_to_end.town import HOT, VICTIM, series
from tests.support.embedded import Ran
from tests.support.prometheus_server import PrometheusServer, StartPrometheus, openmetrics
from tests.support.scripted_prometheus import HTML_LOGIN, scripted_prometheus

pytestmark = pytest.mark.prometheus

LATER_S = 1800.0
HURRY = {"REBALANCER_PROMETHEUS__TIMEOUT": "1s", "REBALANCER_CYCLE_TIMEOUT": "15s"}
COMMANDS = (("plan",), ("run", "--once", "--mode", "evict"), ("explain", "node", HOT), ("skew",))


@pytest.fixture(scope="module")
def server(start_prometheus: StartPrometheus, now: float) -> PrometheusServer:
    return start_prometheus(blocks=openmetrics(series(now, until=LATER_S)))


@pytest.fixture
def login_page() -> Iterator[str]:
    with scripted_prometheus() as scripted:
        scripted.on("", HTML_LOGIN)
        yield scripted.url


def assert_status_5_and_nothing_written(town: Town, ran: Ran) -> str:
    """No plan on stdout, one sentence on stderr, no write at the API server."""
    assert ran.status == 5, ran
    assert ran.out == ""
    assert town.written == []
    return ran.error


def test_m7_m17_a_restart_between_two_cycles_changes_nothing(server: PrometheusServer, shared_town: Town) -> None:
    """The windows are the server's, not ours: the plan of the same moment is the same, byte by byte; in between there is none."""
    before = plan_to_json(shared_town.look(server.url).decision.plan)
    assert f'"{VICTIM}"'.encode() in before
    server.stop()
    error = assert_status_5_and_nothing_written(shared_town, shared_town.command(server.url, "plan", **HURRY))
    assert server.url in error
    server.start()
    assert plan_to_json(shared_town.look(server.url).decision.plan) == before


def test_the_command_finds_what_the_controller_finds(server: PrometheusServer, shared_town: Town) -> None:
    """`plan -o json --exit-code` in another process's shoes: the same move, status 1, nothing written."""
    ran = shared_town.command(server.url, "plan", "-o", "json", "--exit-code").ended(1)
    assert ran.document["mode"] == "dry-run"
    assert [(move["pod"]["name"], move["source"]) for move in ran.document["moves"]] == [(VICTIM, HOT)]
    assert ran.document["moves"][0]["reason"].startswith("cpu load 88 % > high 70 % in 10 of 10 windows; ")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_m3_a_prometheus_that_is_down_is_status_5(command: tuple[str, ...], shared_town: Town) -> None:
    """Nobody listens at the address."""
    url = "http://127.0.0.1:9"
    error = assert_status_5_and_nothing_written(shared_town, shared_town.command(url, *command, **HURRY))
    assert url in error
    assert "could not be delivered" in error


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_m3_a_prometheus_that_never_answers_is_status_5(command: tuple[str, ...], server: PrometheusServer, shared_town: Town) -> None:
    """The process is stopped: it accepts and says nothing."""
    with server.frozen():
        error = assert_status_5_and_nothing_written(shared_town, shared_town.command(server.url, *command, **HURRY))
    assert server.url in error
    assert "1s" in error or "deadline" in error


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_m3_a_login_page_is_status_5_and_recognised(command: tuple[str, ...], login_page: str, shared_town: Town) -> None:
    """200 with HTML, as a proxy answers whoever has no session."""
    error = assert_status_5_and_nothing_written(shared_town, shared_town.command(login_page, *command, **HURRY))
    assert "HTML" in error
    assert "<html" not in error


def test_another_path_of_the_same_server_is_status_5(server: PrometheusServer, shared_town: Town) -> None:
    """The address of the web interface was pasted, path and all."""
    error = assert_status_5_and_nothing_written(shared_town, shared_town.command(f"{server.url}/graph", "plan", **HURRY))
    assert "404" in error


def test_m3_a_prometheus_without_these_metrics_is_status_5_and_says_what_it_scrapes(
    start_prometheus: StartPrometheus, shared_town: Town, tmp_path: Path
) -> None:
    """The wrong server of two: it answers well, and knows nobody of this cluster."""
    empty = start_prometheus()
    error = assert_status_5_and_nothing_written(shared_town, shared_town.command(empty.url, "plan", **HURRY))
    assert "'cpu of nodes (node_exporter)' found no series" in error
    assert "rebalancer check" in error
    empty.stop()
