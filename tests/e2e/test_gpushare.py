"""Sharing GPUs by memory: the real kube-scheduler has its pods bound by the extender, and no device is promised more than it has."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import deployment, pod_spec
from tests.e2e.plane import ControlPlane
from tests.e2e.steering_extender import extender, free_address
from tests.e2e.table import Row

OWN, SHARED = "e2e-gpushare", "e2e-shared"
RESOURCE, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
DEVICE_GIB, ASKED_GIB = 16, 6
NODES, DEVICES = 3, 2
ROOM = NODES * DEVICES * (DEVICE_GIB // ASKED_GIB)
"""Pods that fit into single devices: two into each. By the sums of the nodes kube-scheduler alone would put five on each node."""
MORE = 3
BOUND_S = 120.0


@pytest.fixture(autouse=True)
def _own_scheduler(plane: ControlPlane) -> None:
    if not plane.own:
        pytest.skip("the scheduler of a borrowed cluster is not ours to configure")


def _nodes() -> Sequence[HollowNode]:
    amounts = {RESOURCE: str(DEVICES * DEVICE_GIB), COUNT: str(DEVICES)}
    return [HollowNode(f"node-{number}", extended=amounts) for number in range(NODES)]


def _filled(pods: Sequence[Json]) -> Counter[tuple[str, str]]:
    """(node, device) -> GiB that the annotations of its pods say."""
    held: Counter[tuple[str, str]] = Counter()
    for each in pods:
        marks = each["metadata"]["annotations"]
        held[each["spec"]["nodeName"], marks["ALIYUN_COM_GPU_MEM_IDX"]] += int(marks["ALIYUN_COM_GPU_MEM_POD"])
    return held


def _on_nodes(own: Ground) -> list[Json]:
    return [each for each in own.pods(SHARED) if each["spec"].get("nodeName")]


def _waited(what: str, done: Callable[[], object]) -> None:
    until(done, what, seconds=BOUND_S, step=0.3)


def test_pods_share_devices_and_none_is_overfilled(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """gpushare: pods are bound to devices with room, those without room wait, and are bound when there is some."""
    with ground(plane, tmp_path, _nodes()) as own:
        own.namespace(OWN)
        own.namespace(SHARED)
        policy = own.policy("  mode: dry-run\n")
        address = free_address()
        with extender(own, policy=policy, namespace=OWN, shared=True, address=address):
            own.apply(deployment("part", SHARED, pod_spec(cpu="10m", extended={RESOURCE: str(ASKED_GIB)}), replicas=ROOM + MORE))
            _waited(f"{ROOM} pods are bound", lambda: len(_on_nodes(own)) >= ROOM)
            held = _filled(_on_nodes(own))
            scenario.shows(f"{sum(held.values()) // ASKED_GIB} pods of {ASKED_GIB} GiB on {len(held)} devices of {DEVICE_GIB} GiB")
            assert len(held) == NODES * DEVICES
            assert max(held.values()) <= DEVICE_GIB
            _waited(
                "kube-scheduler says of the others that no device has room",
                lambda: sum("Insufficient GPU Memory in one device" in each for each in _refused(own)) == MORE,
            )
            scenario.shows(f"{MORE} wait: {_refused(own)[0]}")
            leaving = _on_nodes(own)[0]["metadata"]["name"]
            own.api.delete("pods", leaving, SHARED)
            _waited("its room is given to another", lambda: leaving not in _names(own) and len(_on_nodes(own)) == ROOM)
            again = _filled(_on_nodes(own))
            assert max(again.values()) <= DEVICE_GIB
            assert sum(again.values()) == ROOM * ASKED_GIB
            scenario.shows("the room of a pod that left was given to one that waited")
            assert _inspected(f"http://{address}") == again


def _names(own: Ground) -> set[str]:
    return {each["metadata"]["name"] for each in own.pods(SHARED)}


def _refused(own: Ground) -> list[str]:
    """What kube-scheduler says of each pod that waits."""
    return [
        str(condition.get("message", ""))
        for each in own.pods(SHARED)
        for condition in each.get("status", {}).get("conditions") or ()
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]


def _inspected(url: str) -> Counter[tuple[str, str]]:
    with urllib.request.urlopen(f"{url}/gpushare-scheduler/inspect", timeout=10) as answer:
        told = json.load(answer)
    return Counter({(node["name"], str(device["id"])): device["usedGPU"] for node in told["nodes"] for device in node["devs"]})
