"""Fixtures of the tests against real programs, and one line instead of many where a program is missing."""

from __future__ import annotations

import pytest

from tests.support.prometheus_server import require_prometheus, start_prometheus

__all__ = ["start_prometheus"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip here and not in a fixture: all skips then have one place and one line in the summary."""
    if item.get_closest_marker("prometheus") is not None:
        require_prometheus()
