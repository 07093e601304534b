"""A real Prometheus on loopback: filled with blocks by promtool, or scraping exporters of a test.

    text = openmetrics(counter("node_cpu_seconds_total", {"instance": "n1"}, start=T, step=15, values=[...]))
    with PrometheusServer(directory, blocks=text) as server:
        Prometheus(PrometheusAccess(url=server.url))

Every server has its own port and directory, so tests may run side by side. Where Debian's package is missing the tests that need it are
skipped with one line; with REBALANCER_TEST_REQUIRE_PROMETHEUS=1 they fail instead.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

import pytest

MISSING = "no prometheus or promtool on the PATH: apt-get install prometheus"
START_ATTEMPTS = 3
READY_POLLS = 300


def require_prometheus() -> None:
    """Skip, or fail where skipping is forbidden, unless both programs are there."""
    if shutil.which("prometheus") and shutil.which("promtool"):
        return
    if os.environ.get("REBALANCER_TEST_REQUIRE_PROMETHEUS") == "1":
        pytest.fail(f"{MISSING} (REBALANCER_TEST_REQUIRE_PROMETHEUS=1 forbids to skip)", pytrace=False)
    pytest.skip(MISSING)


@dataclass(frozen=True)
class Samples:
    """One series with samples at given times (unix seconds)."""

    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


def gauge(name: str, labels: Mapping[str, str], value: float | Callable[[float], float], *, times: Iterable[float]) -> Samples:
    return Samples(name, labels, [(at, value(at) if callable(value) else value) for at in times])


def counter(name: str, labels: Mapping[str, str], rate: float, *, times: Iterable[float]) -> Samples:
    """A counter that grows by ``rate`` a second from 1,000."""
    moments = list(times)
    return Samples(name, labels, [(at, 1000.0 + rate * (at - moments[0])) for at in moments])


def openmetrics(series: Iterable[Samples]) -> str:
    """OpenMetrics text, each family together as the format demands."""
    lines: list[str] = []
    for one in sorted(series, key=lambda one: one.name):
        labels = ",".join(f'{name}="{value}"' for name, value in one.labels.items())
        lines.extend(f"{one.name}{{{labels}}} {value!r} {at:.3f}" for at, value in one.points)
    return "\n".join([*lines, "# EOF", ""])


class PrometheusServer:
    """A context manager; `stop` and `start` in between are a restart with the same data and address."""

    def __init__(
        self,
        directory: Path,
        *,
        blocks: str | None = None,
        targets: Mapping[str, Sequence[str]] | None = None,
        rules: str | None = None,
        dishonoured: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """``targets``: job name -> addresses ``host:port`` that are scraped every second. ``rules``: a rule file that is evaluated.
        ``dishonoured``: job name -> labels of its targets, which win over those of the exporter; the labels of other jobs are honoured."""
        self._dishonoured = dict(dishonoured or {})
        self._directory = directory
        self._rules = rules
        self._data = directory / "data"
        self._targets = dict(targets or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self._data.mkdir(parents=True)
        if blocks is not None:
            (directory / "blocks.om").write_text(blocks)
            command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(directory / "blocks.om"), str(self._data)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        self._write_config()

    def __enter__(self) -> PrometheusServer:
        for attempt in range(START_ATTEMPTS):  # the port was free a moment ago; another test may have taken it
            self.url = f"http://127.0.0.1:{_free_port()}"
            if self.start(must=attempt == START_ATTEMPTS - 1):
                break
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self, *, must: bool = True) -> bool:
        log = self._directory / "log"
        command = [
            "prometheus",
            f"--config.file={self._directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--log.level=warn",
        ]
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        for _ in range(READY_POLLS):
            if self._process.poll() is not None:
                break
            if _ready(f"{self.url}/-/ready"):
                return True
            time.sleep(0.1)
        self.stop()
        if must:
            raise AssertionError(f"prometheus did not start: {log.read_text()[-2000:]}")
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
            self._process = None

    def backfill(self, rules: str, *, since: float, until: float) -> None:
        """Record what ``rules`` would have recorded between two moments (unix seconds), by promtool, and start again with it."""
        path = self._directory / "backfilled.yml"
        path.write_text(rules)
        command = ["promtool", "tsdb", "create-blocks-from", "rules", f"--start={since:.0f}", f"--end={until:.0f}", f"--url={self.url}"]
        subprocess.run([*command, f"--output-dir={self._data}", str(path)], check=True, capture_output=True, timeout=120)
        self.stop()
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the process stand still: connections are accepted and nothing is ever answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _write_config(self) -> None:
        lines = ["global: {scrape_interval: 1s, scrape_timeout: 1s}", "scrape_configs:"]
        for job, addresses in self._targets.items():
            listed = ", ".join(f'"{address}"' for address in addresses)
            own = self._dishonoured.get(job)
            honoured = str(own is None).lower()
            lines += [f"- job_name: {job}", f"  honor_labels: {honoured}", "  static_configs:", f"  - targets: [{listed}]"]
            if own:
                lines.append("    labels: {" + ", ".join(f'{name}: "{value}"' for name, value in own.items()) + "}")
        text = "\n".join(lines) if self._targets else "global: {scrape_interval: 1s, scrape_timeout: 1s}"
        if self._rules is not None:
            (self._directory / "rules.yml").write_text(self._rules)
            text += f'\nrule_files: ["{self._directory / "rules.yml"}"]'
        (self._directory / "prometheus.yml").write_text(text + "\n")


class TestExporter:
    """An exporter whose text a test may change, or make it fail. A context manager."""

    __test__ = False

    def __init__(self, text: Callable[[], str]) -> None:
        self.text = text
        self.failing = False
        self.scrapes = 0
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.scrapes += 1
                body = exporter.text().encode()
                self.send_response(500 if exporter.failing else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silence: the test's own output is enough."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.address = f"127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> TestExporter:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


StartPrometheus = Callable[..., PrometheusServer]


@pytest.fixture(scope="session")
def start_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartPrometheus]:
    """Start servers that live until the end of the session; each worker of a parallel run has its own."""
    require_prometheus()
    with ExitStack() as stack:

        def start(
            *, blocks: str | None = None, targets: Mapping[str, Sequence[str]] | None = None, rules: str | None = None
        ) -> PrometheusServer:
            directory = tmp_path_factory.mktemp("prometheus")
            return stack.enter_context(PrometheusServer(directory, blocks=blocks, targets=targets, rules=rules))

        yield start


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False
