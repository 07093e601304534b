"""One sentence for every way in which a query can fail, with what to do about it.

The client library has three unrelated exceptions and puts the body of the answer into one string. Here a failure names the query, the
address without credentials, and the status, and is one of two kinds: Prometheus was not reached, or it was and said no.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

import requests
import urllib3.exceptions as u3

from rebalancer.collect.prometheus_session import AnswerTooLarge, AnswerTooSlow, Exchange
from rebalancer.errors import MetricsError, PrometheusRefused, PrometheusUnreachable
from rebalancer.units import format_duration

_HTML = re.compile(rb"^\s*(<!doctype html|<html|<head|<\?xml)", re.IGNORECASE)
_WRONG_ADDRESS = "set prometheus.url to the base address under which /api/v1/query answers"
_CREDENTIALS = "check prometheus.token_file, prometheus.basic_auth_file and prometheus.headers"
_LIGHTER = "give Prometheus more time (prometheus.timeout) or more resources, or shorten metrics.window or confirm.windows"
_TRUST = "set prometheus.ca_file to the certificate authority that signed it"
_LATER = "see why it or the proxy before it fails; nothing is moved until it answers"


@dataclass(frozen=True, slots=True)
class Asked:
    """The query that failed, as people know it: its name, and where it was sent."""

    query: str
    url: str

    def __str__(self) -> str:
        return f"query {self.query!r} to Prometheus at {self.url}"

    def unreachable(self, what: str, *, remedy: str, status: int | None = None) -> PrometheusUnreachable:
        return PrometheusUnreachable(f"{self} {what}", remedy=remedy, query=self.query, url=self.url, status=status)

    def refused(self, what: str, *, remedy: str, status: int | None = None) -> PrometheusRefused:
        return PrometheusRefused(f"{self} {what}", remedy=remedy, query=self.query, url=self.url, status=status)


def out_of_time(asked: Asked) -> PrometheusUnreachable:
    return asked.unreachable("was not sent, because the cycle's deadline has passed", remedy=_LIGHTER)


def stopped_by_network(asked: Asked, error: Exception, *, waited_s: float) -> PrometheusUnreachable:
    """The sentence for an exchange that brought no whole answer."""
    if isinstance(error, requests.exceptions.SSLError | ssl.SSLError | u3.SSLError):
        return asked.unreachable(f"failed, because the certificate is not trusted ({_root(error)})", remedy=_TRUST)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return asked.unreachable("found nobody who takes the connection in time", remedy=f"{_WRONG_ADDRESS}; is the network open?")
    if isinstance(error, requests.exceptions.ReadTimeout | u3.ReadTimeoutError | AnswerTooSlow):
        return asked.unreachable(f"was not answered within {format_duration(round(waited_s, 1))}", remedy=_LIGHTER)
    if isinstance(error, AnswerTooLarge):
        return asked.unreachable(f"gave an answer that is too large ({error})", remedy="aggregate the query by node or by pod")
    if isinstance(error, u3.ProtocolError | u3.DecodeError | requests.exceptions.ChunkedEncodingError):
        return asked.unreachable("was cut short in the middle of the answer", remedy=_LATER)
    if isinstance(error, requests.exceptions.ProxyError):
        return asked.unreachable(f"did not get through the HTTP proxy ({_root(error)})", remedy="correct HTTP_PROXY or NO_PROXY")
    if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema):
        return asked.unreachable("has an address that is no URL", remedy=_WRONG_ADDRESS)
    return asked.unreachable(f"could not be delivered ({_root(error)})", remedy=f"{_WRONG_ADDRESS}; is Prometheus running?")


def bad_answer(asked: Asked, exchange: Exchange, *, attempts: int) -> MetricsError | None:
    """The sentence for an answer that is not the data that was asked for; None when it is."""
    status = exchange.status
    if status == 200:
        return _bad_body(asked, exchange)
    said = _said(exchange)
    tries = f" in {attempts} attempts" if attempts > 1 else ""
    if 300 <= status < 400:
        return asked.unreachable(
            f"was redirected (status {status}{_target(exchange)}), which a login page does and Prometheus does not",
            remedy=f"{_WRONG_ADDRESS}, or give credentials; redirects are not followed",
            status=status,
        )
    if status in (401, 403):
        return asked.refused(f"was refused for want of rights (status {status}{said})", remedy=_CREDENTIALS, status=status)
    if status == 404:
        return asked.unreachable("found no query API there (status 404)", remedy=_WRONG_ADDRESS, status=status)
    if status == 400:
        return asked.refused(f"was refused as wrong (status 400{said})", remedy="correct the signal's query in the policy", status=status)
    if status == 422:
        return asked.refused(
            f"cannot be executed (status 422{said})", remedy="correct the query or the series that it joins; promtool helps", status=status
        )
    if status == 429:
        later = exchange.headers.get("Retry-After", "")[:40]
        wish = f"; it asks to come back after {later}" if later else ""
        return asked.refused(
            f"was refused as one too many{tries} (status 429{said}{wish})", remedy="lower prometheus.max_in_flight", status=status
        )
    if status == 503:
        return asked.refused(f"was aborted by the server (status 503{said})", remedy=_LIGHTER, status=status)
    if status >= 500:
        return asked.unreachable(f"failed on the server's side{tries} (status {status}{said})", remedy=_LATER, status=status)
    return asked.refused(f"was answered with status {status}{said}", remedy=_WRONG_ADDRESS, status=status)


def wrong_kind(asked: Asked, *, wanted: str, got: str) -> PrometheusRefused:
    return asked.refused(
        f"gave a {got or 'result without a type'} where a {wanted} is due",
        remedy="write a query that yields one value a series, such as sum by (node) (...)",
        status=200,
    )


def too_many_points(asked: Asked, *, points: int, limit: int) -> PrometheusRefused:
    return asked.refused(
        f"would ask for {points} points a series, and Prometheus gives at most {limit}",
        remedy="lower confirm.windows or raise confirm.step",
    )


def _bad_body(asked: Asked, exchange: Exchange) -> MetricsError | None:
    if exchange.envelope is None:
        if _HTML.match(exchange.body):
            return asked.unreachable(
                "was answered with an HTML page, such as a login page", remedy=f"{_WRONG_ADDRESS}, or give credentials", status=200
            )
        return asked.unreachable(
            f"was answered with something that is not Prometheus' JSON, or was cut short after {len(exchange.body)} bytes",
            remedy=_WRONG_ADDRESS,
            status=200,
        )
    if exchange.envelope.status != "success":
        return asked.refused(f"was answered with an error{_said(exchange)}", remedy=_LATER, status=200)
    return None


def _said(exchange: Exchange) -> str:
    """The server's own words, when they are few; a page of HTML is not passed on."""
    if exchange.envelope is None or not exchange.envelope.error:
        return ""
    words = " ".join(exchange.envelope.error.split())
    return f": {words[:300]}"


def _target(exchange: Exchange) -> str:
    """Where a redirect leads, without its query string, which may carry a token."""
    location = exchange.headers.get("Location", "").partition("?")[0]
    return f" to {re.sub(r'//[^/@]*@', '//', location)[:120]}" if location else ""


def _root(error: BaseException) -> str:
    """The innermost reason in a chain of wrapped network errors, without the objects that are printed into them."""
    seen: BaseException = error
    for _ in range(8):
        inner = seen.__cause__ or seen.__context__ or next((arg for arg in seen.args if isinstance(arg, BaseException)), None)
        inner = getattr(seen, "reason", None) if isinstance(getattr(seen, "reason", None), BaseException) else inner
        if inner is None or inner is seen:
            break
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    return re.sub(r"<[^>]*>(: )?", "", str(seen))[:160] or type(seen).__name__
