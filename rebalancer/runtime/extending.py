"""The extender as a process: sources that keep themselves current, the thread that feeds, and the server that kube-scheduler asks.

Everything begins and ends here. In the end the server goes first, so that answers on their way are finished while there is still something
to find them by. Every replica does the same and knows nothing of the others; there is no leader.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rebalancer.collect.bound_pods import BoundPods
from rebalancer.collect.kept_lists import KeptLists
from rebalancer.kube.client import KubeClient
from rebalancer.kube.limiter import TokenBucket
from rebalancer.kube.lists import Resource
from rebalancer.kube.resources import BOUND_PODS, NODE_LOADS, one_config_map
from rebalancer.kube.watch import Watch
from rebalancer.kube.wire_steering import ConfigMapWire
from rebalancer.runtime.clock import Clock
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.extender_routes import Knowledge, extender_routes
from rebalancer.runtime.extender_server import ExtenderServer
from rebalancer.runtime.feed_notes import FeedNotes
from rebalancer.runtime.gpushare.metrics import ShareMetrics
from rebalancer.runtime.gpushare.service import GpuShareService, ShareNotes
from rebalancer.runtime.health import Check
from rebalancer.runtime.judges import Judges
from rebalancer.runtime.serving.certificate import Certificate
from rebalancer.runtime.session import Session
from rebalancer.runtime.steering_feed import Sources, SteeringFeed, keeps_for_s
from rebalancer.settings.model import Settings
from rebalancer.steer.gpushare.device_load import Ceilings

PAGE_SIZE = 100
"""At most: a page is decoded in one go, and no question is answered meanwhile."""
PATIENCE_S = 60.0
"""Without a finished pass for so long, the feeding thread counts as dead."""
_JOIN_S = 0.8


@dataclass(frozen=True, slots=True)
class Extending:
    """A running extender."""

    server: ExtenderServer
    feed: SteeringFeed


@contextmanager
def extending(session: Session, client: KubeClient, *, clock: Clock) -> Iterator[Extending]:
    """Everything runs within the block. Raises SettingsError, and PolicyError for crane-scheduler's policy."""
    settings = session.settings
    judges = Judges(settings.extender, policies=session.policies, crane=CranePolicySource(settings.crane_policy_file))
    metrics = ExtenderMetrics(view_age_s=lambda: knowledge.age_s(now=clock.now()))
    notes = FeedNotes(metrics)
    state = _state(settings)
    kept = KeptLists(client, (NODE_LOADS, *(() if state is None else (state,))), report=notes, relist_s=settings.kubernetes.relist)
    bound = BoundPods(client, now=clock.now, keep_s=keeps_for_s(judges), troubled=notes.unwatchable_pods)
    sources = Sources(kept=kept, bound=bound, judges=judges, state=state, server_now=lambda: client.server_now)
    feed = SteeringFeed(sources, settings.extender, clock=clock, metrics=metrics, notes=notes)
    knowledge = Knowledge(feed.steering, feed.hold)
    threads = _Threads(client, bound, feed, notes)
    sharing = _sharing(settings, client, clock=clock, metrics=metrics)

    def live() -> tuple[Check, ...]:
        return (_runs("watches", kept.alive()), *threads.checks(), *(() if sharing is None else (_runs("gpushare", sharing.alive()),)))

    def ready() -> tuple[Check, ...]:
        return () if sharing is None else (sharing.check(),)

    server = ExtenderServer(
        settings.extender.listen,
        routes={
            **extender_routes(knowledge, clock=clock, metrics=metrics, live=live, ready=ready),
            **({} if sharing is None else sharing.routes()),
        },
        certificate=_certificate(settings, metrics),
        lost=metrics.lost,
    )
    with ExitStack() as stack:
        stack.callback(server.close)
        stack.enter_context(kept)
        stack.enter_context(threads)
        if sharing is not None:
            stack.enter_context(sharing)
        server.start()
        # Closed before what it answers by, and once more by the stack if something above fails.
        stack.callback(server.close)
        yield Extending(server, feed)


def extender_client(session: Session) -> KubeClient:
    """A connection for `extending`; the caller closes it."""
    settings = session.settings
    return _connected(settings, TokenBucket(settings.kubernetes.qps, settings.kubernetes.burst))


def _connected(settings: Settings, bucket: TokenBucket) -> KubeClient:
    return KubeClient.connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        page_size=min(settings.kubernetes.page_size, PAGE_SIZE),
        timeout_s=settings.kubernetes.timeout,
        bucket=bucket,
    )


def _state(settings: Settings) -> Resource[ConfigMapWire] | None:
    """Where the controller keeps its open moves; None where none is to be reserved for."""
    return one_config_map(namespace=settings.namespace, name=settings.memory_name) if settings.extender.reservation else None


def _sharing(settings: Settings, client: KubeClient, *, clock: Clock, metrics: ExtenderMetrics) -> GpuShareService | None:
    """What serves the verbs of the gpushare extender; None when they are off."""
    chosen = settings.extender.gpushare
    if not chosen.enabled:
        return None
    return GpuShareService(
        client,
        namespace=settings.namespace,
        now=clock.now,
        binding=_connected(settings, TokenBucket(chosen.qps, math.ceil(2 * chosen.qps))),
        ceilings=Ceilings(busy=chosen.busy_ceiling / 100, memory=chosen.memory_ceiling / 100),
        relist_s=settings.kubernetes.relist,
        bind_s=chosen.bind_timeout,
        notes=ShareNotes(metrics.watch_restarted),
        metrics=ShareMetrics(registry=metrics.registry),
    )


def _certificate(settings: Settings, metrics: ExtenderMetrics) -> Certificate | None:
    cert_file, key_file = settings.extender.cert_file, settings.extender.key_file
    return None if cert_file is None or key_file is None else Certificate(cert_file, key_file, renewed=metrics.renewed)


class _Threads:
    """The thread that watches pods and the one that feeds."""

    def __init__(self, client: KubeClient, bound: BoundPods, feed: SteeringFeed, notes: FeedNotes) -> None:
        self._feed = feed
        self._stop = threading.Event()
        self._watch = Watch(client, BOUND_PODS, bound, stop=self._stop, report=notes)
        self._watching = threading.Thread(target=self._watch.run, name="watch-pods", daemon=True)
        self._feeding = threading.Thread(target=feed.run, args=(self._stop,), name="feed", daemon=True)

    def __enter__(self) -> _Threads:
        self._watching.start()
        self._feeding.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watch.break_off()
        for thread in (self._feeding, self._watching):
            thread.join(_JOIN_S)

    def checks(self) -> tuple[Check, ...]:
        age = time.monotonic() - self._feed.passed_at
        feeds = self._feeding.is_alive() and age <= PATIENCE_S
        return (
            _runs("watch of pods", self._watching.is_alive()),
            Check("feed", feeds, f"last pass {age:.0f} s ago, at most {PATIENCE_S:.0f} s"),
        )


def _runs(name: str, alive: bool) -> Check:
    return Check(name, alive, "running" if alive else "stopped")
