"""The preflight report and the demo's result."""

from __future__ import annotations

import json

from msgspec.structs import replace

from rebalancer.report.checks import CheckStatus
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from tests.report import samples


def test_the_worst_check_decides() -> None:
    """One failure among many is a failure; no check at all is none."""
    assert samples.checks().worst() is CheckStatus.FAIL
    assert replace(samples.checks(), checks=()).worst() is CheckStatus.OK


def test_a_remedy_stands_below_its_check() -> None:
    """What to do is next to what is wrong."""
    lines = [line.strip() for line in render(samples.checks(), Format.TABLE, Page(width=120)).splitlines()]
    row = next(number for number, line in enumerate(lines) if line.startswith("memory by pod"))
    assert lines[row + 1] == "-> see whether every kubelet is scraped"
    assert lines[-1] == "1 ok, 1 warn, 1 fail"


def test_the_demo_result_has_the_agreed_shape() -> None:
    """Programs find the numbers where the contract says."""
    value = json.loads(render(samples.demo(), Format.JSON, Page()))
    assert value["before"] == {"hotNodes": 6, "maxLoad": 0.97, "stddev": 0.14}
    assert (value["seed"], value["cycles"], value["evictions"]) == (7, 6, 9)
    assert value["landing"] == {"asPlanned": 8, "elsewhere": 1, "pending": 0}


def test_the_demo_ends_with_before_and_after() -> None:
    """And with what was refused and why."""
    text = render(samples.demo(), Format.TABLE, Page())
    words = [line.split() for line in text.splitlines()]
    assert ["hot", "nodes", "6", "0"] in words
    assert "8 replacements landed as planned, 1 elsewhere" in text
    assert "PDB shop/web allows 0 disruptions" in text
