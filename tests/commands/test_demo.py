"""`demo`: the cluster is cured with few evictions, and the comparison shows what soft taints are worth."""

from __future__ import annotations

import jsonschema
import pytest

from tests.commands.test_plan import schema
from tests.support.embedded import run_command


def test_the_demo_cures_the_cluster_with_few_evictions() -> None:
    """No hot node is left, at most two evictions a hot node, and at no time a node hotter than the worst at the start."""
    ran = run_command("demo", "--seed", "7", "-o", "json").ended(0)
    result = ran.document
    jsonschema.validate(result, schema("demo-result"))
    assert ran.err == ""
    assert result["before"]["hotNodes"] > 0
    assert result["after"]["hotNodes"] == 0
    assert result["evictions"] <= 2 * result["before"]["hotNodes"]
    assert result["worstLoadSeen"] <= result["before"]["maxLoad"]
    assert sum(result["landing"].values()) == result["evictions"]


@pytest.mark.parametrize("seed", [1, 2, 3, 7])
def test_with_gpus_hot_and_over_full_devices_are_cured_and_no_gang_is_broken(seed: int) -> None:
    """At the end nothing is hot or over-full; at no time did a move overfill a device, or was a gang short of members."""
    result = run_command("demo", "--gpu", "--seed", seed, "-o", "json").ended(0).document
    jsonschema.validate(result, schema("demo-result"))
    before, after = result["before"], result["after"]
    assert before["gpuHotNodes"] == 3
    assert before["overfullDevices"] == 2
    assert before["worstDeviceMemory"] > 1
    assert (after["hotNodes"], after["gpuHotNodes"], after["overfullDevices"]) == (0, 0, 0)
    assert after["worstDeviceMemory"] < 1
    assert (result["devicesOverfilled"], result["gangsBroken"], after["gangsBroken"]) == (0, 0, 0)
    assert result["evictions"] <= 2 * (before["hotNodes"] + before["overfullDevices"])


def test_the_page_with_gpus_says_what_became_of_them() -> None:
    """In the table and in every row of the CSV."""
    page = run_command("demo", "--gpu", "--cycles", "1").ended(0).out
    assert "0 devices overfilled and 0 gangs broken at any time" in page
    assert "over-full GPUs" in page
    header, *rows = run_command("demo", "--gpu", "--cycles", "1", "-o", "csv").ended(0).out.splitlines()
    assert header.endswith("gpu_hot_nodes,overfull_devices,worst_device_memory,gangs_broken")
    assert [row.count(",") for row in rows] == [header.count(",")] * 3


def test_without_gpus_nothing_is_said_of_them() -> None:
    """No field, no line: it is the demonstration that it was."""
    ran = run_command("demo", "--cycles", "1", "-o", "json").ended(0)
    assert not {key for key in (*ran.document, *ran.document["before"]) if "gpu" in key.lower() or "gang" in key.lower()}


def test_the_comparison_runs_the_same_cluster_twice() -> None:
    """With and without soft taints from the same start; with them it is not worse, and the table names both."""
    ran = run_command("demo", "--compare", "--cycles", "1", "-o", "json").ended(0)
    with_taints, without = ran.document["withSoftTaints"], ran.document["withoutSoftTaints"]
    assert with_taints["before"] == without["before"]
    assert (with_taints["softTaints"], without["softTaints"]) == (True, False)
    assert with_taints["after"]["hotNodes"] <= without["after"]["hotNodes"]
