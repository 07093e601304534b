"""The small PromQL against the real one: the same samples, the same expressions, the same answers."""

from __future__ import annotations

import http.client
import json
import math
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from rebalancer.simulate.gpu.series import DeviceSeries
from rebalancer.simulate.history import History
from rebalancer.simulate.load import LoadModel
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.prometheus import format_value
from rebalancer.simulate.promql.evaluation import evaluate
from rebalancer.simulate.promql.frames import Block, Frame
from rebalancer.simulate.promql.parser import parse
from rebalancer.simulate.promql.syntax import Matcher
from rebalancer.simulate.series import ClusterSeries
from rebalancer.simulate.series_labels import Directory, SeriesOptions
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import deployment, node
from tests.simulate.gpu_kit import SHARED, asking, gpu_world

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("promtool")),
        reason="prometheus and promtool are not on the PATH; install them with: apt-get install prometheus",
    ),
]

SPAN_S = 1800.0
CPU_BY_NODE = 'sum by (node) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[5m]))'
EXPRESSIONS = [
    CPU_BY_NODE,
    '1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle"}[5m]))',
    'sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", container!="POD"}[5m]))',
    'sum by (namespace, pod) (max by (namespace, pod, container) (container_memory_working_set_bytes{container!="", container!="POD"}))',
    "max by (node) (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)",
    "1 - avg by (node) (sum without (mode) (rate(node_cpu_seconds_total{mode=~'idle|iowait|steal'}[5m]))"
    " * on (namespace, pod) group_left (node) max by (namespace, pod, node) (kube_pod_info{node!=''}))",
    "avg by (nodename) (sum without (mode) (rate(node_cpu_seconds_total{mode!~'idle|iowait|steal'}[5m]))"
    " * on (instance) group_left (nodename) max by (instance, nodename) (node_uname_info))",
    "time() - max by (node) (timestamp(node_memory_MemAvailable_bytes))",
    f"quantile_over_time(0.95, ({CPU_BY_NODE})[10m:30s])",
    f"max_over_time(({CPU_BY_NODE})[7m:])",
    "avg_over_time(container_memory_working_set_bytes{container='main'}[4m])",
    "quantile_over_time(0.5, container_memory_working_set_bytes{container='main'}[4m])",
    "stddev_over_time(node_memory_MemAvailable_bytes[4m])",
    "increase(container_cpu_usage_seconds_total{container='main'}[3m])",
    "irate(container_cpu_usage_seconds_total{container='main'}[3m])",
    "delta(container_memory_working_set_bytes{container='main'}[3m])",
    "rate(container_cpu_usage_seconds_total{container='main'}[2m] offset 3m)",
    "count by (mode) (node_cpu_seconds_total)",
    "stddev by (node) (rate(node_cpu_seconds_total[5m]))",
    "quantile by (node) (0.9, rate(node_cpu_seconds_total[5m]))",
    "topk(2, sum by (pod) (rate(container_cpu_usage_seconds_total{container='main'}[5m])))",
    "sum(container_memory_working_set_bytes) by (node) > 1e8",
    "node_memory_MemAvailable_bytes < bool 1e10",
    "kube_pod_info and on (namespace, pod) container_cpu_usage_seconds_total{container='main'}",
    "kube_pod_info unless on (namespace, pod) container_cpu_usage_seconds_total{container='main'}",
    "node_uname_info{nodename='n0'} or node_memory_MemTotal_bytes",
    "label_replace(node_uname_info, 'host', '$1-$2', 'instance', '(.*):(.*)')",
    "clamp_max(sum by (node) (rate(node_cpu_seconds_total[5m])), 7.9)",
    "-sum(rate(node_cpu_seconds_total{mode='user'}[5m])) ^ 2 + 3 * 2 % 4",
    "scalar(sum(up)) * vector(2)",
    "round(sum by (node) (rate(node_cpu_seconds_total{mode='user'}[5m])), 0.05)",
    "absent(nothing{a='b'})",
    "changes(kube_pod_info[5m])",
    "count_over_time(container_memory_working_set_bytes{container='main'}[5m])",
    "count by (__name__) ({__name__=~'DCGM_FI_DEV_FB_USED|DCGM_FI_PROF_GR_ENGINE_ACTIVE|nothing'})",
    "max by (UUID, gpu, modelName, node, namespace, pod, vgpu) (avg_over_time(DCGM_FI_DEV_GPU_UTIL[5m]))",
    "max by (UUID, GPU_I_ID, instance) (max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE[10m]))"
    " and max by (UUID, GPU_I_ID, instance) (DCGM_FI_PROF_GR_ENGINE_ACTIVE offset 10m)",
    "sum by (node) (max by (UUID, node) (avg_over_time(DCGM_FI_DEV_FB_USED{GPU_I_ID=''}[5m])))",
    "max by (UUID) (timestamp(DCGM_FI_DEV_FB_USED))",
]


