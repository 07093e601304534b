"""A shop of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hints.kit import Shop, shop


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as opened:
        yield opened
