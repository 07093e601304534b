"""The one way to Prometheus, and the only importer of its client library.

Two questions can be asked, an instant one and a range, always as a POST, always within a deadline, and the answer is either whole
columns or one of our own errors. The library's faults end here: the times of a range are the ones that were asked for (it rounds to
seconds, so they are passed over its head), warnings survive, what is worth a second try gets one, and what is not (a query that the
server aborted) does not.
"""

from __future__ import annotations

import email.utils
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
import requests
import urllib3
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from rebalancer.collect.pod_book import PodBook, PodSeries
from rebalancer.collect.prometheus_errors import Asked, bad_answer, out_of_time, stopped_by_network, too_many_points, wrong_kind
from rebalancer.collect.prometheus_session import AnswerTooLarge, AnswerTooSlow, Exchange, FileCredentials, PostSession, prepare_session
from rebalancer.collect.prometheus_wire import (
    Answer,
    Decode,
    Decoded,
    Envelope,
    ResultType,
    answer_on_grid,
    decode_raw_series,
    decode_series,
)
from rebalancer.deadline import Deadline
from rebalancer.errors import SettingsError

MAX_POINTS = 11_000
"""Prometheus refuses a range of more points a series (web/api/v1/api.go, query_range)."""
ATTEMPTS = 3
CONNECT_TIMEOUT_S = 5.0
_WORTH_ANOTHER_TRY = (429, 502, 504)


@dataclass(frozen=True, slots=True)
class PrometheusAccess:
    """Where Prometheus is and how to be let in. Files are read for each request; nothing secret is shown when this is printed."""

    url: str
    timeout_s: float = 30.0
    """For one query, the server's own time-out included."""
    ca_file: Path | None = None
    token_file: Path | None = None
    basic_auth_file: Path | None = None
    """One line, ``user:password``."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    max_in_flight: int = 2
    insecure_skip_verify: bool = False
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Sent with each query, beside its own."""
    recording_rules: bool = False
    """The rules of `recording` are evaluated there, so their results are asked for first."""


@dataclass(frozen=True, slots=True)
class _Connection:
    """One session and the client on top of it, used by one thread at a time."""

    session: PostSession
    client: PrometheusConnect


