"""The control plane of the session, the ground of a module, and the table of scenarios.

Nothing here is collected unless ``make e2e`` asks for it (REBALANCER_E2E=1): `make test` stays quick and needs no control plane.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e import binaries
from tests.e2e.plane import Borrowed, ControlPlane, Plane
from tests.e2e.table import Row, Table
from tests.support.prometheus_server import require_prometheus

SWITCH = "REBALANCER_E2E"
LONGEST_S = 900
TABLE = pytest.StashKey[Table]()
ROW = pytest.StashKey[Row]()

collect_ignore_glob = [] if os.environ.get(SWITCH) == "1" else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "e2e: needs a real control plane; run by `make e2e`")
    config.stash[TABLE] = Table()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LONGEST_S))


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane for all scenarios. Skips in one line where there is none to be had; fails if skipping is forbidden."""
    require_prometheus()
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("plane")
        found: Plane | Borrowed
        if kubeconfig := os.environ.get(binaries.CLUSTER):
            found = Borrowed(Path(kubeconfig), folder)
        else:
            try:
                found = Plane(binaries.find(), folder)
            except binaries.Unavailable as error:
                if os.environ.get(binaries.REQUIRED) == "1":
                    pytest.fail(f"{error} ({binaries.REQUIRED}=1 forbids to skip)", pytrace=False)
                pytest.skip(str(error))
        stack.enter_context(found)
        yield found


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Row:
    """The row of this test in the table; ``scenario.shows("…")`` says what was seen. Its name is the first line of the docstring."""
    words = (request.function.__doc__ or request.node.name).strip().splitlines()[0].rstrip(".")
    row = request.config.stash[TABLE].row(words)
    request.node.stash[ROW] = row
    return row


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    row = item.stash.get(ROW, None)
    if row is not None and (report.when == "call" or not report.passed):
        row.verdict = {"passed": "ok", "failed": "FAILED"}.get(report.outcome, report.outcome)
    found = item.funcargs.get("plane") if isinstance(item, pytest.Function) else None
    if report.failed and isinstance(found, Plane):
        report.sections.append(("control plane", found.tails()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[TABLE].lines()
    if lines:
        terminalreporter.section("scenarios on a real control plane")
        for line in lines:
            terminalreporter.write_line(line)
