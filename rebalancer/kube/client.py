"""One client of one API server: single requests with a limit of rate and time, reads that are tried again, and paged lists.

Every failure leaves as an error of `rebalancer.errors`. Threads may share a client.
"""

from __future__ import annotations

import contextlib
import email.utils
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube import failures
from rebalancer.kube.decoding import DecodedPage, NotAPage, PageDecoder
from rebalancer.kube.kubeconfig import Access, find_access
from rebalancer.kube.limiter import TokenBucket
from rebalancer.kube.lists import Page, Resource
from rebalancer.kube.retries import Backoff, retry
from rebalancer.kube.status import BUDGET_CAUSE, read_status, retry_after_s
from rebalancer.kube.stream import Stream
from rebalancer.kube.transport import JSON, Answer, Call, Transport

T = TypeVar("T", bound=msgspec.Struct)

METADATA_ONLY = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
QUIET_AFTER_THROTTLING_S = 1.0


class KubeClient:
    """``server`` is the address for messages, without credentials."""

    def __init__(
        self,
        access: Access,
        *,
        page_size: int = 500,
        timeout_s: float = 30.0,
        bucket: TokenBucket | None = None,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = Transport(access, clock=clock)
        self._page_size = page_size
        self._timeout_s = timeout_s
        self._bucket = bucket
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._dated: tuple[float, float] | None = None
        """The last Date that the server sent, and when it came by our monotonic clock."""
        self.server = self._transport.server

    @classmethod
    def connect(
        cls,
        *,
        kubeconfig: Path | None,
        context: str | None,
        page_size: int = 500,
        timeout_s: float = 30.0,
        bucket: TokenBucket | None = None,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> KubeClient:
        """A client for the cluster that the arguments or the surroundings name; nothing is sent yet.

        ``page_size``: objects in one page of a list. ``timeout_s``: longest time for one answer. ``bucket``: limit of the request rate,
        which clients may share; None: no limit. ``backoff``: for reads. Raises SettingsError, in one sentence.
        """
        access = find_access(kubeconfig=kubeconfig, context=context, environ=os.environ)
        return cls(access, page_size=page_size, timeout_s=timeout_s, bucket=bucket, backoff=backoff, clock=clock)

    def close(self) -> None:
        self._transport.close()

    @property
    def server_now(self) -> float | None:
        """Unix seconds by the clock of the API server, as its last answer told, to about a second; None while it has not told."""
        if self._dated is None:
            return None
        date, came_at = self._dated
        return date + self._clock() - came_at

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: object | None = None,
        content_type: str | None = None,
        accept: str = JSON,
        deadline: Deadline,
        write: bool = False,
    ) -> Answer:
        """The answer, if it is a success. Every other answer and every failure is raised as a KubernetesError. Sent once."""
        call = Call(method=method, path=path, query=query, body=body, content_type=content_type, accept=accept)
        answer = self._send(call, deadline=deadline, write=write)
        if 200 <= answer.status < 300:
            return answer
        raise self._transport.refusal(answer, call)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: object | None = None,
        content_type: str | None = None,
        accept: str = JSON,
        deadline: Deadline,
        write: bool = False,
    ) -> Answer:
        """The answer, whatever its status: for callers to whom a refusal is a result. Sent once.

        A ``write`` that was sent is followed to its answer even if a stop is asked for meanwhile, so that its outcome is not lost.
        Raises `failures.NotSent` if the request certainly did not reach the server, KubernetesUnreachable if that is open.
        """
        call = Call(method=method, path=path, query=query, body=body, content_type=content_type, accept=accept)
        return self._send(call, deadline=deadline, write=write)

    def stream(
        self, path: str, *, query: Sequence[tuple[str, str]] = (), accept: str = JSON, silence_s: float, verb: str = "watch"
    ) -> Stream:
        """An answer that is read as it comes (see `Stream`); the caller closes it. Not counted against the rate: its callers back off.

        ``verb``: what RBAC calls the request. Raises as `request`.
        """
        call = Call(method="GET", path=path, query=query, accept=accept, verb=verb)
        answer = self._transport.open(call, silence_s=silence_s)
        if isinstance(answer, Stream):
            return answer
        raise self._transport.refusal(answer, call)

    def refusal(self, answer: Answer, *, method: str, path: str) -> KubernetesError:
        """The error that `request` would have raised for an answer of `send`."""
        return self._transport.refusal(answer, Call(method=method, path=path))

    def get(self, path: str, *, query: Sequence[tuple[str, str]] = (), accept: str = JSON, deadline: Deadline) -> Answer:
        """A read, tried again after failures that pass, within the deadline. Raises as `request`."""
        return retry(
            lambda: self.request("GET", path, query=query, accept=accept, deadline=deadline), deadline=deadline, backoff=self._backoff
        )

    def review(self, path: str, *, body: object, deadline: Deadline) -> Answer:
        """A POST that only asks, as the reviews of `authorization.k8s.io` do: tried again like a read."""
        return retry(lambda: self.request("POST", path, body=body, deadline=deadline), deadline=deadline, backoff=self._backoff)

    def pages(self, resource: Resource[T], *, deadline: Deadline, query: Sequence[tuple[str, str]] = ()) -> Iterator[Page[T]]:
        """The pages of one list, each tried again after failures that pass.

        Raises KubernetesExpired when the list takes longer than its continue token lives: `list_all` then starts afresh.
        """
        decoder = PageDecoder(resource.item)
        token = ""
        while True:
            page = self._page(resource, decoder, self._page_query((*resource.query, *query), token=token), deadline)
            yield Page(items=page.items, resource_version=page.resource_version, odd=page.odd, odd_keys=page.odd_keys)
            if not page.next_token:
                return
            if page.next_token == token:
                raise KubernetesError(f"{self.server} gave the same continue token twice while listing {resource.name}")
            token = page.next_token

    def _page_query(self, query: Sequence[tuple[str, str]], *, token: str) -> list[tuple[str, str]]:
        asked = [*query, ("limit", str(self._page_size))]
        if token:
            # The token carries the version of the list; naming one beside it is refused.
            asked = [pair for pair in asked if not pair[0].startswith("resourceVersion")] + [("continue", token)]
        return asked

    def _page(self, resource: Resource[T], decoder: PageDecoder[T], query: Sequence[tuple[str, str]], deadline: Deadline) -> DecodedPage[T]:
        def ask() -> DecodedPage[T]:
            answer = self._list(resource, query=query, deadline=deadline)
            try:
                return decoder.decode(answer.body)
            except NotAPage as error:
                raise failures.cut_short(source=answer.source) from error

        return retry(ask, deadline=deadline, backoff=self._backoff)

    def _list(self, resource: Resource[T], *, query: Sequence[tuple[str, str]], deadline: Deadline) -> Answer:
        accept = METADATA_ONLY if resource.metadata_only else JSON
        try:
            return self.request("GET", resource.path, query=query, accept=accept, deadline=deadline)
        except KubernetesError as error:
            if error.status != 406 or not resource.metadata_only:
                raise
            return self.request("GET", resource.path, query=query, deadline=deadline)

    def _send(self, call: Call, *, deadline: Deadline, write: bool) -> Answer:
        if self._bucket is not None and not self._bucket.take(deadline):
            raise failures.no_time_left(operation=call.operation, server=self.server)
        left = deadline.remaining()
        if left <= 0:
            raise failures.no_time_left(operation=call.operation, server=self.server)
        answer = self._transport.exchange(call, limit_s=min(self._timeout_s, left), stop=None if write else deadline)
        self._note_date(answer)
        if answer.status < 300 and failures.is_html(answer.headers, answer.body):
            raise failures.not_an_api_server(status=answer.status, operation=call.operation, server=self.server)
        if answer.status == 429 and self._bucket is not None and read_status(answer.body).cause(BUDGET_CAUSE) is None:
            # The server asks this user for less, so all threads slow down, not only the one that was told.
            self._bucket.hold(retry_after_s(answer.headers) or QUIET_AFTER_THROTTLING_S)
        return answer

    def _note_date(self, answer: Answer) -> None:
        with contextlib.suppress(TypeError, ValueError):
            self._dated = email.utils.parsedate_to_datetime(answer.headers.get("date", "")).timestamp(), self._clock()
