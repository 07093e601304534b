"""An extender over loopback that knows a few nodes, and the metrics that it gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.extender_routes import Knowledge, extender_routes
from rebalancer.runtime.extender_server import EXTENDER_LIMITS, ExtenderServer
from rebalancer.runtime.serving.exchange import Limits
from rebalancer.steer.extender import Chosen, Steering
from rebalancer.steer.judging import OwnJudge
from rebalancer.steer.own_score import Marks
from tests.serving.kit import LOOPBACK
from tests.steer.kit import NOW, own, view

JUDGE = OwnJudge(Marks(target=np.full(4, 0.5), high=np.full(4, 0.7)))
NODES = view({"idle": own(cpu=0.0, memory=0.0), "hot": own(cpu=0.95, memory=0.2), "silent": {}})


class Broken:
    """A judge with a defect."""

    def verdict(self, *args: object, **more: object) -> object:
        raise ZeroDivisionError("unforeseen")

    scores = verdict


@dataclass
class World:
    """What the extender is told; may be changed while it serves."""

    steering: Steering = field(default_factory=lambda: Steering(NODES, JUDGE))
    time: float = NOW
    held: list[Chosen] = field(default_factory=list)
    holds: list[bool] = field(default_factory=list)
    """What is answered to each hold; then True."""
    metrics: ExtenderMetrics = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = ExtenderMetrics(view_age_s=lambda: self.knowledge.age_s(now=self.time))

    def now(self) -> float:
        return self.time

    def hold(self, chosen: Chosen) -> bool:
        self.held.append(chosen)
        return self.holds.pop(0) if self.holds else True

    @property
    def knowledge(self) -> Knowledge:
        return Knowledge(lambda: self.steering, self.hold)

    @contextlib.contextmanager
    def serving(self, *, limits: Limits = EXTENDER_LIMITS) -> Iterator[ExtenderServer]:
        routes = extender_routes(self.knowledge, clock=self, metrics=self.metrics)
        with ExtenderServer(LOOPBACK, routes=routes, limits=limits, lost=self.metrics.lost) as server:
            yield server

    def counted(self, name: str, **labels: str) -> float:
        return samples(self.metrics.exposition())[name, tuple(sorted(labels.items()))]


def samples(exposition: bytes) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(exposition.decode())
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for family in families for sample in family.samples}
