"""The service and its load annotations: counted, taken off with the mode and at the end, its bindings read by watch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.runtime.service import Service
from rebalancer.steer.load_annotations import SERIES
from rebalancer.steer.own_annotation import LOAD
from tests.support.embedded import Stage, eventually, stage
from tests.watch.test_service import Running, service

EVENTS = "/apis/events.k8s.io/v1/events"
POLICY = "  interval: 10s\n  mode: annotate\n  steering: {annotateNodes: both}\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own:
        yield own


def keys(cluster: Stage) -> list[set[str]]:
    """The load annotations of each node."""
    return [
        {key for key in node["metadata"].get("annotations") or {} if key in (LOAD, *SERIES)}
        for node in cluster.cluster.world.objects("nodes")
    ]


def sample(running: Running, name: str) -> float:
    return running.metric(f"rebalancer_{name}")


def test_patches_are_counted_and_the_oldest_value_is_shown(cluster: Stage) -> None:
    """By kind and by what became of them."""
    with service(cluster, policy_file=cluster.policy(POLICY)) as running:
        assert sample(running, 'node_annotations_total{kind="own",result="written"}') == 0
        running.cycle()
        nodes = len(keys(cluster))
        assert keys(cluster) == [{LOAD, *SERIES}] * nodes
        assert sample(running, 'node_annotations_total{kind="own",result="written"}') == nodes
        assert sample(running, 'node_annotations_total{kind="crane",result="written"}') == nodes
        running.cycle()
        assert 0 <= sample(running, 'node_annotation_oldest_seconds{kind="crane"}') < 60


def test_a_change_to_dry_run_takes_them_off_before_the_first_look_in_it(cluster: Stage) -> None:
    """Nobody else would."""
    with service(cluster, policy_file=cluster.policy(POLICY)) as running:
        running.cycle()
        cluster.policy(POLICY.replace("annotate\n", "dry-run\n"))
        running.cycle()
        assert keys(cluster) == [set()] * len(keys(cluster))
        assert any("load annotations taken off" in line.get("text", "") for line in running.logs)


def test_a_change_between_the_modes_that_act_leaves_them(cluster: Stage) -> None:
    """They are the same in both."""
    with service(cluster, policy_file=cluster.policy(POLICY)) as running:
        running.cycle()
        cluster.cluster.api.requests.clear()
        cluster.policy(POLICY.replace("annotate\n", "evict\n"))
        running.cycle()
        removed = [r for r in cluster.cluster.api.requests.all() if r.method == "PATCH" and b'"cpu_usage_avg_5m":null' in r.body]
        assert removed == []
        assert keys(cluster) == [{LOAD, *SERIES}] * len(keys(cluster))


def test_a_clean_end_takes_them_off(cluster: Stage) -> None:
    """Of all nodes, when they are as few as here."""
    with service(cluster, policy_file=cluster.policy(POLICY)) as running:
        stop = threading.Event()
        own = Service(running.parts, stop=stop)
        thread = threading.Thread(target=own.run)
        thread.start()
        eventually(lambda: all(keys(cluster)))
        stop.set()
        thread.join(15)
        assert not thread.is_alive()
        assert keys(cluster) == [set()] * len(keys(cluster))


def test_bindings_are_read_by_watch_and_only_when_they_are_asked_for(cluster: Stage) -> None:
    """One list of Events for any number of cycles, and none at all without crane's annotations."""

    def asked(watch: bool) -> int:
        return sum(r.path == EVENTS and ("watch" in r.query) is watch for r in cluster.cluster.api.requests.all())

    with service(cluster, policy_file=cluster.policy(POLICY)) as running:
        running.cycle()
        eventually(lambda: asked(watch=True))
        running.cycle()
        assert asked(watch=False) == 1
    cluster.cluster.api.requests.clear()
    with service(cluster, policy_file=cluster.policy(POLICY.replace("both", "own"))) as running:
        running.cycle()
        assert asked(watch=False) == asked(watch=True) == 0
