"""A feed without a network: what is known is set by the test, and time passes when it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import structlog

from rebalancer.collect.bound_pods import BoundPods
from rebalancer.collect.kept_lists import KeptLists, Known
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import Resource
from rebalancer.kube.resources import NODE_LOADS, one_config_map
from rebalancer.kube.watch import Start
from rebalancer.kube.watch_events import Present
from rebalancer.kube.wire_steering import ConfigMapWire
from rebalancer.policy.reload import BuiltInPolicy, PolicyFile, PolicySource
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.feed_notes import FeedNotes
from rebalancer.runtime.judges import Judges
from rebalancer.runtime.memory import Memory, OpenMove
from rebalancer.runtime.records import dump_memory
from rebalancer.runtime.steering_feed import Sources, SteeringFeed
from rebalancer.runtime.store import KEY
from rebalancer.settings.model import ExtenderSettings
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.extending.kit import bound, node
from tests.steer.kit import NOW

STATE = one_config_map(namespace="ops", name="state")
WEB = WorkloadRef("Deployment", "shop", "web")


@dataclass
class Kept:
    """Stands in for `KeptLists`: ``at`` is when what it holds was known to be so."""

    items: dict[Resource[Any], Known[Any]] = field(default_factory=dict)

    def known(self, resource: Resource[Any]) -> Known[Any] | None:
        return self.items.get(resource)


@dataclass
class Scene:
    feed: SteeringFeed
    kept: Kept
    bound: BoundPods
    metrics: ExtenderMetrics
    wall: float = NOW
    ticks: float = 1000.0
    server_off_s: float = 0.0

    def now(self) -> float:
        return self.wall

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.ticks += seconds

    def nodes(self, nodes: Mapping[str, Mapping[str, str]] | Sequence[Any]) -> None:
        """What the nodes say now."""
        items = [node(name, written) for name, written in nodes.items()] if isinstance(nodes, Mapping) else list(nodes)
        self.kept.items[NODE_LOADS] = Known(items, self.ticks)

    def moves(self, *moves: OpenMove, text: str | None = None) -> None:
        """What the controller has written down."""
        data = {KEY: dump_memory(Memory(open_moves=moves)).decode() if text is None else text}
        meta = {"name": "state", "namespace": "ops"}
        self.kept.items[STATE] = Known([msgspec.convert({"metadata": meta, "data": data}, ConfigMapWire)], self.ticks)

    def binds(self, name: str, on: str, **more: Any) -> None:
        pod = bound(name, on, **{"at": self.wall, **more})
        self.bound.take([Present(f"shop/{name}", 5, pod)], Start(1, 1))

    def step(self) -> None:
        self.feed.step()


def scene(*, policy: Path | None = None, crane: Path | None = None, **settings: Any) -> Scene:
    chosen = ExtenderSettings(**settings)
    metrics, kept = ExtenderMetrics(), Kept()
    policies: PolicySource = BuiltInPolicy() if policy is None else PolicyFile(policy)
    judges = Judges(chosen, policies=policies, crane=CranePolicySource(crane))
    made: list[Scene] = []
    pods = BoundPods(cast(KubeClient, None), now=lambda: made[0].wall, keep_s=900.0)
    sources = Sources(
        kept=cast(KeptLists, kept), bound=pods, judges=judges, state=STATE, server_now=lambda: made[0].wall + made[0].server_off_s
    )

    class At:
        def now(self) -> float:
            return made[0].wall if made else NOW

    feed = SteeringFeed(
        sources, chosen, clock=At(), metrics=metrics, notes=FeedNotes(metrics), monotonic=lambda: made[0].ticks if made else 1000.0
    )
    made.append(Scene(feed, kept, pods, metrics))
    return made[0]


def move(key: str, destination: str, *, at: float = NOW - 5, cores: float = 4.0, controller: str = "rs-1") -> OpenMove:
    eviction = PastEviction(
        at=at,
        pod_uid=key,
        namespace="shop",
        pod=f"web-{key}",
        workload=WEB,
        controller_uid=controller,
        tenant=None,
        source="hot",
        destination=destination,
        usage={"cpu": cores, "network": 5.0},
    )
    return OpenMove(eviction=eviction, alternatives=(), predicted_gain=0.1, source_before={}, predicted_source_after={})


@pytest.fixture
def said() -> Any:
    with structlog.testing.capture_logs() as logs:
        yield logs
