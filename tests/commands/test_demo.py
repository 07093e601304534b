"""`demo`: the cluster is cured with few evictions, and the comparison shows what soft taints are worth."""

from __future__ import annotations

import jsonschema

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


def test_the_comparison_runs_the_same_cluster_twice() -> None:
    """With and without soft taints from the same start; with them it is not worse, and the table names both."""
    ran = run_command("demo", "--compare", "--cycles", "1", "-o", "json").ended(0)
    with_taints, without = ran.document["withSoftTaints"], ran.document["withoutSoftTaints"]
    assert with_taints["before"] == without["before"]
    assert (with_taints["softTaints"], without["softTaints"]) == (True, False)
    assert with_taints["after"]["hotNodes"] <= without["after"]["hotNodes"]
