"""What the tests of reading Prometheus share: a scripted server, a client for it, and a small directory of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.samples import NodeDirectory
from tests.support.scripted_prometheus import ScriptedPrometheus, scripted_prometheus

Connect = Callable[..., Prometheus]


@pytest.fixture
def server() -> Iterator[ScriptedPrometheus]:
    with scripted_prometheus() as script:
        yield script


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make a client for a server; every one is closed at the end of the test."""
    with ExitStack() as stack:

        def make(script: ScriptedPrometheus | str, **access: object) -> Prometheus:
            url = script if isinstance(script, str) else script.url
            prometheus = Prometheus(PrometheusAccess(url=url, **access), pause_s=0.01)  # type: ignore[arg-type]
            stack.callback(prometheus.close)
            return prometheus

        yield make


@pytest.fixture
def directory() -> NodeDirectory:
    """Three nodes: n1 .. n3 with addresses 10.0.0.1 .. 3, and n1 with an IPv6 address too; each has an exporter's pod and a pod web-<n>."""
    names = ["n1", "n2", "n3"]
    return NodeDirectory(
        names=frozenset(names),
        addresses={**{f"10.0.0.{number}": name for number, name in enumerate(names, start=1)}, "fd00::1": "n1"},
        pod_nodes={
            **{("monitoring", f"exporter-{name}"): name for name in names},
            **{("default", f"web-{name}"): name for name in names},
        },
    )
