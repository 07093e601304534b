from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.kube.client import KubeClient
from tests.support.scripted_api import ScriptedApi


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as server:
        yield server


@pytest.fixture
def client(api: ScriptedApi, tmp_path: Path) -> Iterator[KubeClient]:
    client = KubeClient.connect(kubeconfig=api.kubeconfig(tmp_path), context=None)
    yield client
    client.close()
