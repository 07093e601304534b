"""The page of every refusal."""

from __future__ import annotations

from pathlib import Path

from rebalancer.guard.catalogue import gate_names
from rebalancer.plan.reasons import PlanGate
from rebalancer.report.gates_page import gates_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gates.md"


def test_the_committed_page_is_current() -> None:
    """docs/gates.md is what the gates say today; `make docs` writes it."""
    assert gates_markdown() == PAGE.read_text(encoding="utf-8")


def test_every_value_of_the_metric_label_is_on_the_page() -> None:
    """One row for each gate and for each refusal of planning, and none of a name that stands twice."""
    names = [*gate_names(), *(gate.value for gate in PlanGate)]
    assert [gates_markdown().count(f"| `{name}` |") for name in names] == [1] * len(names)
