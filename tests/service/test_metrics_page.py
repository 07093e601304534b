"""The page of every metric, and the command that writes all generated pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rebalancer.detect.classify import detect
from rebalancer.policy.model import built_in_policy
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.gpushare.metrics import ShareMetrics
from rebalancer.runtime.memory import LandingResult
from rebalancer.runtime.metric_snapshot import GAUGES, PREFIX, families_of
from rebalancer.runtime.metrics import Metrics
from rebalancer.runtime.metrics_page import metrics_markdown
from rebalancer.runtime.reference_pages import main, reference_pages
from tests.support.builder import cluster, node, pod

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", list(reference_pages()))
def test_the_committed_pages_are_current(name: str) -> None:
    """`make docs` was run after the last change of a model, a gate or a metric."""
    assert (DOCS / name).read_text(encoding="utf-8") == reference_pages()[name]


def test_every_metric_that_is_served_has_one_row_with_its_type() -> None:
    """What the service says of itself, what it says of a cluster, and what the extender says, also of shared GPUs."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", metrics_markdown(), flags=re.MULTILINE))
    extender = ExtenderMetrics()
    ShareMetrics(registry=extender.registry)
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name: family.type
        for registry in (Metrics(), extender)
        for family in text_string_to_metric_families(registry.exposition().decode())
    }
    assert rows == served | {PREFIX + name: "gauge" for name in GAUGES}


def test_a_cycle_exports_exactly_the_gauges_that_are_declared() -> None:
    """With the labels that are declared, each in one family."""
    state = cluster(nodes=[node("a"), node("b")], pods=[pod("p", on="a")])
    families = list(families_of(state, detect(state, built_in_policy().spec)))
    assert [family.name.removeprefix(PREFIX) for family in families] == list(GAUGES)
    assert [family.documentation for family in families] == [words for words, _ in GAUGES.values()]
    for family in families:
        labels = GAUGES[family.name.removeprefix(PREFIX)][1]
        assert all(tuple(sample.labels) == labels for sample in family.samples)


def test_labels_show_their_closed_sets() -> None:
    """Small sets in the cell, the gates by a link, and nothing that depends on the machine."""
    page = metrics_markdown()
    assert f"| `result`: {', '.join(result.value for result in LandingResult)} |" in page
    assert "| `gate`: one of the [gates](gates.md) |" in page
    assert "| `version`, `python` |" in page


def test_every_metric_has_a_meaning() -> None:
    """No cell is empty but those of metrics without labels."""
    assert not re.search(r"\|  \|$", metrics_markdown(), flags=re.MULTILINE)


def test_one_command_writes_every_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only where it was told to, and it says where."""
    assert main([str(tmp_path / "docs")]) == 0
    assert {path.name for path in (tmp_path / "docs").iterdir()} == set(reference_pages())
    assert capsys.readouterr().out.count("\n") == len(reference_pages())
    assert main([]) == 2
