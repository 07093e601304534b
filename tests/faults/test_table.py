"""Every row of the table of faults, and the run without a fault that they are held against."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.hamlet import HOT, ONCE_HOT
from tests.faults.meeting import FAULT_FREE, meet
from tests.faults.plugin import show
from tests.faults.table import ROWS, Row
from tests.faults.trial import trial

LEAST_ROWS = 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_fault(row: Row, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """What the row says, and nothing else."""
    seen = meet(row, tmp_path)
    show(record_property, row, seen)
    assert seen.wrong == [], "\n".join(seen.told[-20:])


@pytest.mark.parametrize("tempting", [False, True], ids=["plain", "tempting"])
def test_a_run_without_a_fault_evicts_what_the_rows_may_evict(tempting: bool, tmp_path: Path) -> None:
    """In its first cycle; then all is well, and nothing more is moved."""
    with trial(tmp_path, tempting=tempting) as here, here.service() as served:
        assert set(here.hot) == set(HOT)
        for _ in range(4):
            served.cycle()
            assert set(here.evicted) == FAULT_FREE
            here.pass_time()
        assert (here.hot, here.tainted, here.memory.open_moves) == ([], [], ())
        assert here.broken_budgets == []


def test_an_hour_ago_another_node_was_hot(tmp_path: Path) -> None:
    """Else an hour-old sample would be as good as a new one, and a wrong clock no fault."""
    with trial(tmp_path) as here:
        load = here.cluster.world.load
        assert load is not None
        now = here.cluster.world.now
        usage = load.usage(now - 3600.0)
        loads = usage.node_cpu / load.node_cores
        assert {name for name, value in zip(load.node_names, loads, strict=True) if value > 0.70} == {*HOT, ONCE_HOT}


def test_the_table_is_as_long_as_it_has_to_be() -> None:
    """And no two rows have the same name."""
    assert len({row.id for row in ROWS}) == len(ROWS) >= LEAST_ROWS
