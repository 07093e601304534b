"""What the last cycle knows of the nodes, served as load-watcher's API beside the metrics, which tell the same to Prometheus.

Only the replica that leads reads the cluster. The others have nothing to tell, and end the connection with their answer: clients keep
theirs for hours, and are to find another replica the next time.
"""

from __future__ import annotations

from rebalancer.runtime.clock import Clock
from rebalancer.runtime.serving.messages import JSON, Answer, Request
from rebalancer.runtime.serving.routing import Routes
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.steer.load_watcher import WatchedLoads, WatcherAnswer, health, watched_loads, watcher

NOT_YET = "this process has not read the cluster yet"
STANDING_BY = "this replica stands by, and the one that leads has the data; ask again"


class LoadWatch:
    """Told by the loop, asked by threads of the HTTP server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: tuple[WatchedLoads | None, str] = (None, NOT_YET)

    def observed(self, state: ClusterState, load: FloatArray) -> None:
        """A cycle has read the cluster; ``load`` (nodes, signals) from the ledger."""
        self._told = (watched_loads(state, load), "")

    def stood_down(self) -> None:
        self._told = (None, STANDING_BY)

    @property
    def routes(self) -> Routes:
        return {("GET", "/watcher"): self._watcher, ("GET", "/watcher/health"): self._health}

    def _watcher(self, request: Request) -> Answer:
        loads, why = self._told
        return _sent(watcher(loads, host=request.query.get("host", ""), now=self._clock.now(), why_none=why))

    def _health(self, request: Request) -> Answer:
        loads, why = self._told
        return _sent(health(loads, now=self._clock.now(), why_none=why))


def _sent(answer: WatcherAnswer) -> Answer:
    headers = {"Connection": "close"} if answer.status >= 500 else {}
    return Answer(answer.status, answer.body, JSON, headers)
