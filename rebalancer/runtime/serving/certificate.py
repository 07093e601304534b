"""The certificate that a server shows, from two files that somebody renews while it runs.

A mounted Secret is swapped behind a symbolic link, so that the files are looked at again every few seconds, by connections as they come.
A pair that cannot be used leaves the last good one in force, and is told once.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import structlog

from rebalancer.errors import SettingsError

LOOK_EVERY_S = 10.0

log = structlog.get_logger(__name__)

_Stamp = tuple[tuple[int, ...], ...]


class Renewal(Enum):
    """What became of a changed pair; a closed set for metrics."""

    USED = "used"
    REFUSED = "refused"


class Certificate:
    """``clock`` is monotonic seconds; ``renewed`` is told of every changed pair. Raises SettingsError when the files cannot be used at the
    start."""

    def __init__(
        self,
        cert_file: Path,
        key_file: Path,
        *,
        renewed: Callable[[Renewal], None] = lambda renewal: None,
        look_every_s: float = LOOK_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._renewed = renewed
        self._files = (cert_file, key_file)
        self._look_every_s = look_every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp = self._stamps()
        self._context = self._loaded()
        self._look_at = clock() + look_every_s

    def context(self) -> ssl.SSLContext:
        """For the next connection."""
        with self._lock:
            if self._clock() >= self._look_at:
                self._look_at = self._clock() + self._look_every_s
                self._look()
            return self._context

    def _look(self) -> None:
        stamp = self._stamps()
        if stamp == self._stamp:
            return
        self._stamp = stamp  # also of a pair that is refused below: it is told once, until it changes again
        try:
            self._context = self._loaded()
        except SettingsError as error:
            log.warning("the last good certificate stays in use", reason=str(error))
            self._renewed(Renewal.REFUSED)
        else:
            log.info("the certificate was renewed", file=str(self._files[0]))
            self._renewed(Renewal.USED)

    def _stamps(self) -> _Stamp:
        try:
            stats = [file.stat() for file in self._files]
        except OSError:
            return ()
        return tuple((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino) for stat in stats)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])  # what is spoken here; clients that offer HTTP/2 then know
        try:
            context.load_cert_chain(*self._files, password=_no_password)
        except (OSError, ValueError):  # what ssl raises is an OSError
            raise SettingsError(
                f"the certificate {self._files[0]} and the key {self._files[1]} cannot be used together",
                remedy="check that both can be read, are PEM without a password, and belong together",
            ) from None
        return context


def _no_password() -> str:
    """An encrypted key must fail; without this, OpenSSL would ask at the terminal."""
    return ""
