"""One request and its answer, by way of the official client: whole, with a time limit that covers all of it, or open (`stream`).

The client is used for what it does well: credentials and their renewal, TLS, proxies, connection pools. Its models, retries and redirects
stay unused. Whatever fails here leaves as an error of `rebalancer.errors`, through `failures`.
"""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec
import urllib3.exceptions
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from rebalancer import __version__
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube import failures
from rebalancer.kube.kubeconfig import Access
from rebalancer.kube.operations import Operation, describe
from rebalancer.kube.stream import Stream

S = TypeVar("S")

JSON = "application/json"
CONNECT_TIMEOUT_S = 3.0
MOST_CONNECTIONS = 24
"""Kept open at once: one for each watch and some for requests."""
_CHUNK_BYTES = 256 * 1024
_SHORTEST_S = 0.05
"""A time-out of 0 would mean none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. ``headers``: names in lower case. ``source``: what was asked of whom, for messages."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    source: str

    def into(self, kind: type[S]) -> S:
        """The body as ``kind``. Raises KubernetesUnreachable if it is cut short or of another shape."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise failures.cut_short(source=self.source) from error


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked: all of a request but the credentials."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: object | None = None
    content_type: str | None = None
    accept: str = JSON
    verb: str = ""
    """Where RBAC has another word for it than method and path tell: ``watch``."""

    @property
    def operation(self) -> Operation:
        operation = describe(self.method, self.path)
        return replace(operation, verb=self.verb) if self.verb else operation


