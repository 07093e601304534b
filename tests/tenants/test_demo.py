"""The demonstration of tenants: the whole controller, over HTTP, gives a starved tenant its own back."""

from __future__ import annotations

import json

import pytest

from rebalancer.report.demo_tenants import TenantsDemoResult
from rebalancer.runtime.demo_tenants import run_tenants_demo
from tests.support.embedded import run_command


@pytest.mark.parametrize("seed", [7, 1])
def test_a_starved_tenant_runs_and_nobody_falls_under_its_guarantee(seed: int) -> None:
    """As many pods leave as are needed, all of the borrower; each that waited runs where room was made for it."""
    result: TenantsDemoResult = run_tenants_demo(seed=seed, cycles=6)
    before, after = ({one.name: one for one in states} for states in (result.before, result.after))
    assert before["speech"].pending_pods == 12
    assert (after["speech"].held, after["speech"].pending_pods) == (24.0, 0)
    assert result.evictions == {"vision": 12}
    assert result.under_guarantee == ()
    assert result.named_nodes == 12
    assert all(one.held >= one.guaranteed for one in result.after)


def test_the_command_shows_it() -> None:
    """As JSON for a program, as a table for people."""
    told = json.loads(run_command("demo", "--tenants", "--cycles", "1", "-o", "json").ended(0).out)
    assert told["kind"] == "TenantsDemoResult"
    assert told["course"][0]["method"] == "reclaim"
    assert "no tenant fell under its own" in run_command("demo", "--tenants", "--cycles", "1").ended(0).out


@pytest.mark.parametrize("other", ["--gpu", "--compare"])
def test_what_the_demonstration_of_tenants_has_not_is_refused(other: str) -> None:
    """Not left out without a word."""
    assert run_command("demo", "--tenants", other).ended(2).error.startswith("Error: --tenants shows a cluster of its own.")
