"""The HTTP under the Prometheus client: what its requests must be, and what it must not lose.

The client puts a POSTed query into the URL, waits for ever, follows redirects to login pages and throws warnings away. It takes a
`requests.Session`, so all of that is put right in one. A session belongs to one thread at a time: it remembers the last exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import requests
from requests.auth import AuthBase, HTTPBasicAuth

from rebalancer.collect.prometheus_wire import Decode, Decoded, Envelope, decode_envelope, decode_series
from rebalancer.errors import SettingsError

MAX_BODY_BYTES = 256 * 2**20
"""More than any sharded query can answer; what is longer is a query gone wrong, and would take the process down."""
_CHUNK_BYTES = 1 << 17


class AnswerTooLarge(Exception):
    """The body is longer than `MAX_BODY_BYTES`."""


class AnswerTooSlow(Exception):
    """The body was still arriving when the time for it was over."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back, whole. ``envelope`` is None when the body is no answer of the query API."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    envelope: Envelope | None
    decoded: Decoded = field(default_factory=Decoded)


class DecodedResponse(requests.Response):
    """The response as the client library wants it: `json` hands out what was decoded already."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self.status_code = exchange.status
        self._series = exchange.decoded.series

    @property
    def content(self) -> bytes:
        """Empty: the library would print the whole body into its exception."""
        return b""

    def json(self, **_: Any) -> Any:
        return {"data": {"result": self._series}}


class PostSession(requests.Session):
    """Sends the form in the body, follows no redirect, reads the body within a limit of time and of size, and keeps the exchange."""

    def __init__(self) -> None:
        super().__init__()
        self.exchange: Exchange | None = None
        self.overdue: Callable[[], bool] = lambda: False
        """Set before each request: is the time for the body over?"""
        self.decode: Decode = decode_series
        """Set before each request: what becomes of the series."""

    def request(  # type: ignore[override]
        self, method: str | bytes, url: str | bytes, params: Any = None, data: Any = None, **rest: Any
    ) -> requests.Response:
        self.exchange = None
        if str(method).upper() == "POST" and params and data is None:
            params, data = None, params
        rest.update(stream=True, allow_redirects=False)
        with super().request(method, url, params=params, data=data, **rest) as response:
            body = self._read(response)
        envelope: Envelope | None = None
        decoded = Decoded()
        try:
            envelope = decode_envelope(body)
            decoded = self.decode(envelope)
        except (msgspec.DecodeError, UnicodeDecodeError):
            envelope = None
        self.exchange = Exchange(response.status_code, response.headers, body, envelope, decoded)
        return DecodedResponse(self.exchange)

    def _read(self, response: requests.Response) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise AnswerTooLarge(f"more than {MAX_BODY_BYTES >> 20} MiB")
            if self.overdue():
                raise AnswerTooSlow
            chunks.append(chunk)
        return b"".join(chunks)


class FileCredentials(AuthBase):
    """Credentials that are read again for every request, because tokens are rotated under a running process.

    Always set on the session, also when there is nothing to add: it keeps a stray ``.netrc`` from answering instead.
    """

    def __init__(self, *, token_file: Path | None, basic_auth_file: Path | None, url_auth: tuple[str, str] | None = None) -> None:
        self._token_file = token_file
        self._basic_auth_file = basic_auth_file
        self._url_auth = url_auth

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token_file is not None:
            request.headers["Authorization"] = f"Bearer {_secret(self._token_file, 'prometheus.token_file')}"
            return request
        if self._basic_auth_file is not None:
            user, colon, password = _secret(self._basic_auth_file, "prometheus.basic_auth_file").partition(":")
            if not colon:
                raise SettingsError(
                    f"the file {self._basic_auth_file} of prometheus.basic_auth_file has no colon",
                    remedy="write user:password on one line",
                )
            return _basic(user, password, request)
        if self._url_auth is not None:
            return _basic(*self._url_auth, request)
        return request


def _basic(user: str, password: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    prepared: requests.PreparedRequest = HTTPBasicAuth(user.encode(), password.encode())(request)
    return prepared


def _secret(path: Path, setting: str) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(
            f"the file {path} of {setting} cannot be read ({reason})", remedy="mount the secret or correct the path"
        ) from None
    if not text or "\n" in text:
        raise SettingsError(
            f"the file {path} of {setting} does not hold one line", remedy="write the credential on one line, alone"
        ) from None
    return text


def prepare_session(*, verify: bool | str, credentials: FileCredentials, headers: Mapping[str, str]) -> PostSession:
    """A session of its own for one thread at a time; ``headers`` are copied, never changed."""
    session = PostSession()
    session.verify = verify
    session.auth = credentials
    own: MutableMapping[str, str | bytes] = session.headers
    own["User-Agent"] = "rebalancer"
    for name, value in headers.items():
        own[name] = value
    return session