class Transport:
    """``server`` is the address for messages, without credentials. Threads may share it."""

    def __init__(self, access: Access, *, clock: Callable[[], float]) -> None:
        self._access = access
        self._renewing = threading.Lock()
        configuration = access.configuration
        configuration.retries = False
        configuration.keep_alive = True
        configuration.connection_pool_maxsize = max(configuration.connection_pool_maxsize or 0, MOST_CONNECTIONS)
        self._api: Any = ApiClient(configuration=configuration)
        self._api.user_agent = f"rebalancer/{__version__}"
        self._ca = access.ca
        self._clock = clock
        self.server = _without_credentials(str(configuration.host))

    def close(self) -> None:
        self._api.close()

    def exchange(self, call: Call, *, limit_s: float, stop: Deadline | None) -> Answer:
        """The answer to ``call``, whatever its status, within ``limit_s`` seconds; ``stop`` may end a long answer early."""
        until = self._clock() + limit_s
        headers = self._headers(call)
        answer = self._exchange(call, headers, until=until, limit_s=limit_s, stop=stop)
        if answer.status == 401 and self._renew(headers):
            # It was not even looked at, so sending it again can do nothing twice.
            answer = self._exchange(call, self._headers(call), until=until, limit_s=limit_s, stop=stop)
        return answer

    def _exchange(self, call: Call, headers: dict[str, str], *, until: float, limit_s: float, stop: Deadline | None) -> Answer:
        with self._failing_well(call, seconds=limit_s):
            raw = self._begin(call, headers, silence_s=max(_SHORTEST_S, until - self._clock()), encoding="gzip")
            try:
                body = self._drain(raw, call=call, until=until, limit_s=limit_s, stop=stop)
            finally:
                # After a whole answer this leaves the connection in the pool; else it cuts it.
                raw.close()
        return self._answer(raw, body, call)

    def open(self, call: Call, *, silence_s: float) -> Stream | Answer:
        """The open answer to ``call``, or the whole one of a server that does not answer with success.

        ``silence_s``: longest time for the first byte, and between two. Not compressed: what is compressed is held back until it is much.
        """
        headers = self._headers(call)
        with self._failing_well(call, seconds=silence_s):
            raw = self._begin(call, headers, silence_s=silence_s, encoding="identity")
            if 200 <= raw.status < 300:
                return Stream(raw, operation=call.operation, server=self.server, ca=self._ca, silence_s=silence_s)
            try:
                body = self._drain(raw, call=call, until=self._clock() + silence_s, limit_s=silence_s, stop=None)
            finally:
                raw.close()
        if raw.status == 401:
            self._renew(headers)  # whoever opens streams tries again
        return self._answer(raw, body, call)

    def _begin(self, call: Call, headers: dict[str, str], *, silence_s: float, encoding: str) -> Any:
        url = f"{self._api.configuration.host}{call.path}" + (f"?{urlencode(call.query)}" if call.query else "")
        timeout = (min(CONNECT_TIMEOUT_S, silence_s), silence_s)
        return self._api.call_api(call.method, url, {**headers, "Accept-Encoding": encoding}, call.body, _request_timeout=timeout).response

    def _renew(self, refused: Mapping[str, str]) -> bool:
        """Read the credentials anew from where they came, since ``refused`` are not accepted any more. True if there are others by now.

        The client reads a token of a kubeconfig, or of a file that it names, once and for all.
        """
        configuration = self._api.configuration
        with self._renewing:
            if _token(configuration) != refused.get("authorization"):
                return True  # another thread has done it
            try:
                fresh = self._access.again().configuration
                token = _token(fresh)
            except Exception:  # the file may just be written, or the plugin fail: the refusal is what is told
                return False
            if not token or token == refused.get("authorization"):
                return False
            configuration.api_key, configuration.refresh_api_key_hook = fresh.api_key, fresh.refresh_api_key_hook
            return True

    @contextmanager
    def _failing_well(self, call: Call, *, seconds: float) -> Iterator[None]:
        try:
            yield
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise failures.transport_failure(error, operation=call.operation, server=self.server, ca=self._ca, seconds=seconds) from error
        except ValueError:
            # http.client quotes the header that it refuses, which may be the credentials.
            raise failures.no_credentials(ValueError(), server=self.server) from None

    def _answer(self, raw: Any, body: bytes, call: Call) -> Answer:
        answered = {name.lower(): value for name, value in raw.headers.items()}
        return Answer(status=raw.status, headers=answered, body=body, source=f"{call.operation.sentence} at {self.server}")

    def refusal(self, answer: Answer, call: Call) -> KubernetesError:
        """The error for an answer that is no success."""
        token = ""
        if answer.status == 401:
            token = self._headers(call).get("authorization", "").partition(" ")[2]
        return failures.refusal(
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            operation=call.operation,
            server=self.server,
            token=token,
        )

    def _headers(self, call: Call) -> dict[str, str]:
        headers: dict[str, str] = {**self._api.default_headers, "Accept": call.accept}
        if call.body is not None:
            headers["Content-Type"] = call.content_type or JSON
        try:
            self._api.update_params_for_auth(headers, None, ["BearerToken"], None, None, None)
        except Exception as error:  # the client's hook runs token files and plugins of all kinds
            raise failures.no_credentials(error, server=self.server) from None
        if headers.get("authorization"):
            headers["authorization"] = headers["authorization"].strip()
        return headers

    def _drain(self, raw: Any, *, call: Call, until: float, limit_s: float, stop: Deadline | None) -> bytes:
        chunks: list[bytes] = []
        # One receive at a time: the time-out of the socket starts anew with each, so only this sees an answer that merely drips.
        while chunk := raw.read1(_CHUNK_BYTES, decode_content=False):
            chunks.append(chunk)
            if stop is not None:
                stop.remaining()
            if self._clock() > until:
                raise failures.too_slow(operation=call.operation, server=self.server, seconds=limit_s)
        body = b"".join(chunks)
        return self._unpacked(body, call) if raw.headers.get("Content-Encoding", "").lower() == "gzip" else body

    def _unpacked(self, body: bytes, call: Call) -> bytes:
        """In one go: urllib3 unpacks and copies piece by piece, which takes four times as long for the pages of a large list."""
        try:
            return gzip.decompress(body)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise failures.cut_short(source=f"{call.operation.sentence} at {self.server}") from error


def _token(configuration: Any) -> str | None:
    """The authorization header as the client would send it; None without one."""
    found = configuration.auth_settings().get("BearerToken")
    return None if found is None or not found["value"] else str(found["value"]).strip()


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
