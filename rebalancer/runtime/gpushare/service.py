"""The verbs as handlers of requests, and the threads behind them: watches, and a look at bindings of which nothing was heard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from urllib.parse import unquote

import structlog
from prometheus_client import CollectorRegistry

from rebalancer import __version__
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gpu_sharing import GpuSharing
from rebalancer.kube.watch import Restart, WatchTiming
from rebalancer.runtime.gpushare.binder import BIND_S, BindEnd, Binder, BindResult
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.feeds import Feeds
from rebalancer.runtime.gpushare.metrics import ShareMetrics
from rebalancer.runtime.health import Check
from rebalancer.runtime.serving.messages import TEXT, Answer, Handler
from rebalancer.steer.gpushare.binding import BindArgs, bind_answer, read_bind_args
from rebalancer.steer.gpushare.device_load import AnnotatedLoads, Ceilings, DeviceLoads
from rebalancer.steer.gpushare.filtering import OK, Unreadable, filter_nodes
from rebalancer.steer.gpushare.inspecting import inspect

PREFIX = "/gpushare-scheduler"
SWEEP_S = 5.0
PURGE_S = 3600.0
_JOIN_S = 0.8

log = structlog.get_logger(__name__)


class ShareNotes:
    """Says what somebody should know, and counts the restarts of watches. ``restarts``: where they are counted."""

    def __init__(self, restarts: Callable[[str, Restart], None] = lambda resource, reason: None) -> None:
        self._restarts = restarts

    def restarted(self, resource: str, reason: Restart) -> None:
        self._restarts(resource, reason)
        log.debug("watch restarted", resource=resource, reason=reason.value)

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        log.warning("watching is forbidden", resource=resource, error=error.message, remedy=error.remedy)

    def defect(self, resource: str, error: Exception) -> None:
        log.error("a defect of this program ended a watch; it begins afresh", resource=resource, exc_info=error)

    def not_listed(self, resource: str, error: KubernetesError) -> None:
        log.warning("a list for shared GPUs has failed and is tried again", resource=resource, error=error.message, remedy=error.remedy)


class GpuShareService:
    """``with GpuShareService(...) as service:`` watches and binds until the block ends."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        now: Callable[[], float],
        binding: KubeClient | None = None,
        ceilings: Ceilings | None = None,
        loads: DeviceLoads | None = None,
        relist_s: float = 600.0,
        bind_s: float = BIND_S,
        timing: WatchTiming | None = None,
        notes: ShareNotes | None = None,
        metrics: ShareMetrics | None = None,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``namespace``: where registers are kept. ``now``: Unix seconds. ``loads``: measurements; the annotations of nodes without one.

        ``binding``: another connection, for what a binding asks, so that no list is in its way; it is closed in the end.
        """
        self.book = ShareBook()
        self._metrics, self._timer = metrics or ShareMetrics(registry=CollectorRegistry()), timer
        self._feeds = Feeds(client, self.book, report=notes or ShareNotes(), relist_s=relist_s, timing=timing)
        self._binding = binding
        self.binder = Binder(
            GpuSharing(binding or client, namespace),
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
        if self._binding is not None:
            self._binding.close()

    def alive(self) -> bool:
        return self._feeds.alive() and self._keeper.is_alive()

    def ready(self) -> bool:
        """Whether pods and nodes are known. Until then filter lets everything pass, and bind says that it cannot yet."""
        return self._feeds.ready()

    def wait_ready(self, seconds: float) -> bool:
        return self._feeds.wait_ready(seconds)

    # ---- verbs --------------------------------------------------------------------------------------------------------

    def routes(self) -> dict[tuple[str, str], Handler]:
        """(method, path) -> handler, for `ExtenderServer`."""
        version = Answer(OK, __version__.encode(), TEXT)
        return {
            ("POST", f"{PREFIX}/filter"): lambda request: self.filter(request.body),
            ("POST", f"{PREFIX}/bind"): lambda request: self.bind(request.body),
            ("GET", f"{PREFIX}/inspect"): lambda request: self.inspect(),
            ("GET", f"{PREFIX}/inspect/"): lambda request: self.inspect_node(unquote(request.path.removeprefix(f"{PREFIX}/inspect/"))),
            ("GET", f"{PREFIX}/version"): lambda request: version,
            ("GET", "/version"): lambda request: version,
        }

    def check(self) -> Check:
        """Whether this replica should be asked."""
        unread = self._feeds.unread()
        return Check("gpushare", self.ready(), f"not read yet: {', '.join(unread)}" if unread else "pods, nodes and devices are known")

    def filter(self, body: bytes) -> Answer:
        try:
            answer = filter_nodes(body, most_free=self.book.most_free if self.ready() else None, own=self.book.own)
        except Exception as error:  # every node passes, and bind decides
            log.error("the filter for shared GPUs met a defect of this program, and abstained", exc_info=error)
            answer = filter_nodes(body, most_free=None)
        if answer.error:
            log.warning("a question cannot be read; is it kube-scheduler that asks?", verb="filter", reason=answer.error)
        self._metrics.filtered(nodes=answer.nodes, refused=answer.refused)
        return Answer(OK, answer.body)

    def bind(self, body: bytes) -> Answer:
        began = self._timer()
        try:
            result = self._bound(read_bind_args(body))
        except Unreadable as problem:
            log.warning("a question cannot be read; is it kube-scheduler that asks?", verb="bind", reason=str(problem))
            result = BindResult(BindEnd.UNREADABLE, f"rebalancer gpushare, bind: {problem}")
        self._metrics.ended(result.end, seconds=self._timer() - began)
        return Answer(*bind_answer(result.error))

    def _bound(self, args: BindArgs) -> BindResult:
        if not self.ready():
            why = "pods and nodes have not been read yet, try again"
            return BindResult(BindEnd.FAILED, f"{args.pod} is not bound to node {args.node}: {why}")
        try:
            result = self.binder.bind(args)
        except Exception as error:
            log.error("binding to a shared GPU met a defect of this program", pod=args.pod, node=args.node, exc_info=error)
            why = "a defect of this program; its log says more"
            return BindResult(BindEnd.FAILED, f"{args.pod} is not bound to node {args.node}: {why}")
        if result.error:
            log.warning("a pod was not bound to a shared GPU", pod=args.pod, node=args.node, end=result.end.value, reason=result.error)
        else:
            log.info("a pod was bound to a shared GPU", pod=args.pod, node=args.node, device=result.device)
        return result

    def inspect(self) -> Answer:
        also = (*(f"{name} have not been read yet" for name in self._feeds.unread()), *self.book.oddities())
        return Answer(OK, inspect(self.book.ledgers(), also=also))

    def inspect_node(self, node: str) -> Answer:
        if not node:
            return self.inspect()
        ledger = self.book.ledger(node)
        if ledger is None:
            return Answer(OK, inspect((), also=(f"node {node} is not known, or is not for GPU share",)))
        return Answer(OK, inspect((ledger,), also=self.book.oddities(node)))

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
