"""The process that plays the cluster: builds a world, serves it, and says what was fetched. Its time and memory are nobody's concern.

Standard output carries a `Served` when the cluster answers, and then one line for each line of standard input: to ``traffic`` the two
`Traffic` of the API server and of Prometheus since the start, to ``step N`` the `Stepped` after N pods were changed and a minute passed.
It ends with its standard input.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.churn import Churn
from benchmarks.remembered_series import RememberedSeries
from benchmarks.scene import Scene, Served, Stepped
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
    cluster.prometheus.series = RememberedSeries(cluster.series)
    with cluster, tempfile.TemporaryDirectory(prefix="rebalancer-benchmark-") as folder:
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        _run_the_clock(cluster)
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
        churn = Churn(world, seed=scene.seed)
        for line in sys.stdin:
            _say(_answer(line.split(), cluster, churn, tuple(meters.values())))


def _answer(words: list[str], cluster: EmbeddedCluster, churn: Churn, meters: tuple[Meter, ...]) -> object:
    if words[0] == "traffic":
        return tuple(meter.total for meter in meters)
    changed = churn.step(int(words[1]))
    cluster.prometheus.series = RememberedSeries(cluster.series)
    _run_the_clock(cluster)
    return Stepped(now=cluster.world.now, version=cluster.world.version, changed=changed)


def _run_the_clock(cluster: EmbeddedCluster) -> None:
    """Let the server's date go on while it is read, which may take minutes; what it serves stays as it is."""
    began, now = time.monotonic(), cluster.world.now
    cluster.api.tell_time_by(lambda: now + time.monotonic() - began)


def _encode_ahead(world: World) -> None:
    """Let the server hold the bytes of every pod, so that the wall time of the cycle is less that of the server."""
    for entry in world.entries("pods"):
        entry.encoded()


def _say(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
