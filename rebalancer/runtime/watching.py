"""How the service reads the cluster: by watch when the settings allow it, else by lists; and what is said when a watch has trouble."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from rebalancer.collect.cluster import ClusterSource, ListedCluster
from rebalancer.collect.watched import WatchedCluster
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.watch import Restart
from rebalancer.runtime.health import Health
from rebalancer.runtime.metrics import Metrics
from rebalancer.settings.model import KubernetesSettings

log = structlog.get_logger(__name__)


class WatchNotes:
    """Counts everything and logs what somebody should know. That a watch was dropped and goes on is in the metrics alone."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def restarted(self, resource: str, reason: Restart) -> None:
        self._metrics.watch_restarted(resource, reason)
        log.debug("watch restarted", resource=resource, reason=reason.value)

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        log.warning("watching is forbidden, so each cycle lists", resource=resource, error=error.message, remedy=error.remedy)

    def disagreed(self, resource: str, objects: int) -> None:
        self._metrics.watch_disagreed(resource, objects)
        log.warning("a list has corrected what the watch had missed", resource=resource, objects=objects)

    def defect(self, resource: str, error: Exception) -> None:
        log.error("a defect of this program ended a watch; it begins afresh", resource=resource, exc_info=error)


@contextmanager
def cluster_source(client: KubeClient, settings: KubernetesSettings, *, metrics: Metrics, health: Health) -> Iterator[ClusterSource]:
    """Where the cycles of a service get the cluster's objects from, for as long as the block lasts."""
    if not settings.watch:
        yield ListedCluster(client)
        return
    with WatchedCluster(client, report=WatchNotes(metrics), relist_s=settings.relist) as source:
        health.watch("watches", source.alive)
        yield source
