"""What the ways of steering are measured by: the closed loop in a small town, and a burst of new pods while nodes are hot."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rebalancer.guard.annotations import EVICT
from rebalancer.plan.grades import HOT_TAINT
from rebalancer.steer.own_annotation import LOAD
from tests.e2e.api import until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HOLLOW, HollowNode
from tests.e2e.objects import deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane
from tests.e2e.reference_course import HOT, Course
from tests.e2e.reference_run import live
from tests.e2e.reference_town import Town, arranged, build_town
from tests.e2e.steering_ways import OWN, Way, one_move
from tests.support.embedded import Process

NODES, PODS, SEED = 24, 250, 57
SECONDS = 110.0
WARM_UP_S = 45.0
"""Metrics of the window, and of the minutes that confirm a hot node."""


def small_town(*, seed: int = SEED) -> Town:
    return build_town(nodes=NODES, pods=PODS, seed=seed)


def steered(plane: ControlPlane, folder: Path, town: Town, way: Way, *, seconds: float = SECONDS) -> Course:
    """The closed loop, in a world of its own that begins like every other one of this town."""
    return live(plane, folder, town, way.contender, seconds=seconds, warm_up_s=WARM_UP_S, placement=arranged(town))


# ---- a burst ----------------------------------------------------------------------------------------------------------

SHOP = "e2e-burst"
BURST = 200
CALM_NODES, HOT_NODES = 15, 5
HEATED = "e2e.rebalancer.dev/heated"
STAYS = {EVICT: "false"}
"""Hot nodes stay hot for all."""
MOVABLE = "movable"
"""The exception, a Deployment whose first pod may go: soft taints come with a plan that moves something."""
EACH = 10
"""Pods of a node, with the same requests on all: nothing but use tells hot nodes from others."""
READY_S = 180.0


@dataclass(frozen=True)
class Burst:
    """``hot``: how many of the pods came to the nodes that were hot; ``seconds``: until the last one was bound."""

    name: str
    pods: int
    hot: int
    busiest: int
    """Most pods of the burst on one node."""
    seconds: float

    @property
    def share(self) -> float:
        return self.hot / self.pods


@contextlib.contextmanager
def half_hot(plane: ControlPlane, folder: Path) -> Iterator[Ground]:
    """Twenty nodes of 16 cores that are asked for alike; five of them run at 82 percent, the others at 13."""
    nodes = [HollowNode(f"node-{n:02d}", cpu=16, memory="64Gi", labels={HEATED: str(n < HOT_NODES)}) for n in range(CALM_NODES + HOT_NODES)]
    with ground(plane, folder, nodes, start_s=0.3) as own:
        own.namespace(SHOP)
        spec = pod_spec(cpu="500m", memory="512Mi")
        for heated, count, cpu in ((True, HOT_NODES, "1300m"), (False, CALM_NODES, "200m")):
            name = "hot" if heated else "calm"
            own.apply(
                deployment(
                    name,
                    SHOP,
                    {**spec, "nodeSelector": {HEATED: str(heated)}},
                    replicas=count * EACH,
                    annotations={**uses(cpu=cpu, memory="512Mi"), **STAYS},
                )
            )
        own.settled(SHOP, (HOT_NODES + CALM_NODES) * EACH)
        yield own


def burst(own: Ground, way: Way, *, pods: int = BURST) -> Burst:
    """``pods`` new pods at once, as soon as the way has said all it says of hot nodes; gone again afterwards."""
    _heat(own)
    hot = {name for name, load in own.loads().items() if load > HOT}
    assert len(hot) == HOT_NODES, own.loads()
    policy = own.policy(one_move(way.spec))
    with way.prepared(own), own.process("run", "--policy", policy, "--listen", "127.0.0.1:0", env=way.env) as process:
        until(lambda: _said(own, way, hot, process), f"{way.name}: hot nodes are told", seconds=READY_S, step=0.5)
        time.sleep(1.0)
        began = time.monotonic()
        annotations = {**uses(cpu="300m", memory="128Mi"), **STAYS}
        own.apply(deployment("burst", SHOP, pod_spec(cpu="200m", memory="128Mi"), replicas=pods, annotations=annotations))
        until(lambda: len(_placed(own)) == pods, "the burst is bound", seconds=READY_S, step=0.3)
        took = time.monotonic() - began
        placed = Counter(_placed(own))
        assert process.terminate(seconds=60) == 0, process.err.read_text(encoding="utf-8")[-3000:]
    for name in ("burst", MOVABLE):
        own.api.delete("deployments", name, SHOP)
        until(lambda name=name: not own.pods(SHOP, app=name), f"{name} is gone", seconds=READY_S, step=0.3)
    own.api.delete("namespaces", OWN)
    until(lambda: own.api.find("namespaces", OWN) is None, f"{OWN} is gone", seconds=READY_S, step=0.3)
    return Burst(
        way.name, pods=pods, hot=sum(count for node, count in placed.items() if node in hot), busiest=max(placed.values()), seconds=took
    )


def _heat(own: Ground) -> None:
    """A hot node has two pods more, of which one may go."""
    with own.only("node-00"):
        own.apply(deployment(MOVABLE, SHOP, pod_spec(cpu="10m", memory="64Mi"), replicas=2, annotations=uses(cpu="900m", memory="64Mi")))
        own.settled(SHOP, 2, app=MOVABLE)


def _placed(own: Ground) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in own.pods(SHOP, app="burst") if pod["spec"].get("nodeName")]


def _said(own: Ground, way: Way, hot: set[str], process: Process) -> bool:
    nodes = own.api.list("nodes", labelSelector=f"{HOLLOW}=true")
    if way.taints:
        tainted = {
            node["metadata"]["name"] for node in nodes if any(each["key"] == HOT_TAINT.key for each in node["spec"].get("taints") or ())
        }
        return hot <= tainted
    if way.annotates:
        return all(LOAD in node["metadata"].get("annotations", {}) for node in nodes)
    return len(process.messages("cycle")) > 1
