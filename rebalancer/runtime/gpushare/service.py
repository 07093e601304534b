"""The verbs as handlers from bytes to status and bytes, and the threads behind them: watches, and a look at bindings of which nothing was
heard.

Whoever serves HTTP mounts `routes`. ``inspect`` of one node has its name in the path, so the handler is given the path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias
from urllib.parse import unquote

import structlog

from rebalancer import __version__
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gpu_sharing import GpuSharing
from rebalancer.kube.watch import Restart, WatchTiming
from rebalancer.runtime.gpushare.binder import BIND_S, Binder, BindEnd
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.feeds import FeedReport, Feeds
from rebalancer.steer.gpushare.binding import bind_answer, read_bind_args
from rebalancer.steer.gpushare.device_load import AnnotatedLoads, Ceilings, DeviceLoads
from rebalancer.steer.gpushare.filtering import OK, Unreadable, filter_nodes
from rebalancer.steer.gpushare.inspecting import inspect

PREFIX = "/gpushare-scheduler"
SWEEP_S = 5.0
PURGE_S = 3600.0
_JOIN_S = 0.8

log = structlog.get_logger(__name__)

Verb: TypeAlias = Callable[[bytes], tuple[int, bytes]]
"""From the body of a request to status and body of the answer."""


class ShareReport(FeedReport, Protocol):
    """Who counts what happens, from any thread."""

    def filtered(self, *, nodes: int, refused: int, error: bool) -> None: ...

    def ended(self, end: BindEnd) -> None:
        """A request to bind has been answered."""


class Quiet:
    """A report that logs what somebody should know, and counts nothing."""

    def restarted(self, resource: str, reason: Restart) -> None:
        log.debug("watch restarted", resource=resource, reason=reason.value)

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        log.warning("watching is forbidden", resource=resource, error=error.message, remedy=error.remedy)

    def defect(self, resource: str, error: Exception) -> None:
        log.error("a defect of this program ended a watch; it begins afresh", resource=resource, exc_info=error)

    def not_listed(self, resource: str, error: KubernetesError) -> None:
        log.warning("a list for shared GPUs has failed and is tried again", resource=resource, error=error.message, remedy=error.remedy)

    def filtered(self, *, nodes: int, refused: int, error: bool) -> None:
        """Nobody counts."""

    def ended(self, end: BindEnd) -> None:
        """Nobody counts."""


class GpuShareService:
    """``with GpuShareService(...) as service:`` watches and binds until the block ends."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        now: Callable[[], float],
        ceilings: Ceilings | None = None,
        loads: DeviceLoads | None = None,
        relist_s: float = 600.0,
        bind_s: float = BIND_S,
        timing: WatchTiming | None = None,
        report: ShareReport | None = None,
    ) -> None:
        """``namespace``: where registers are kept. ``now``: Unix seconds. ``loads``: measurements; the annotations of nodes without one."""
        self.book = ShareBook()
        self._report = report or Quiet()
        self._feeds = Feeds(client, self.book, report=self._report, relist_s=relist_s, timing=timing)
        self.binder = Binder(
            GpuSharing(client, namespace),
            self.book,
            now=now,
            loads=loads or AnnotatedLoads(self.book.loads),
            ceilings=ceilings,
            bind_s=bind_s,
        )
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="gpushare-keeper", daemon=True)

    def __enter__(self) -> GpuShareService:
        self._feeds.__enter__()
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._feeds.close()
        self._keeper.join(_JOIN_S)

    def alive(self) -> bool:
        return self._feeds.alive() and self._keeper.is_alive()

    def ready(self) -> bool:
        """Whether pods and nodes are known. Until then filter lets everything pass, and bind says that it cannot yet."""
        return self._feeds.ready()

    def wait_ready(self, seconds: float) -> bool:
        return self._feeds.wait_ready(seconds)

    # ---- verbs --------------------------------------------------------------------------------------------------------

    def routes(self) -> Mapping[tuple[str, str], Verb]:
        """(method, path) -> verb, for the paths that are fixed. `inspect_node` serves the paths below ``PREFIX/inspect/``."""
        return {
            ("POST", f"{PREFIX}/filter"): self.filter,
            ("POST", f"{PREFIX}/bind"): self.bind,
            ("GET", f"{PREFIX}/inspect"): lambda body: self.inspect(),
            ("GET", f"{PREFIX}/version"): lambda body: self.version(),
            ("GET", "/version"): lambda body: self.version(),
        }

    def filter(self, body: bytes) -> tuple[int, bytes]:
        answer = filter_nodes(body, most_free=self.book.most_free if self.ready() else None, own=self.book.own)
        if answer.error:
            log.warning("a request of kube-scheduler cannot be read", verb="filter", error=answer.error)
        self._report.filtered(nodes=answer.nodes, refused=answer.refused, error=bool(answer.error))
        return OK, answer.body

    def bind(self, body: bytes) -> tuple[int, bytes]:
        try:
            args = read_bind_args(body)
        except Unreadable as problem:
            log.warning("a request of kube-scheduler cannot be read", verb="bind", error=str(problem))
            self._report.ended(BindEnd.FAILED)
            return bind_answer(f"rebalancer gpushare, bind: {problem}")
        if not self.ready():
            self._report.ended(BindEnd.FAILED)
            return bind_answer(f"{args.pod} is not bound to node {args.node}: pods and nodes have not been read yet, try again")
        result = self.binder.bind(args)
        self._report.ended(result.end)
        if result.error:
            log.warning("a pod was not bound to a shared GPU", pod=args.pod, node=args.node, end=result.end.value, error=result.error)
        else:
            log.info("bound to a shared GPU", pod=args.pod, node=args.node, device=result.device)
        return bind_answer(result.error)

    def inspect(self) -> tuple[int, bytes]:
        also = (*(f"{name} have not been read yet" for name in self._feeds.unread()), *self.book.oddities())
        return OK, inspect(self.book.ledgers(), also=also)

    def inspect_node(self, path: str) -> tuple[int, bytes]:
        """``path``: of the request, or only the name of the node."""
        node = unquote(path.rstrip("/").rpartition("/")[2])
        ledger = self.book.ledger(node)
        if ledger is None:
            return OK, inspect((), also=(f"node {node} is not known, or is not for GPU share",))
        return OK, inspect((ledger,), also=self.book.oddities(node))

    def version(self) -> tuple[int, bytes]:
        return OK, __version__.encode()

    # ---- housekeeping -------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        rounds = 0
        while not self._stop.wait(SWEEP_S):
            rounds += 1
            try:
                self.binder.sweep()
                if self.ready() and rounds % round(PURGE_S / SWEEP_S) == 0:
                    self.binder.purge()
            except KubernetesError as error:
                log.warning("registers of nodes that are gone could not be deleted", error=error.message, remedy=error.remedy)
            except Exception as error:  # whatever it is, bindings that nobody asks about would be worse
                log.error("a defect of this program disturbed the look at open bindings; it goes on", exc_info=error)
