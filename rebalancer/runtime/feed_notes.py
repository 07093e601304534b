"""What is said about feeding the extender: each trouble once while it lasts, with the name of a node where there is one.

Nothing of it keeps a pod waiting, so all of it is for people who wonder why pods go where they go.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import structlog

from rebalancer.collect.node_columns import NodeColumns
from rebalancer.errors import KubernetesError
from rebalancer.kube.watch import Restart
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.state.arrays import FloatArray
from rebalancer.steer.load_annotations import clock_off
from rebalancer.steer.own_annotation import LOAD
from rebalancer.units import format_duration

CLOCK_OFF_S = 60.0

log = structlog.get_logger(__name__)


class FeedNotes:
    """Counts restarts, logs what somebody should know. Thread-safe: each kind of trouble is told by one thread."""

    def __init__(self, metrics: ExtenderMetrics) -> None:
        self._metrics = metrics
        self._said: set[str] = set()
        self._waiting = False

    # ---- reports of lists and watches -----------------------------------------------------------------------------------

    def restarted(self, resource: str, reason: Restart) -> None:
        self._metrics.watch_restarted(resource, reason)
        log.debug("watch restarted", resource=resource, reason=reason.value)

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        without = "pods just bound are not anticipated" if resource == "pods" else "it is listed some times a minute"
        log.warning(f"watching is forbidden, so {without}", resource=resource, error=error.message, remedy=error.remedy)

    def disagreed(self, resource: str, objects: int) -> None:
        log.warning("a list has corrected what the watch had missed", resource=resource, objects=objects)

    def defect(self, resource: str, error: Exception) -> None:
        log.error("a defect of this program ended a watch; it begins afresh", resource=resource, exc_info=error)

    def unreadable(self, resource: str, error: KubernetesError) -> None:
        log.warning("cannot be read; what was known last stays in use", resource=resource, error=error.message, remedy=error.remedy)

    def readable(self, resource: str) -> None:
        log.info("can be read again", resource=resource)

    def unwatchable_pods(self, error: KubernetesError) -> None:
        """The watch of pods cannot begin."""
        if not self._waiting:
            log.warning("pods just bound are not anticipated", error=error.message, remedy=error.remedy)
        self._waiting = True

    def watching_pods(self) -> None:
        if self._waiting:
            log.info("pods just bound are anticipated again")
        self._waiting = False

    # ---- what is odd ----------------------------------------------------------------------------------------------------

    def look_at(self, columns: NodeColumns, *, now: float, server_now: float | None) -> None:
        """Say what is odd and was not said before; what is over may be said again."""
        found = dict(oddities(columns, now=now, server_now=server_now))
        for about, words in found.items():
            if about not in self._said:
                log.warning("odd", notice=words)
        self._said = set(found)


def oddities(columns: NodeColumns, *, now: float, server_now: float | None) -> Iterator[tuple[str, str]]:
    """(what it is about, whatever nodes and numbers change; the sentence)."""
    for (series, why), node in sorted(columns.odd.items(), key=lambda each: (each[0][0], each[0][1].value)):
        more = _more(columns.crane.odd.get((series, why), 1))
        words = f"the annotation {series} of node {node}{more} {why.value} and does not count; another writer may use the same key"
        yield f"{series} {why.value}", words
    if columns.own_odd:
        more = _more(columns.own.odd)
        yield LOAD, f"the annotation {LOAD} of node {columns.own_odd}{more} is no load that this version can read, and does not count"
    for about, times in (("crane", columns.crane.written_at), (LOAD, columns.own.written_at)):
        words = clock_off(times, now=now)
        if words:
            yield f"clock of {about}", f"{words} (node {_newest(columns, times)})"
    if server_now is not None and abs(server_now - now) > CLOCK_OFF_S:
        side = "behind" if server_now > now else "ahead of"
        off = format_duration(round(abs(server_now - now)))
        yield "clock", f"the clock of this machine is {off} {side} that of the API server; loads may count as stale, or stale ones as fresh"


def _more(nodes: int) -> str:
    return f" (and of {nodes - 1} more)" if nodes > 1 else ""


def _newest(columns: NodeColumns, times: FloatArray) -> str:
    """The node whose time is the newest."""
    each = np.where(np.isfinite(times), times, -np.inf).reshape(len(columns.names), -1).max(axis=1)
    return columns.names[int(each.argmax())]
