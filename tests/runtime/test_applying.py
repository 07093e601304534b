"""A plan file as it is read: of the right age, and nothing else than a plan."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rebalancer.errors import PlanFileError, UsageError
from rebalancer.plan.model import Plan
from rebalancer.runtime.applying import read_plan
from rebalancer.units import format_time
from tests.act.plans import AT, move, plan


def written(folder: Path, made: Plan | None = None, *, at: float = AT) -> Path:
    path = folder / "plan.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made or plan(move()), created_at=format_time(at))))
    return path


def test_a_plan_that_is_young_enough_is_read_as_it_was_written(tmp_path: Path) -> None:
    """To the last second of its age."""
    path = written(tmp_path)
    assert read_plan(path, max_age="15m", now=AT + 900).moves == plan(move()).moves


def test_a_plan_that_is_a_second_too_old_is_refused(tmp_path: Path) -> None:
    """With its age and the limit."""
    with pytest.raises(PlanFileError, match=r"is 15m1s old, at most 15m is allowed: make a new plan"):
        read_plan(written(tmp_path), max_age="15m", now=AT + 901)


def test_a_plan_of_the_future_is_refused_and_a_small_skew_is_not(tmp_path: Path) -> None:
    """A minute between two machines is usual; an hour makes every age meaningless."""
    path = written(tmp_path)
    assert read_plan(path, max_age="15m", now=AT - 60).cluster == "test-cluster"
    with pytest.raises(PlanFileError, match=r"was made 1h in the future: set the clocks right"):
        read_plan(path, max_age="15m", now=AT - 3600)


def test_an_age_that_is_none_says_how_to_write_one(tmp_path: Path) -> None:
    """Before anything is connected."""
    with pytest.raises(UsageError, match="--max-age"):
        read_plan(written(tmp_path), max_age="soon", now=AT)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """Which file, and which one is wanted."""
    with pytest.raises(PlanFileError, match=r"cannot read plan .*nothing\.json"):
        read_plan(tmp_path / "nothing.json", max_age="15m", now=AT)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"kind": "Plan"}', b"\xff\xfe"])
def test_what_is_no_plan_is_refused_with_the_name_of_the_file(data: bytes, tmp_path: Path) -> None:
    """Never a traceback."""
    path = tmp_path / "odd.json"
    path.write_bytes(data)
    with pytest.raises(PlanFileError, match=r"odd\.json"):
        read_plan(path, max_age="15m", now=AT)
