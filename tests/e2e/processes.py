"""One program of the control plane as a child process: its log in a file, its end certain."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

END_S = 20.0
SHOWN = 3000


def _ends_with_its_parent() -> tuple[str, ...]:
    """What goes before a command so that a test run that is killed leaves no control plane behind (util-linux)."""
    found = shutil.which("setpriv")
    return (found, "--pdeathsig", "KILL", "--") if found else ()


@dataclass
class Program:
    """``stop`` and ``start`` again is a restart with the same arguments; ``kill`` leaves it no time to say goodbye."""

    name: str
    command: Sequence[str]
    log: Path
    env: Mapping[str, str] | None = None
    _popen: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        assert self._popen is None, f"{self.name} runs already"
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                [*_ends_with_its_parent(), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.env,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        assert self._popen is not None, f"{self.name} does not run"
        return self._popen.pid

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Fails with the end of the log when the program ends before it is ready, or is late."""
        until = time.monotonic() + seconds
        while not ready():
            assert self.running, f"{self.name} ended: {self.tail()}"
            assert time.monotonic() < until, f"{self.name} was not ready within {seconds:g} s: {self.tail()}"
            time.sleep(0.1)

    def stop(self) -> None:
        self._end(subprocess.Popen.terminate)

    def kill(self) -> None:
        self._end(subprocess.Popen.kill)

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        if self._popen is None:
            return
        how(self._popen)
        try:
            self._popen.wait(END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(END_S)
        self._popen = None

    def tail(self, characters: int = SHOWN) -> str:
        """The end of the log."""
        if not self.log.exists():
            return "(no log)"
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:]
