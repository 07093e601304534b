"""One cluster a module for commands that only look, one a test for commands that act."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rebalancer.collect.prometheus import Prometheus
from rebalancer.kube.retries import Backoff
from tests.support.embedded import Stage, stage


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("cluster")) as shared:
        yield shared


@pytest.fixture
def looked_at(_shared: Stage) -> Iterator[Stage]:
    """A cluster that the tests of a module share and must not change; faults, rights and records are put back after each test."""
    _shared.forget()
    yield _shared
    written = _shared.written
    _shared.forget()
    assert written == [], "the shared cluster was written to"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    """A cluster of one's own, to act on."""
    with stage(tmp_path) as own:
        yield own


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once: how long they wait is proven elsewhere."""
    monkeypatch.setattr("rebalancer.kube.client.Backoff", partial(Backoff, first_s=0.01, attempts=3))
    monkeypatch.setattr("rebalancer.runtime.session.Prometheus", partial(Prometheus, pause_s=0.01))
