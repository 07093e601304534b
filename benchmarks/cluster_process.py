"""The process that plays the cluster: builds a world, serves it, and says what was fetched. Its time and memory are nobody's concern.

Standard output carries two lines: a `Served` when the cluster answers, and, once a line came in on standard input, the two `Traffic` of
the API server and of Prometheus. It ends with its standard input.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.scene import Scene, Served
from benchmarks.traffic import Meter
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.scenario import Scenario, build_world
from rebalancer.simulate.world import World

HISTORY_S = 1200.0
"""How far back the samples reach: the confirmation windows and the window of the oldest of them."""


def main() -> None:
    scene = msgspec.json.decode(sys.argv[1], type=Scene)
    started = time.monotonic()
    world = build_world(
        Scenario(
            seed=scene.seed,
            nodes=scene.nodes,
            pods=scene.pods,
            hot_nodes=scene.hot_nodes,
            scheduled=False,
            managed_fields=True,
        )
    )
    _encode_ahead(world)
    meters = {"simulate-api": Meter(), "simulate-prometheus": Meter()}
    cluster = EmbeddedCluster(world, history_s=HISTORY_S, http=lambda application, **o: meters[o["name"]].serve(application, **o))
    with cluster, tempfile.TemporaryDirectory(prefix="rebalancer-benchmark-") as folder:
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        _say(
            Served(
                kubeconfig=str(kubeconfig),
                prometheus_url=cluster.prometheus_url,
                now=world.now,
                nodes=world.count("nodes"),
                pods=world.count("pods"),
                build_seconds=time.monotonic() - started,
            )
        )
        for _ in sys.stdin:
            _say(tuple(meter.total for meter in meters.values()))


def _encode_ahead(world: World) -> None:
    """Let the server hold the bytes of every pod, so that the wall time of the cycle is less that of the server."""
    for entry in world.entries("pods"):
        entry.encoded()


def _say(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
