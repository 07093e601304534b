"""GPUs of the embedded cluster: handed out as the real agents do it, used by other laws, and measured as dcgm-exporter does."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.simulate.gpu.fleet import GpuFleet
from rebalancer.simulate.gpu.nodes import RESERVED_MIB
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.scenario import Scenario, build_world
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, serving
from tests.simulate.gpu_kit import CUT, PLAIN, SHARED, asking, gpu_world, ids_of, index_of

FLEET = Scenario(seed=7, nodes=8, pods=120, hot_nodes=1, gpus=GpuFleet())


def series(world: World, expression: str) -> dict[tuple[str, str], float]:
    """(device index, pod or empty) -> value, as the Prometheus endpoint answers."""
    with serving(world) as (cluster, _):
        client = Http(cluster.prometheus_url)
        try:
            reply = client("POST", "/api/v1/query", urlencode({"query": expression}).encode())
        finally:
            client.close()
    found: list[dict[str, Any]] = json.loads(reply.body)["data"]["result"]
    return {(one["metric"].get("gpu", ""), one["metric"].get("pod", "")): float(one["value"][1]) for one in found}


# ---- who is given what ------------------------------------------------------------------------------------------------------


def test_gpushare_takes_the_fitting_device_with_the_least_memory_left() -> None:
    """The design document's example: 8 GiB with 12, 8, 4 and 16 GiB left go to the second device."""
    world = gpu_world(SHARED)
    for name, gib, index in (("full", 16, "0"), ("b", 8, "1"), ("c", 12, "2")):
        assert index_of(world, asking(world, name, gib=gib)["metadata"]["name"]) == index
    world.remove("pods", "full", "a")
    asking(world, "a", gib=4)  # 4 left on device 2: it goes there, and nothing is left of it
    assert index_of(world, "a") == "2"
    assert index_of(world, asking(world, "new", gib=8)["metadata"]["name"]) == "1"


def test_gpushare_writes_what_it_chose_and_the_plugin_confirms_it() -> None:
    """Index, total and amount with the binding; assigned once the pod runs."""
    annotations = asking(gpu_world(SHARED), "one", gib=3)["metadata"]["annotations"]
    told = {key.removeprefix("ALIYUN_COM_GPU_MEM_"): value for key, value in annotations.items()}
    assert {key: told[key] for key in ("IDX", "DEV", "POD", "ASSIGNED")} == {"IDX": "0", "DEV": "16", "POD": "3", "ASSIGNED": "true"}


def test_a_pod_waits_when_no_single_device_fits_though_the_node_would() -> None:
    """4 x 6 GiB left of a node are no 8 GiB."""
    world = gpu_world(SHARED)
    for number in range(4):
        asking(world, f"p{number}", gib=10)
    assert asking(world, "large", gib=8)["spec"].get("nodeName", "") == ""
    assert asking(world, "small", gib=6)["spec"]["nodeName"] == "shared"


def test_whole_devices_are_told_by_the_kubelet() -> None:
    """By uuid, each to one pod, and free again when the pod is gone."""
    world = gpu_world(PLAIN)
    asking(world, "one", gpus=1)
    asking(world, "two", gpus=1)
    first, second = ids_of(world, "one"), ids_of(world, "two")
    assert len({*first, *second}) == 2
    assert asking(world, "three", gpus=1)["spec"].get("nodeName", "") == ""
    delete_pod(world, world.get("pods", "one", "a"))
    world.advance(600)
    assert ids_of(world, "three") == first


def test_replicas_are_taken_from_the_device_that_has_most_left() -> None:
    """Two pods on two devices; ids name the replica."""
    world = gpu_world(CUT)
    asking(world, "one", gpus=1)
    asking(world, "two", gpus=1)
    (one,), (two,) = ids_of(world, "one"), ids_of(world, "two")
    assert one.endswith("::0")
    assert two.endswith("::0")
    assert one != two


@given(asks=st.lists(st.integers(min_value=1, max_value=16), min_size=1, max_size=14))
@settings(max_examples=25, deadline=None)
def test_no_device_is_ever_given_away_twice(asks: list[int]) -> None:
    """Whatever is asked for, what is handed out of a device is at most its memory, even when pods are bound in one pass."""
    world = gpu_world(SHARED)
    for number, gib in enumerate(asks):
        world.create("pods", _pending(number, gib))
    world.advance(60)
    given: dict[str, int] = {}
    for pod in world.objects("pods"):
        told = pod["metadata"].get("annotations") or {}
        if pod["spec"].get("nodeName"):
            index = told["ALIYUN_COM_GPU_MEM_IDX"]
            given[index] = given.get(index, 0) + int(told["ALIYUN_COM_GPU_MEM_POD"])
    assert max(given.values()) <= 16