class Prometheus:
    """Thread-safe; at most ``max_in_flight`` queries are under way at once. Remembers no value of any answer, but which pods were spoken
    of (`pod_book`)."""

    def __init__(self, access: PrometheusAccess, *, pause_s: float = 0.5) -> None:
        """``pause_s`` is the wait before a second try when the server names none; it doubles before a third.

        Raises SettingsError when the address or a file that it names cannot be right.
        """
        self.access = access
        self._pause_s = pause_s
        base, self.url, url_auth = _split_url(access.url)
        if access.ca_file is not None and not access.ca_file.is_file():
            raise SettingsError(f"prometheus.ca_file {access.ca_file} is not a file", remedy="mount the certificate or correct the path")
        self.notices = tuple(_notices(access, base, url_auth))
        """Sentences that deserve to be logged once, at start."""
        if access.insecure_skip_verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # said once in `notices`, not once a request
        credentials = FileCredentials(token_file=access.token_file, basic_auth_file=access.basic_auth_file, url_auth=url_auth)
        verify: bool | str = not access.insecure_skip_verify
        if verify and access.ca_file is not None:
            verify = str(access.ca_file)
        self._idle: queue.SimpleQueue[_Connection] = queue.SimpleQueue()
        self._all: list[_Connection] = []
        self._booking = threading.Lock()
        self._book: PodBook | None = None
        for _ in range(max(1, access.max_in_flight)):
            session = prepare_session(verify=verify, credentials=credentials, headers=access.headers)
            # No retries below us: urllib3 would sleep for as long as a Retry-After says, past any deadline.
            client = PrometheusConnect(url=base, session=session, retry=urllib3.Retry(0, read=False), method="POST")
            self._all.append(_Connection(session, client))
            self._idle.put(self._all[-1])

    def instant(self, query: str, *, at: float, deadline: Deadline, name: str = "") -> Answer:
        """One value a series at ``at`` (unix seconds). Raises PrometheusUnreachable, PrometheusRefused, SettingsError, Interrupted."""
        return self._instant(query, at=at, deadline=deadline, name=name, decode=decode_series)

    def pods(self, query: str, *, at: float, deadline: Deadline, name: str = "", node_label: str | None = None) -> Answer:
        """As `instant`, for a query of which each series is a pod's: `Answer.pods` says whose, and other labels are not read at once.

        ``node_label``: the only label that may name the node; None: the usual ones.
        """
        return self._instant(query, at=at, deadline=deadline, name=name, decode=partial(_decode_pods, self._book_for(node_label)))

    def _book_for(self, node_label: str | None) -> PodBook:
        with self._booking:
            if self._book is None or self._book.node_label != node_label:
                self._book = PodBook(node_label)
            return self._book

    def cycle_is_over(self) -> None:
        """Let go of what only this cycle needed, and of pods that are long gone."""
        with self._booking:
            if self._book is not None and self._book.outgrown():
                self._book = None
            if self._book is not None:
                self._book.rest()

    def rest(self) -> None:
        """Nothing is asked for a while: remember nothing."""
        with self._booking:
            self._book = None

    def _instant(self, query: str, *, at: float, deadline: Deadline, name: str, decode: Decode) -> Answer:
        moment = round(at, 3)
        asked = Asked(query=name or _short(query), url=self.url)

        def send(client: PrometheusConnect, timeout: tuple[float, float], server_s: float) -> None:
            own = {"time": f"{moment:.3f}", "timeout": f"{server_s:.3f}"}
            client.custom_query(query, params={**self.access.parameters, **own}, timeout=timeout)

        exchange = self._exchange(asked, send, deadline, decode=decode)
        return _answer(asked, exchange, wanted=ResultType.VECTOR, times=np.array([moment]), step_s=1.0)

    def range(self, query: str, *, start: float, end: float, step_s: float, deadline: Deadline, name: str = "") -> Answer:
        """One value a series at ``start``, ``start + step_s`` and so on up to ``end``. Raises what `instant` raises."""
        asked = Asked(query=name or _short(query), url=self.url)
        start, end = round(start, 3), round(end, 3)
        points = int((end - start) / step_s + 1e-6) + 1
        if points > MAX_POINTS:
            raise too_many_points(asked, points=points, limit=MAX_POINTS)

        def send(client: PrometheusConnect, timeout: tuple[float, float], server_s: float) -> None:
            client.custom_query_range(
                query,
                start_time=datetime.fromtimestamp(start, tz=UTC),
                end_time=datetime.fromtimestamp(end, tz=UTC),
                step=f"{step_s:.3f}",
                params={**self.access.parameters, "start": f"{start:.3f}", "end": f"{end:.3f}", "timeout": f"{server_s:.3f}"},
                timeout=timeout,
            )

        exchange = self._exchange(asked, send, deadline)
        times = start + step_s * np.arange(points, dtype=np.float64)
        return _answer(asked, exchange, wanted=ResultType.MATRIX, times=times, step_s=step_s)

    def close(self) -> None:
        for connection in self._all:
            connection.client.close()

    @contextmanager
    def _connection(self, asked: Asked, deadline: Deadline) -> Iterator[_Connection]:
        connection: _Connection | None = None
        while connection is None:
            left = deadline.remaining()
            if left <= 0:
                raise out_of_time(asked)
            try:
                connection = self._idle.get(timeout=min(left, 0.5))
            except queue.Empty:
                continue
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def _exchange(
        self,
        asked: Asked,
        send: Callable[[PrometheusConnect, tuple[float, float], float], None],
        deadline: Deadline,
        *,
        decode: Decode = decode_series,
    ) -> Exchange:
        """Send until there is an answer that is worth having, at most `ATTEMPTS` times and never past the deadline."""
        attempt = 1
        while True:
            with self._connection(asked, deadline) as connection:
                connection.session.decode = decode
                outcome = self._attempt(asked, connection, send, deadline)
            if isinstance(outcome, Exchange):
                error = bad_answer(asked, outcome, attempts=attempt)
                if error is None:
                    return outcome
                worth_it, pause = outcome.status in _WORTH_ANOTHER_TRY, _retry_after(outcome)
            else:
                error = stopped_by_network(asked, outcome[0], waited_s=outcome[1])
                worth_it, pause = _broken_connection(outcome[0]), None
            if pause is None:
                pause = self._pause_s * 2 ** (attempt - 1)
            if not worth_it or attempt == ATTEMPTS or pause >= deadline.remaining():
                raise error from None
            deadline.wait(pause)
            attempt += 1

    def _attempt(
        self,
        asked: Asked,
        connection: _Connection,
        send: Callable[[PrometheusConnect, tuple[float, float], float], None],
        deadline: Deadline,
    ) -> Exchange | tuple[Exception, float]:
        left = min(self.access.timeout_s, deadline.remaining())
        if left <= 0:
            raise out_of_time(asked)
        started = deadline.clock()
        connection.session.overdue = lambda: deadline.clock() - started > left
        try:
            # The server gets a little less, so that its own sentence about the time-out arrives before ours.
            send(connection.client, (min(CONNECT_TIMEOUT_S, left), left), left * 0.95)
        except PrometheusApiClientException:
            pass  # a status other than 200, which the exchange carries
        except (requests.RequestException, urllib3.exceptions.HTTPError, AnswerTooLarge, AnswerTooSlow, OSError) as error:
            return error, deadline.clock() - started
        exchange, connection.session.exchange = connection.session.exchange, None  # an answer of megabytes must not outlive its use
        if exchange is None:
            raise AssertionError("a request that did not fail leaves an exchange")
        return exchange


