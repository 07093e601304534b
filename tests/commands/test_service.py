"""`run` as a process: probes and metrics, SIGTERM in good and bad times, a policy that is edited while it runs."""

from __future__ import annotations

import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
import structlog

from rebalancer.cli.run import _parts
from rebalancer.runtime.service import Parts, Service
from rebalancer.runtime.session import connected, open_session
from tests.commands.test_run_once import tainted
from tests.support.embedded import Json, Process, Stage, eventually


def get(process: Process, path: str) -> tuple[int, str]:
    """Status and body of the service's own port."""
    address = eventually(lambda: process.messages("serving"), seconds=30)[0]["listen"]
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def cycles(process: Process, at_least: int = 1) -> list[Json]:
    def done() -> list[Json]:
        found = process.messages("cycle")
        return found if len(found) >= at_least else []

    return eventually(done, seconds=60)


def sample(metrics: str, name: str) -> float:
    """The value of one sample, named with its labels as the page writes them."""
    return float(next(line for line in metrics.splitlines() if line.startswith(f"{name} ")).rpartition(" ")[2])


RUN = ("run", "--listen", "127.0.0.1:0", "--log-format", "json")


def test_it_serves_evicts_and_ends_cleanly(cluster: Stage) -> None:
    """Healthy and ready after its first cycle, metrics of what it did; SIGTERM ends it with 0 and no taint stays behind.

    A second process, started after it, remembers: it moves nothing of what the first one moved.
    """
    with cluster.process(*RUN, "--mode", "evict") as process:
        first = cycles(process)[0]
        assert first["moves"] == len(cluster.evictions) > 0
        assert get(process, "/healthz")[0] == 200
        status, words = get(process, "/readyz")
        assert (status, "[+] prometheus: reachable" in words) == (200, True)
        status, metrics = get(process, "/metrics")
        assert status == 200
        assert sample(metrics, 'rebalancer_cycles_total{result="moved"}') == 1
        assert 'rebalancer_nodes{class="hot",pool="default"} 2.0' in metrics
        assert tainted(cluster)
        assert process.terminate() == 0
    assert tainted(cluster) == []
    assert process.messages("stopped")[0]["clean"] is True
    assert process.out.read_text(encoding="utf-8") == ""
    cluster.forget_writes()
    with cluster.process(*RUN, "--mode", "evict") as process:
        assert cycles(process)[0]["moves"] == 0
        assert process.terminate() == 0
    assert cluster.evictions == []


def hang_prometheus(cluster: Stage) -> None:
    cluster.cluster.prometheus.faults.hang()


def hang_kubernetes(cluster: Stage) -> None:
    cluster.cluster.faults.hang(path="/api/v1/pods")


@pytest.mark.parametrize("hang", [hang_prometheus, hang_kubernetes])
def test_sigterm_ends_it_while_somebody_hangs(cluster: Stage, hang: Callable[[Stage], None]) -> None:
    """Alive and not ready meanwhile; within ten seconds it is gone with status 0, and older taints of ours are taken off."""
    node = cluster.cluster.world.get("nodes", "node-0001")
    taint = {"key": "rebalancer.dev/hot", "value": "true", "effect": "PreferNoSchedule"}
    cluster.cluster.world.replace("nodes", {**node, "spec": {**node["spec"], "taints": [taint, {**taint, "key": "rebalancer.dev/warm"}]}})
    hang(cluster)
    with cluster.process(*RUN, "--mode", "evict") as process:
        assert get(process, "/healthz")[0] == 200
        assert get(process, "/readyz")[0] == 503
        recorded = cluster.cluster.prometheus.requests if hang is hang_prometheus else cluster.cluster.api.requests
        eventually(lambda: recorded.of("POST", "/query") or recorded.of("GET", "/pods"))
        assert process.terminate(seconds=10) == 0
    assert tainted(cluster) == []
    assert cluster.evictions == []


def test_a_cycle_that_fails_is_told_and_the_service_lives_on(cluster: Stage) -> None:
    """Prometheus answers a login page: one sentence with the remedy in the log, not ready, alive, nothing evicted."""
    cluster.cluster.prometheus.faults.login_page()
    with cluster.process(*RUN, "--mode", "evict") as process:
        failed = eventually(lambda: process.messages("cycle failed, nothing was moved"))[0]
        assert "HTML page" in failed["error"]
        assert failed["remedy"]
        assert get(process, "/healthz")[0] == 200
        status, words = get(process, "/readyz")
        assert (status, "HTML page" in words) == (503, True)
        assert sample(get(process, "/metrics")[1], 'rebalancer_cycles_total{result="failed"}') == 1
        assert process.terminate() == 0
    assert cluster.evictions == []


def test_a_broken_edit_keeps_the_last_good_policy(cluster: Stage) -> None:
    """It is counted, and told once with file, line and key; the next good edit is in force at the cycle after it."""
    flags = {
        "kubeconfig": cluster.env["KUBECONFIG"],
        "prometheus.url": cluster.cluster.prometheus_url,
        "policy_file": cluster.policy("  interval: 10s\n"),
    }
    session = open_session(settings_file=None, flags=flags, environ={})
    with connected(session) as connections, structlog.testing.capture_logs() as logs:
        parts = _parts(session, connections)
        service = Service(parts, stop=threading.Event())
        assert service.tick() is not None
        path = cluster.policy("  interval: 10s\n  budgets: {totl: 3}\n")
        for _ in range(2):
            kept = service.tick()
            assert kept is not None
            assert kept.verdict.decision.plan.mode == "dry-run"
        assert metric(parts, 'rebalancer_policy_reload_total{result="failed"}') == 2
        told = [line for line in logs if line["event"] == "policy not reloaded, the last good one stays in force"]
        assert [f"{path}, line 6, spec.budgets.totl: unknown key" in line["error"] for line in told] == [True]
        cluster.policy("  interval: 10s\n  mode: annotate\n")
        changed = service.tick()
        assert changed is not None
        assert changed.verdict.decision.plan.mode == "annotate"
        assert metric(parts, 'rebalancer_policy_reload_total{result="changed"}') == 1


def metric(parts: Parts, name: str) -> float:
    return sample(parts.metrics.exposition().decode(), name)


def test_an_address_that_is_taken_is_one_sentence(cluster: Stage) -> None:
    """Before any cycle, with the status of wrong settings."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = cluster.run("run", "--listen", address).ended(3)
    assert ran.error.startswith(f"Error: cannot listen on {address}, another process uses the port. Choose another with --listen")
    assert cluster.cluster.prometheus.requests.all() == []


@pytest.mark.parametrize(
    ("arguments", "number", "words"),
    [
        (("plan",), signal.SIGINT, "interrupted."),
        (("run", "--once", "--mode", "evict", "--log-level", "error"), signal.SIGTERM, "stopped on request before the work was finished."),
    ],
)
def test_a_command_that_is_interrupted_ends_at_once(cluster: Stage, arguments: tuple[str, ...], number: signal.Signals, words: str) -> None:
    """While it waits for Prometheus: status 130 and one sentence, although the query still hangs; nothing is moved."""
    cluster.cluster.prometheus.faults.hang()
    with cluster.process(*arguments) as process:
        eventually(lambda: cluster.cluster.prometheus.requests.of("POST"))
        process.popen.send_signal(number)
        assert process.wait(10) == 130
    assert process.err.read_text(encoding="utf-8").startswith(f"Error: {words}")
    assert process.err.read_text(encoding="utf-8").count("\n") == 1
    assert cluster.evictions == []