def _pending(number: int, gib: int) -> dict[str, Any]:
    container = {"name": "main", "resources": {part: {"aliyun.com/gpu-mem": str(gib)} for part in ("requests", "limits")}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"metadata": {"name": f"p{number}", "namespace": "a"}, "spec": spec, "status": {"phase": "Pending"}}


# ---- what is used, and what is measured -------------------------------------------------------------------------------------


def test_a_device_is_never_busier_than_it_can_be() -> None:
    """Two pods that each want 80 % of a device get 50 % each, and the device reads 100."""
    world = gpu_world(SHARED)
    asking(world, "one", gib=4, busy=0.8)
    asking(world, "two", gib=4, busy=0.8)
    busy = series(world, "DCGM_FI_DEV_GPU_UTIL")
    assert (busy["0", ""], busy["0", "one"], busy["0", "two"]) == (100, 50, 50)


def test_more_memory_than_there_is_is_wanted_but_not_measured() -> None:
    """The truth is over 100 %; used + free + reserved stays what the device has."""
    world = gpu_world(SHARED)
    asking(world, "modest", gib=4, held_gib=8.0)
    asking(world, "greedy", gib=2, held_gib=11.0)
    assert world.gpus is not None
    assert world.gpus.device_memory(world.now)["shared", 0] > 1.1
    used = series(world, "DCGM_FI_DEV_FB_USED")
    free = series(world, "max by (gpu) (DCGM_FI_DEV_FB_FREE)")
    assert used["0", ""] + free["0", ""] + RESERVED_MIB == 16384
    assert used["0", "modest"] + used["0", "greedy"] == pytest.approx(used["0", ""], abs=1)
    assert used["0", "greedy"] > used["0", "modest"]


def test_a_whole_device_has_one_series_and_no_pod_while_it_is_free() -> None:
    """The labels of the pod come with it and go with it; the device reads 0 when nobody is on it."""
    world = gpu_world(PLAIN)
    asking(world, "one", gpus=1, busy=0.6)
    assert series(world, "DCGM_FI_DEV_GPU_UTIL") == {("0", "one"): 60, ("1", ""): 0}
    delete_pod(world, world.get("pods", "one", "a"))
    world.advance(120)
    assert series(world, "DCGM_FI_DEV_GPU_UTIL") == {("0", ""): 0, ("1", ""): 0}


def test_g1_other_metrics_of_a_shared_device_are_copied_to_every_sharer() -> None:
    """The engine's value stands on both, and is that of the device."""
    world = gpu_world(SHARED)
    asking(world, "one", gib=4, busy=0.3)
    asking(world, "two", gib=4, busy=0.2)
    engine = series(world, 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0"}')
    assert engine.keys() == {("0", "one"), ("0", "two")}
    assert list(engine.values()) == pytest.approx([0.46, 0.46])


def test_which_metrics_there_are_can_be_asked() -> None:
    """A selector by the metric's name alone; a cluster without GPUs has none of the exporter's."""
    expression = 'count by (__name__) ({__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_FB_USED|nothing"})'
    assert sum(series(gpu_world(PLAIN), expression).values()) == 2
    assert series(gpu_world(), expression) == {}


def test_the_replacement_does_the_work_of_the_pod_that_left() -> None:
    """A fleet's hot node is cooled by evicting a pod, and another device gets its work."""
    world = build_world(FLEET)
    hot = next(name for name in world.hot_nodes("gpu", 0.85) if name.startswith("gpu-l4-"))
    total = sum(world.node_loads("gpu").values())
    pod = next(pod for pod in world.objects("pods", "serving") if pod["spec"]["nodeName"] == hot)
    node = world.get("nodes", hot)
    world.replace("nodes", {**node, "spec": {**node["spec"], "unschedulable": True}})
    delete_pod(world, pod)
    world.advance(120)
    loads = world.node_loads("gpu")
    assert loads[hot] < 0.85
    assert sum(loads.values()) == pytest.approx(total, rel=0.1)


# ---- the fleet --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3, 7, 11])
def test_the_fleet_has_hot_nodes_and_over_full_devices(seed: int) -> None:
    """As many as asked for, and every pod that asks for GPUs runs."""
    fleet = GpuFleet()
    world = build_world(Scenario(seed=seed, nodes=8, pods=120, hot_nodes=1, gpus=fleet))
    assert world.gpus is not None
    assert len(world.hot_nodes("gpu", 0.85)) == fleet.hot_whole + fleet.hot_shared
    assert sum(share > 1 for share in world.gpus.device_memory(world.now).values()) == fleet.overfull
    assert all(pod["status"]["phase"] == "Running" for pod in world.objects("pods"))


def test_equal_seeds_give_equal_fleets() -> None:
    """Objects and loads, to the byte."""
    one, two = build_world(FLEET), build_world(FLEET)
    assert [entry.encoded() for entry in one.entries("pods")] == [entry.encoded() for entry in two.entries("pods")]
    assert one.node_loads("gpu") == two.node_loads("gpu")
