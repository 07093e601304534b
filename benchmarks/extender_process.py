"""The extender in a process of its own, that knows the nodes of a scene: what `benchmarks.extender` asks.

Says where it listens in one line, and serves until its standard input is closed.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence

import msgspec

from benchmarks.extender_questions import Scene, known_nodes, reserved
from rebalancer.cli.extender import SWITCH_S
from rebalancer.runtime.clock import SystemClock
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.extender_routes import Knowledge, extender_routes
from rebalancer.runtime.extender_server import ExtenderServer
from rebalancer.runtime.serving.messages import Answer, Request
from rebalancer.settings import Listen
from rebalancer.state.arrays import by_column
from rebalancer.steer.extender import Steering
from rebalancer.steer.judging import DynamicJudge, Judge, OwnJudge
from rebalancer.steer.own_annotation import SIGNALS
from rebalancer.steer.own_score import Marks


def main(arguments: Sequence[str]) -> int:
    scene, now = msgspec.json.decode(arguments[0].encode(), type=Scene), time.time()
    shape = (scene.nodes, len(SIGNALS))  # node by node, as marks of pools are
    marks = Marks(target=by_column(shape, fill=0.55), high=by_column(shape, fill=0.7), deviations=1.0)
    own = OwnJudge(marks)
    judge: Judge = own if scene.judge == "own" else DynamicJudge()
    steering = Steering(known_nodes(scene, now=now), judge, oldest_view_s=3600.0, reservations=reserved(scene, now=now))
    metrics = ExtenderMetrics()
    routes = extender_routes(Knowledge(lambda: steering), clock=SystemClock(), metrics=metrics)
    sys.setswitchinterval(SWITCH_S)  # this and the next as the command does
    gc.collect()
    gc.freeze()
    with ExtenderServer(Listen("127.0.0.1", 0), routes={**routes, ("GET", "/cpu"): _cpu}, lost=metrics.lost) as server:
        print(msgspec.json.encode(server.address.port).decode(), flush=True)
        sys.stdin.read()
    return 0


def _cpu(request: Request) -> Answer:
    """Seconds that this process has used."""
    return Answer(body=msgspec.json.encode(time.process_time()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
