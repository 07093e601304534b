"""An embedded cluster as the commands meet it: by a kubeconfig, by an address of Prometheus, and at the time of the machine's own clock.

The world's clock begins at the real now and catches up with it before each command. Commands run in this process, by the world's clock and
with their output captured, or as a process of their own, by the machine's clock, where signals and time matter.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import msgspec
import structlog

from rebalancer.cli.main import run
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.http_server import Request
from rebalancer.simulate.scenario import Scenario, build_world

T = TypeVar("T")
Json = dict[str, Any]
SMALL = Scenario(seed=7, nodes=12, pods=200, hot_nodes=2)
READS = ("GET", "HEAD")
"""Asking for one's rights is a POST, and writes nothing."""
REVIEWS = "/selfsubjectaccessreviews"


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    arguments: tuple[str, ...]
    status: int
    out: str
    err: str

    @property
    def document(self) -> Json:
        """The JSON on stdout."""
        return msgspec.json.decode(self.out)

    @property
    def error(self) -> str:
        """The one sentence on stderr that begins with ``Error:``; fails when there is none or more, or a traceback beside it."""
        said = [line for line in self.err.splitlines() if line.startswith("Error:")]
        assert len(said) == 1, self
        assert "Traceback" not in self.err, self
        assert said[0].endswith((".", "?", "!")), self
        return said[0]

    def ended(self, status: int) -> Ran:
        assert self.status == status, self
        return self


@dataclass
class Stage:
    """A running cluster and everything needed to send a command at it. ``env`` is what the commands see beside a bare environment."""

    cluster: EmbeddedCluster
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str | Path, env: Mapping[str, str | None] | None = None) -> Ran:
        """Run a command in this process, by the world's clock. ``env`` adds to the environment; None takes a variable away."""
        self.catch_up()
        with mock.patch("rebalancer.runtime.clock.time", SimpleNamespace(time=lambda: self.cluster.world.now)):
            return run_command(*arguments, env=merged(self.env, env))

    @contextlib.contextmanager
    def process(self, *arguments: str | Path, env: Mapping[str, str | None] | None = None) -> Iterator[Process]:
        """Run a command as a process of its own, with the world's clock kept at the real now; killed at the end if it still runs."""
        with self.ticking(), spawned(*arguments, env=merged(self.env, env), folder=self.folder) as process:
            yield process

    @contextlib.contextmanager
    def ticking(self) -> Iterator[None]:
        """Let the world's clock follow the real one for the time of a ``with``."""
        done = threading.Event()

        def tick() -> None:
            while not done.wait(0.2):
                self.catch_up()

        thread = threading.Thread(target=tick, name="world-clock")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def catch_up(self) -> None:
        """Let the world's clock reach the real one; a world that was sent ahead stays there."""
        self.cluster.advance(max(0.0, time.time() - self.cluster.world.now))

    def forget(self) -> None:
        """Drop what was recorded so far, and heal everything that was broken."""
        for server in (self.cluster.api, self.cluster.prometheus):
            server.requests.clear()
            server.faults.clear()
        rights, samples, series = self.cluster.api.rights, self.cluster.sample_faults, self.cluster.series
        rights.allow_all()
        rights.token = ""
        for spoiled in (
            samples.silent_nodes,
            samples.nan_nodes,
            samples.missing_nodes,
            samples.missing_pods,
            samples.nan_pods,
            samples.gaps,
        ):
            spoiled.clear()
        series.extra.clear()

    def forget_writes(self) -> None:
        """Drop what was recorded so far; faults stay."""
        self.cluster.api.requests.clear()

    @property
    def writes(self) -> list[Request]:
        """What would have changed the cluster, in order of arrival."""
        return [r for r in self.cluster.api.requests.all() if r.method not in READS and not r.path.endswith(REVIEWS)]

    @property
    def written(self) -> list[str]:
        """The writes as ``METHOD path``."""
        return [f"{request.method} {request.path}" for request in self.writes]

    @property
    def evictions(self) -> list[str]:
        """``namespace/pod`` of each eviction that was asked for."""
        paths = [r.path.split("/") for r in self.writes if r.method == "POST" and r.path.endswith("/eviction")]
        return [f"{path[4]}/{path[6]}" for path in paths]

    def policy(self, text: str, *, name: str = "policy.yaml") -> Path:
        """A policy file with this ``spec`` (YAML, indented by two)."""
        path = self.folder / name
        path.write_text(
            f"apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {{name: test}}\nspec:\n{text}", encoding="utf-8"
        )
        return path


@contextlib.contextmanager
def stage(folder: Path, *, scenario: Scenario | None = None, **options: Any) -> Iterator[Stage]:
    """A small awkward cluster with two hot nodes, or that of ``scenario``, served at the real now; ``options`` go to EmbeddedCluster."""
    world = build_world(replace(scenario or SMALL, now=time.time()))
    with EmbeddedCluster(world, **options) as cluster:
        kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        yield Stage(
            cluster=cluster,
            folder=folder,
            env={"HOME": str(folder), "KUBECONFIG": str(kubeconfig), "REBALANCER_PROMETHEUS__URL": cluster.prometheus_url},
        )


def run_command(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
    """Run a command line in this process under a bare environment; what it sets up for the process (signals, logs) is put back."""
    words = tuple(map(str, arguments))
    out, err = io.StringIO(), io.StringIO()
    environment = mock.patch.dict(os.environ, bare_environment(env), clear=True)
    with _restored(), environment, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words)
    return Ran(arguments=words, status=status, out=out.getvalue(), err=err.getvalue())


def bare_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would lead a command to another cluster, in a hundred columns without colour."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("REBALANCER_", "KUBE", "NO_COLOR", "FORCE_COLOR"))}
    return {**kept, "HOME": "/nonexistent", "COLUMNS": "100", **(env or {})}


def merged(env: Mapping[str, str], changes: Mapping[str, str | None] | None) -> dict[str, str]:
    together = {**env, **(changes or {})}
    return {key: value for key, value in together.items() if value is not None}


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Put signals and logging back as they were."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        root.handlers[:] = before
        root.setLevel(level)
        logging.captureWarnings(False)
        structlog.reset_defaults()


@dataclass
class Process:
    """A command that runs beside the test. Its output goes to files, so that no pipe can fill up."""

    popen: subprocess.Popen[bytes]
    out: Path
    err: Path

    def wait(self, seconds: float = 30.0) -> int:
        return self.popen.wait(seconds)

    def terminate(self, *, seconds: float = 10.0) -> int:
        """SIGTERM; the exit status. Raises subprocess.TimeoutExpired when it does not end in time."""
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(seconds)

    @property
    def logs(self) -> list[Json]:
        """The structured log so far; fails on a line that is not JSON."""
        return [msgspec.json.decode(line) for line in self.err.read_text(encoding="utf-8").splitlines() if line.endswith("}")]

    def messages(self, message: str) -> list[Json]:
        return [line for line in self.logs if line["message"] == message]


@contextlib.contextmanager
def spawned(*arguments: str | Path, env: Mapping[str, str], folder: Path) -> Iterator[Process]:
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        popen = subprocess.Popen(
            [sys.executable, "-m", "rebalancer", *map(str, arguments)], stdout=stdout, stderr=stderr, env=bare_environment(env)
        )
    try:
        yield Process(popen=popen, out=out, err=err)
    finally:
        if popen.poll() is None:
            popen.kill()
        popen.wait()


def eventually(condition: Callable[[], T], *, seconds: float = 20.0, step: float = 0.05) -> T:
    """The first true value of ``condition()``; fails after ``seconds``."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(step)
