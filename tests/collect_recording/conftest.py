"""The scripted server, client and directory of the tests of reading Prometheus."""

from tests.collect_metrics.conftest import connect, directory, server

__all__ = ["connect", "directory", "server"]
