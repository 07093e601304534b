"""For all tests: none asserts how long something takes, not even by way of a library's default, and none changes the logs of others."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Shells start jobs in the background with SIGINT ignored, and children inherit that: no command of a test could be interrupted."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Commands configure logging for the whole process, which ends with them, but for tests."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
