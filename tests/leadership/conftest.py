from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.simulate.api_server import ApiServer
from rebalancer.simulate.world import World
from tests.leadership.kit import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    api = ApiServer(World())
    api.start()
    cluster = Cluster(api, tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()
        api.stop()