class Backfilled:
    """The series as a backfill holds them: without staleness markers."""

    def __init__(self, series: ClusterSeries) -> None:
        self._series = series

    def select(self, name: str, matchers: list[Matcher], start: float, end: float) -> list[Block]:
        return [replace(b, silent=np.ones(b.labels.size, dtype=bool)) for b in self._series.select(name, matchers, start, end)]


def _scene() -> tuple[World, ClusterSeries]:
    """Two nodes, a few pods, and one that was evicted and replaced in the middle; a node with GPUs, two of its pods on one of them."""
    world = gpu_world(SHARED, seed=11)
    for number in range(2):
        node(world, f"n{number}")
    deployment(world, "web", 4, cpu="500m")
    for name, busy in (("one", 0.3), ("two", 0.2)):
        asking(world, name, gib=4, busy=busy, held_gib=3.0)
    world.advance(SPAN_S - 760)
    delete_pod(world, next(world.objects("pods")))
    world.advance(700)
    load = world.load or LoadModel(world)
    history = History(world, load, interval_s=15.0, back_s=SPAN_S)
    assert world.gpus is not None
    gpus = DeviceSeries(world, world.gpus)
    return world, ClusterSeries(history, Directory(world, load), SeriesOptions(node_label="node"), gpus=gpus)


def _openmetrics(series: ClusterSeries, start: float, end: float) -> str:
    lines: list[str] = []
    for name in series.metric_names:
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
        for block in series.select(name, [], start, end):
            for row, labels in enumerate(block.labels.as_dicts()):
                shown = ",".join(f'{key}="{value}"' for key, value in labels.items() if key != "__name__")
                lines += [
                    f"{name}{{{shown}}} {format_value(float(value))} {at:.3f}"
                    for at, value, there in zip(block.times, block.values[row], block.present[row], strict=True)
                    if there
                ]
    return "\n".join([*lines, "# EOF", ""])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Real:
    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str, **query: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("GET", f"{path}?{urlencode(query)}" if query else path)
            with connection.getresponse() as response:
                return response.status, response.read()
        finally:
            connection.close()

    def query(self, path: str, **query: Any) -> Any:
        _, body = self.get(path, **query)
        answer = json.loads(body)
        assert answer["status"] == "success", answer
        return answer["data"]["result"]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Backfilled, Real]]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    world, series = _scene()
    samples = folder / "samples.txt"
    samples.write_text(_openmetrics(series, world.now - SPAN_S, world.now))
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", samples, folder / "data"], check=True, capture_output=True)
    config = folder / "prometheus.yml"
    config.write_text("{}\n")
    port = _free_port()
    options = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=20y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with subprocess.Popen(["prometheus", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        real = Real(port)
        try:
            for _ in range(300):
                try:
                    if real.get("/-/ready")[0] == 200:
                        break
                except OSError:
                    pass
                time.sleep(0.1)
            else:
                pytest.fail("prometheus did not become ready")
            yield world, Backfilled(series), real
        finally:
            process.terminate()
            process.wait(timeout=20)


def _close(left: float, right: float) -> bool:
    return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)


def _ours(source: Backfilled, expression: str, steps: list[float]) -> dict[frozenset[tuple[str, str]], dict[float, float]]:
    value = evaluate(parse(expression), source, np.array(steps))
    assert isinstance(value, Frame)
    return {
        frozenset(labels.items()): {
            step: float(v) for step, v, there in zip(steps, value.values[row], value.present[row], strict=True) if there
        }
        for row, labels in enumerate(value.labels.as_dicts())
    }


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_gives_what_prometheus_gives(both: tuple[World, Backfilled, Real], expression: str) -> None:
    """Equal labels and equal values at ten steps, off the scrape grid."""
    world, source, real = both
    steps = [world.now - 900 + 97.0 * number + 4.0 for number in range(9)]
    answer = real.query("/api/v1/query_range", query=expression, start=steps[0], end=steps[-1], step=97)
    theirs = {frozenset(s["metric"].items()): {float(at): float(v) for at, v in s["values"]} for s in answer}
    mine = {labels: points for labels, points in _ours(source, expression, steps).items() if points}
    assert mine.keys() == theirs.keys()
    for labels, points in mine.items():
        assert points.keys() == theirs[labels].keys()
        wrong = {at: (value, theirs[labels][at]) for at, value in points.items() if not _close(value, theirs[labels][at])}
        assert not wrong
