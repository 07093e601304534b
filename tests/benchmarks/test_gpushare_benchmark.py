"""The benchmark of the gpushare verbs, on a few nodes: that it measures what it says, not how fast."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpushare import filter_questions, main
from benchmarks.gpushare_process import Part


def test_filter_and_both_kinds_of_binding_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each; a binding that fails would end it."""
    assert main(["--nodes", "6", "--requests", "4", "--bindings", "8", "--json"]) == 0
    timings = json.loads(capsys.readouterr().out)["timings"]
    assert [(each["what"], each["requests"]) for each in timings] == [
        ("filter, all nodes by name", 4),
        ("bind, first of its node", 4),
        ("bind, further ones", 4),
    ]
    assert all(0 < each["p50_ms"] <= each["p99_ms"] <= each["most_ms"] for each in timings)


def test_questions_are_about_all_nodes() -> None:
    """For pods of different sizes."""
    found = [json.loads(body) for body in filter_questions(Part(nodes=5))]
    assert {len(question["NodeNames"]) for question in found} == {5}
    assert len({json.dumps(question["Pod"]) for question in found}) == 3
