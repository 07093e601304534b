from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.limiter import TokenBucket
from rebalancer.kube.retries import Backoff
from tests.support.scripted_api import ScriptedApi

FAST = Backoff(first_s=0.01, factor=1.5, ceiling_s=0.03, attempts=4)

Connect = Callable[..., KubeClient]


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as server:
        yield server


@pytest.fixture
def connect(api: ScriptedApi, tmp_path: Path) -> Iterator[Connect]:
    """Makes clients of ``api`` that are patient for a fraction of a second, and closes them."""
    made: list[KubeClient] = []

    def make(
        *, timeout_s: float = 5.0, page_size: int = 500, bucket: TokenBucket | None = None, kubeconfig: Path | None = None
    ) -> KubeClient:
        client = KubeClient.connect(
            kubeconfig=kubeconfig or api.kubeconfig(tmp_path),
            context=None,
            page_size=page_size,
            timeout_s=timeout_s,
            bucket=bucket,
            backoff=FAST,
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(connect: Connect) -> KubeClient:
    return connect()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline.after(20.0)


@pytest.fixture
def stopped() -> Deadline:
    """A deadline with time left, of a process that was asked to stop."""
    stop = threading.Event()
    stop.set()
    return Deadline.after(20.0, stop=stop)
