"""`gpus`: what the commands say of a cluster with GPUs is what is true of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from rebalancer.simulate.gpu.fleet import GpuFleet
from rebalancer.simulate.scenario import Scenario
from rebalancer.state.snapshot import load_snapshot
from tests.commands.test_plan import schema
from tests.support.embedded import Json, Stage, stage

POLICY = """
apiVersion: rebalancer.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: gpus}
spec:
  pools:
  - name: default
    signals: {gpu: {low: 50, target: 70, high: 85}, gpu_memory: {low: 70, target: 85, high: 92}}
"""
FLEET = Scenario(seed=7, nodes=6, pods=100, hot_nodes=1, gpus=GpuFleet())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("fleet"), scenario=FLEET) as shared:
        yield shared


@pytest.fixture(scope="module")
def report(fleet: Stage) -> Json:
    return fleet.run("gpus", "-o", "json").ended(0).document


def test_every_device_is_shown_as_busy_and_as_full_as_it_is(fleet: Stage, report: Json) -> None:
    """Against the truth of the world; of an over-full device all of its memory."""
    jsonschema.validate(report, schema("gpus-report"))
    use = fleet.cluster.world.gpus
    assert use is not None
    truth = use.at(fleet.cluster.world.now)
    shown = {(one["node"], one["device"]): one for one in report["devices"]}
    assert len(shown) == len(use.devices)
    for device, busy, wanted in zip(use.devices, truth.busy, truth.wanted_mib, strict=True):
        one = shown[device.node, str(device.index)]
        assert one["busy"] == pytest.approx(busy, abs=0.06)
        assert one["memoryUsedBytes"] == pytest.approx(min(wanted, device.memory_mib) * 2**20, rel=0.05)
        assert (one["uuid"], one["condition"]) == (device.uuid, "ok")


def test_every_pod_is_shown_on_the_device_that_it_is_on(fleet: Stage, report: Json) -> None:
    """Whole, in replicas and by memory; nobody is on a device that nobody names."""
    use = fleet.cluster.world.gpus
    assert use is not None
    for row, device in enumerate(use.devices):
        one = next(each for each in report["devices"] if (each["node"], each["device"]) == (device.node, str(device.index)))
        assert {pod["uid"] for pod in one["pods"]} == set(use.holders(row))
    assert report["unplaced"] == []


def test_a_device_is_found_by_the_address_of_a_container(fleet: Stage, report: Json) -> None:
    """As monitoring knows containers: by IP."""
    pod = fleet.cluster.world.get("pods", report["devices"][-1]["pods"][0]["name"], report["devices"][-1]["pods"][0]["namespace"])
    found = fleet.run("gpus", "--ip", pod["status"]["podIP"], "-o", "json").ended(0).document
    assert [one["uuid"] for one in found["devices"]] == [report["devices"][-1]["uuid"]]


def test_a_pod_that_is_not_there_is_a_usage_error(fleet: Stage) -> None:
    """Status 2 and one sentence."""
    assert "there is no pod nobody" in fleet.run("gpus", "--pod", "nobody").ended(2).error


def test_a_snapshot_shows_what_the_cluster_showed(fleet: Stage, tmp_path: Path) -> None:
    """Devices, pods, shares and addresses; without addresses in an anonymous one, which says so."""
    path, hidden = tmp_path / "state", tmp_path / "hidden"
    fleet.cluster.advance(300.0)  # ahead of the real time, so that both look at the same moment
    fleet.run("snapshot", path).ended(0)
    live, replayed = (fleet.run("gpus", "-o", "json", *more).ended(0).document for more in ((), ("--snapshot", path)))
    assert live["devices"] == replayed["devices"]
    fleet.run("snapshot", hidden, "--anonymize").ended(0)
    assert "holds no addresses" in fleet.run("gpus", "--snapshot", hidden, "--ip", "10.0.0.1").ended(2).error


def test_windows_of_gpu_memory_have_what_drivers_reserve_in_them(fleet: Stage, tmp_path: Path) -> None:
    """All of them are like the newest: a node over its mark by half a GiB is so in every window."""
    policy, path = tmp_path / "policy.yaml", tmp_path / "state"
    policy.write_text(POLICY)
    fleet.run("snapshot", path, "--policy", policy).ended(0)
    state = load_snapshot(path.read_bytes())
    (column,) = (column for column, signal in enumerate(state.signals) if signal.name == "gpu_memory")
    history = state.nodes.history[~np.isnan(state.nodes.capacity[:, column]), column]
    assert history.size
    assert history[:, 0] == pytest.approx(history[:, -1], abs=0.012)


def test_the_table_fits_a_hundred_columns(fleet: Stage) -> None:
    """Names are shortened, numbers are not."""
    out = fleet.run("gpus").ended(0).out
    assert max(map(len, out.splitlines())) <= 100
    assert "GiB" in out


def test_a_cluster_without_gpus_is_no_error(looked_at: Stage) -> None:
    """Status 0 and a sentence."""
    assert "No node of this cluster tells of a GPU." in looked_at.run("gpus").ended(0).out
