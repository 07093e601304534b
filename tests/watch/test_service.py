"""The service with watches: what its cycles ask for, what it says and counts, and how it is told to list."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from rebalancer.cli.run import _parts
from rebalancer.kube.resources import WATCHED
from rebalancer.runtime.service import Parts, Service
from rebalancer.runtime.session import connected, open_session
from tests.support.embedded import Stage, eventually, stage

PODS = "/api/v1/pods"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own:
        yield own


@dataclass
class Running:
    """A service whose cycles the test runs itself."""

    parts: Parts
    service: Service
    logs: list[Any]

    def cycle(self) -> None:
        assert self.service.tick() is not None

    def metric(self, name: str) -> float:
        lines = self.parts.metrics.exposition().decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).rpartition(" ")[2])


@contextmanager
def service(cluster: Stage, env: Mapping[str, str] | None = None, **flags: object) -> Iterator[Running]:
    known = {"kubeconfig": cluster.env["KUBECONFIG"], "prometheus.url": cluster.cluster.prometheus_url}
    session = open_session(settings_file=None, flags={**known, **flags}, environ=env or {})
    with connected(session) as connections, structlog.testing.capture_logs() as logs, ExitStack() as watches:
        parts = _parts(session, connections, watches)
        yield Running(parts, Service(parts, stop=threading.Event()), logs)


def pod_lists(cluster: Stage) -> int:
    return sum(request.path == PODS and not {"watch", "continue"} & set(request.query) for request in cluster.cluster.api.requests.all())


def watched(cluster: Stage) -> set[str]:
    return {request.path for request in cluster.cluster.api.requests.all() if "watch" in request.query}


def all_watched(cluster: Stage) -> bool:
    return watched(cluster) == {resource.path for resource in WATCHED}


def test_a_second_cycle_lists_no_pods(cluster: Stage) -> None:
    """The first one lists and begins the watches; the next ones read what they have brought."""
    with service(cluster) as running:
        running.cycle()
        eventually(lambda: all_watched(cluster))
        running.cycle()
        running.cycle()
        assert pod_lists(cluster) == 1
        assert running.metric('rebalancer_watch_disagreements_total{resource="pods"}') == 0
        assert running.metric('rebalancer_watch_restarts_total{reason="dropped",resource="pods"}') == 0


def test_what_one_cycle_evicts_the_next_one_sees_by_watch(cluster: Stage) -> None:
    """The pods that were evicted are gone, and no list was needed to know."""
    with service(cluster, mode="evict") as running:
        running.cycle()
        evicted = set(cluster.evictions)
        assert evicted
        cluster.cluster.advance(60)
        pods = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in cluster.cluster.world.objects("pods")}
        assert not evicted & pods

        def seen() -> bool:
            result = running.service.tick()
            assert result is not None
            state = result.verdict.state
            return {f"{namespace}/{name}" for namespace, name in zip(state.pods.namespaces, state.pods.names, strict=True)} == pods

        eventually(seen)
        assert pod_lists(cluster) == 1


def test_the_setting_makes_every_cycle_list(cluster: Stage) -> None:
    """And nothing is watched."""
    with service(cluster, env={"REBALANCER_KUBERNETES__WATCH": "false"}) as running:
        running.cycle()
        running.cycle()
    assert pod_lists(cluster) == 2
    assert watched(cluster) == set()


def test_a_single_cycle_watches_nothing(cluster: Stage) -> None:
    """A command that ends has no use for changes."""
    cluster.run("run", "--once").ended(0)
    assert watched(cluster) == set()


def test_without_the_right_to_watch_cycles_list_and_one_line_says_so(cluster: Stage) -> None:
    """With the rule that is missing; the cycles are as good as before."""
    cluster.cluster.api.rights.deny("watch", "pods")
    with service(cluster) as running:
        running.cycle()
        eventually(lambda: running.metric('rebalancer_watch_restarts_total{reason="forbidden",resource="pods"}') == 1)
        running.cycle()
        running.cycle()
        assert pod_lists(cluster) == 3
        said = [line for line in running.logs if line["event"] == "watching is forbidden, so each cycle lists"]
    assert [(line["resource"], line["log_level"]) for line in said] == [("pods", "warning")]
    assert 'resources: ["pods"], verbs: ["watch"]' in said[0]["remedy"]


def test_the_preflight_warns_of_a_watch_that_is_not_allowed(cluster: Stage) -> None:
    """It is no failure, since everything works without; with the setting off it is not even asked."""
    cluster.cluster.api.rights.deny("watch", "pods")
    checked = cluster.run("check", "-o", "json").ended(0)
    sentences = [check["sentence"] for check in checked.document["checks"] if check["status"] == "warn"]
    assert "may not watch pods, so the service lists it in each cycle" in sentences
    quiet = cluster.run("check", "-o", "json", env={"REBALANCER_KUBERNETES__WATCH": "false"}).ended(0)
    assert "watch" not in quiet.out


def test_a_thread_that_watches_counts_for_health(cluster: Stage) -> None:
    """A watch that died unseen would make each cycle list."""
    with service(cluster) as running:
        assert {check.name: check.passed for check in running.parts.health.live_checks()}["watches"]
