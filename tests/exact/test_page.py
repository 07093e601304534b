"""The command, at the size of a toy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.exact.__main__ import main
from benchmarks.exact.frozen import SCENARIO, freeze_world, without_budgets
from benchmarks.exact.page import DISTANCES, RULES
from rebalancer.detect.classify import detect


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The reference scenario with a tenth of the nodes and pods."""
    text = (
        SCENARIO.read_text().replace("count: 60", "count: 6").replace("pods: 1100", "pods: 110").replace("namespaces: 12", "namespaces: 2")
    )
    path = tmp_path / "small.yaml"
    path.write_text(text)
    return path


def test_the_page_says_how_it_was_made_and_has_every_column(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machine, seeds, command, both tables."""
    page = tmp_path / "yardstick.md"
    assert main(["--seeds", "3", "4", "--scenario", str(small), "--seconds", "5", "--write", str(page)]) == 0
    text = page.read_text()
    assert all(title in text for title in (*DISTANCES, *RULES))
    assert all(part in text for part in ("machine: ", "seeds 3, 4", "python -m benchmarks.exact --seeds 3 4", "highspy"))
    assert text.count("| unlimited |") == text.count("| policy |") == 2
    assert "| 3 | " in capsys.readouterr().out


def test_a_scenario_that_is_not_there_is_one_sentence_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The status of the error is the status of the command."""
    assert main(["--scenario", "nowhere.yaml"]) == 2
    assert "nowhere.yaml does not exist" in capsys.readouterr().err


def test_a_frozen_world_has_full_windows_and_the_same_seed_gives_the_same(small: Path) -> None:
    """Every load is known in every confirmation window, and nothing depends on when it was frozen."""
    first, second = freeze_world(small, seed=5), freeze_world(small, seed=5)
    findings = detect(first.state, first.policy.spec)
    assert (findings.load == findings.load).all()
    assert (first.state.nodes.history == second.state.nodes.history).all()
    assert (first.state.pods.usage == second.state.pods.usage).all()


def test_budgets_can_be_lifted_without_touching_anything_else(small: Path) -> None:
    """Only the limits differ; the window stays."""
    policy = freeze_world(small).policy
    free = without_budgets(policy)
    assert free.spec.budgets.total > 100_000
    assert free.spec.model_copy(update={"budgets": policy.spec.budgets}) == policy.spec
