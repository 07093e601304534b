"""Handlers that every server of ours has: probes and metrics."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from http import HTTPStatus

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rebalancer.runtime.health import Check
from rebalancer.runtime.serving.messages import Answer, Handler, Request, text


def probe(checks: Callable[[], Iterable[Check]]) -> Handler:
    """A line for each check; 503 when one of them has failed."""

    def answer(request: Request) -> Answer:
        found = tuple(checks())
        good = all(check.passed for check in found)
        words = "\n".join([*map(str, found), "ok" if good else "failed"])
        return text(words, status=HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)

    return answer


def metrics(exposition: Callable[[], bytes]) -> Handler:
    """``exposition``: the Prometheus text format. Packed for those who ask, since thousands of nodes make megabytes of it."""

    def answer(request: Request) -> Answer:
        body = exposition()
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Answer(body=body, content_type=CONTENT_TYPE_LATEST)
        return Answer(body=gzip.compress(body, compresslevel=1), content_type=CONTENT_TYPE_LATEST, headers={"Content-Encoding": "gzip"})

    return answer
