"""One request and its answer, by way of the official client: whole, with a time limit that covers all of it, or open (`stream`).

The client is used for what it does well: credentials and their renewal, TLS, proxies, connection pools. Its models, retries and redirects
stay unused. Whatever fails here leaves as an error of `rebalancer.errors`, through `failures`.
"""

from __future__ import annotations

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
        with self._failing_well(call, seconds=limit_s):
            raw = self._begin(call, silence_s=limit_s, encoding="gzip")
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
        with self._failing_well(call, seconds=silence_s):
            raw = self._begin(call, silence_s=silence_s, encoding="identity")
            if 200 <= raw.status < 300:
                return Stream(raw, operation=call.operation, server=self.server, ca=self._ca, silence_s=silence_s)
            try:
                body = self._drain(raw, call=call, until=self._clock() + silence_s, limit_s=silence_s, stop=None)
            finally:
                raw.close()
        return self._answer(raw, body, call)

    def _begin(self, call: Call, *, silence_s: float, encoding: str) -> Any:
        url = f"{self._api.configuration.host}{call.path}" + (f"?{urlencode(call.query)}" if call.query else "")
        headers = {**self._headers(call), "Accept-Encoding": encoding}
        timeout = (min(CONNECT_TIMEOUT_S, silence_s), silence_s)
        return self._api.call_api(call.method, url, headers, call.body, _request_timeout=timeout).response

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
        while chunk := raw.read1(_CHUNK_BYTES, decode_content=True):
            chunks.append(chunk)
            if stop is not None:
                stop.remaining()
            if self._clock() > until:
                raise failures.too_slow(operation=call.operation, server=self.server, seconds=limit_s)
        return b"".join(chunks)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
