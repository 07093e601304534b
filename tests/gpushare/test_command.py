"""`rebalancer extender` with the verbs of gpushare switched on, as a process."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.gpushare.kit import ASK, EACH, bind_question, filter_question, gpu_node, gpu_pod
from tests.support.embedded import Process, Stage, eventually, stage

EXTENDER = ("extender", "--listen", "127.0.0.1:0", "--log-format", "json")
ON = {"REBALANCER_EXTENDER__GPUSHARE__ENABLED": "true"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own:
        own.cluster.world.create("nodes", gpu_node("gpu-1"))
        yield own


def ask(process: Process, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    address = eventually(lambda: process.messages("serving"), seconds=30)[0]["listen"]
    with closing(http.client.HTTPConnection(address, timeout=10)) as connection:
        connection.request(method, path, body or None)
        with connection.getresponse() as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith("{") else text


def test_it_filters_binds_and_inspects(cluster: Stage) -> None:
    """Beside the other verbs, by the same process, and ready only when it knows the devices."""
    world = cluster.cluster.world
    value = gpu_pod("p", ASK)
    pod = world.create("pods", {**value, "spec": {**value["spec"], "schedulerName": "another"}})  # type: ignore[dict-item]
    with cluster.process(*EXTENDER, env=ON) as process:
        eventually(lambda: ask(process, "GET", "/readyz")[0] == 200, seconds=30)
        assert "gpushare" in ask(process, "GET", "/readyz")[1]
        status, answer = ask(process, "POST", "/gpushare-scheduler/filter", filter_question(["gpu-1", "node-0001"], pod))
        assert (status, answer["NodeNames"]) == (200, ["gpu-1"])
        assert ask(process, "POST", "/gpushare-scheduler/bind", bind_question(pod, "gpu-1")) == (200, {"Error": ""})
        assert world.get("pods", "p", "default")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "0"
        node = ask(process, "GET", "/gpushare-scheduler/inspect/gpu-1")[1]["nodes"][0]
        assert (node["totalGPU"], node["usedGPU"]) == (2 * EACH, ASK)
        metrics = ask(process, "GET", "/metrics")[1].splitlines()
        assert 'rebalancer_gpushare_bindings_total{result="bound"} 1.0' in metrics
        assert 'rebalancer_gpushare_nodes_total{result="refused"} 1.0' in metrics
        assert process.terminate(seconds=8) == 0
    bound = process.messages("a pod was bound to a shared GPU")[0]
    assert (bound["pod"], bound["node"], bound["device"]) == ("pod default/p", "gpu-1", 0)
    assert process.messages("start")[0]["gpushare"] is True


def test_it_serves_none_of_it_unless_asked_to(cluster: Stage) -> None:
    """And writes nothing."""
    with cluster.process(*EXTENDER) as process:
        for path in ("filter", "bind", "inspect"):
            assert ask(process, "GET", f"/gpushare-scheduler/{path}")[0] == 404
        assert process.messages("start")[0]["gpushare"] is False
    assert cluster.writes == []
