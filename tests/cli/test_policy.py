"""`rebalancer policy`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebalancer.cli.main import run

Captured = pytest.CaptureFixture[str]
HEAD = "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {name: prod}\n"


def _policy(tmp_path: Path, spec: str) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}spec: {spec}\n", encoding="utf-8")
    return str(path)


def test_a_good_policy_is_told_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    """Mode, pools, signals, first action, limits."""
    file = _policy(tmp_path, "{mode: evict}")
    assert run(["policy", "validate", file]) == 0
    out, _ = capsys.readouterr()
    assert out == (
        f"OK: {file}: policy prod, mode evict (pods are evicted); pool default is hot over cpu 70 % or memory 85 %; "
        "a node that stays hot is acted on after 7m at the earliest and 14m at the latest; at most 20 evictions in 10m, 2 from one node\n"
    )


def test_deviations_are_told_as_deviations(tmp_path: Path, capsys: Captured) -> None:
    """A distance from the mean is no percentage of capacity."""
    spec = "{pools: [{name: a, thresholds: deviation, signals: {cpu: {low: 10, target: 5, high: 15}}}]}"
    assert run(["policy", "validate", _policy(tmp_path, spec)]) == 0
    assert "pool a is hot over cpu mean + 15 points" in capsys.readouterr().out


def test_c2_a_wrong_key_is_status_3_with_the_nearest(tmp_path: Path, capsys: Captured) -> None:
    """Nothing on stdout; the sentence names key, line and what was meant."""
    assert run(["policy", "validate", _policy(tmp_path, "{mod: evict}")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert "line 4" in err
    assert "id you mean mode?" in err


def test_every_mistake_is_listed(tmp_path: Path, capsys: Captured) -> None:
    """One run is enough to mend the file."""
    assert run(["policy", "validate", _policy(tmp_path, "{mod: evict, intervall: 2m}")]) == 3
    err = capsys.readouterr().err
    assert "intervall" in err
    assert "mod" in err


def test_surprises_are_warnings_and_no_failure(tmp_path: Path, capsys: Captured) -> None:
    """A budget of zero moves nothing: worth a word, not a refusal."""
    assert run(["policy", "validate", _policy(tmp_path, "{budgets: {total: 0}}")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("OK: ")
    assert err.startswith("Warning: spec.budgets.total: ")


def test_the_schema_is_printed_as_json(capsys: Captured) -> None:
    """For an editor, straight from stdout."""
    assert run(["policy", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "RebalancePolicy" in json.dumps(schema)