def _answer(
    asked: Asked, exchange: Exchange, *, wanted: ResultType, times: np.ndarray[tuple[int], np.dtype[np.float64]], step_s: float
) -> Answer:
    envelope = exchange.envelope
    if envelope is None:
        raise AssertionError("an answer without an envelope was refused before")
    kind = envelope.data.result_type if envelope.data is not None else ""
    if kind != wanted.value:
        raise wrong_kind(asked, wanted=wanted.value, got=kind)
    found = exchange.decoded
    return answer_on_grid(name=asked.query, series=found.series, times=times, step_s=step_s, envelope=envelope, pods=found.pods)


def _decode_pods(book: PodBook, envelope: Envelope) -> Decoded:
    series = decode_raw_series(envelope)
    return Decoded(series, PodSeries(book, book.read([one.metric for one in series])))


def _broken_connection(error: Exception) -> bool:
    """A connection that broke or was not taken is worth another try; a server that thinks for too long, or a bad certificate, is not."""
    if isinstance(error, requests.exceptions.SSLError | requests.exceptions.Timeout | requests.exceptions.InvalidURL):
        return False
    return isinstance(error, requests.exceptions.ConnectionError | urllib3.exceptions.ProtocolError)


def _retry_after(exchange: Exchange) -> float | None:
    """Seconds that the server asks us to wait: a number, or a date, which is measured against the server's own clock. None: it does not."""
    text = exchange.headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    try:
        then = email.utils.parsedate_to_datetime(text)
        now = email.utils.parsedate_to_datetime(exchange.headers.get("Date", ""))
        return max(0.0, (then - now).total_seconds())
    except (TypeError, ValueError):
        return None


def _split_url(url: str) -> tuple[str, str, tuple[str, str] | None]:
    """Base for requests, address for people, credentials that were written into the URL."""
    parts = urlsplit(url.strip())
    try:
        bad = parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 1) < 1
    except ValueError:
        bad = True
    if bad or parts.query or parts.fragment:
        raise SettingsError(
            "prometheus.url is not an http or https address without query string",
            remedy="write it like https://prometheus.monitoring:9090 or with a path before /api/v1/query",
        )
    place = parts.netloc.rpartition("@")[2]
    base = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    auth = (unquote(parts.username or ""), unquote(parts.password or "")) if parts.username or parts.password else None
    return base, base, auth


def _notices(access: PrometheusAccess, base: str, url_auth: tuple[str, str] | None) -> Iterator[str]:
    secret = access.token_file is not None or access.basic_auth_file is not None or url_auth is not None
    if secret and base.startswith("http:"):
        yield f"credentials for Prometheus at {base} travel unencrypted, because its address is http; use https"
    if access.insecure_skip_verify and base.startswith("https:"):
        yield f"the certificate of Prometheus at {base} is not verified, because prometheus.insecure_skip_verify is set"
    if access.token_file is not None and access.basic_auth_file is not None:
        yield "prometheus.token_file and prometheus.basic_auth_file are both set; the token is used"


def _short(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= 80 else f"{text[:77]}..."
