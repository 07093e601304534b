"""Fair shares: worked examples of the literature, and what holds for all trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.tenants.entitlement import TenantTree, dominant_shares, entitlements, water_fill

INF = math.inf


def tree(
    *,
    parent: Sequence[int],
    guaranteed: Sequence[float],
    weight: Sequence[float] | None = None,
    limit: Sequence[float] | None = None,
    floor: Sequence[float] | None = None,
    priority: Sequence[int] | None = None,
    borrow: Sequence[bool] | None = None,
) -> TenantTree:
    """Of one resource."""
    count = len(parent)

    def column(values: Sequence[float] | None, default: float) -> np.ndarray:
        return np.array(values if values is not None else [default] * count, dtype=np.float64)[:, None]

    return TenantTree(
        names=tuple(f"t{row}" for row in range(count)),
        parent=np.array(parent, dtype=np.int64),
        weight=column(weight, 1.0)[:, 0],
        priority=np.array(priority or [0] * count, dtype=np.int64),
        borrow=np.array(borrow or [True] * count, dtype=np.bool_),
        guaranteed=column(guaranteed, 0.0),
        limit=column(limit, INF),
        floor=column(floor, 0.0),
    )


def shares(made: TenantTree, demand: Sequence[float], capacity: float) -> list[float]:
    found = entitlements(made, demand=np.array(demand, dtype=np.float64)[:, None], capacity=np.array([capacity]))
    return [round(value, 9) for value in found[:, 0].tolist()]


def test_drf_of_the_paper() -> None:
    """9 CPUs and 18 GB; A's tasks want <1, 4>, B's <3, 1>: one task at a time to the least dominant share, A runs three, B two."""
    task, capacity = np.array([[1.0, 4.0], [3.0, 1.0]]), np.array([9.0, 18.0])
    count, left, open_ = np.zeros(2), capacity.copy(), {0, 1}
    while open_:
        share = dominant_shares(task * count[:, None], capacity=capacity, weight=np.ones(2))
        row = min(open_, key=lambda row: (share[row], row))
        if (task[row] > left).any():
            open_.remove(row)
            continue
        count[row] += 1
        left = left - task[row]
    assert count.tolist() == [3, 2]


def test_dominant_shares_of_the_paper() -> None:
    """Both hold two thirds: A of the memory, B of the CPUs."""
    held = np.array([[3.0, 12.0], [6.0, 2.0]])
    found = dominant_shares(held, capacity=np.array([9.0, 18.0]), weight=np.ones(2))
    assert found.tolist() == pytest.approx([2 / 3, 2 / 3])


def test_a_dominant_share_is_not_known_where_a_part_is_not() -> None:
    """What there is none of does not count, whatever is held of it."""
    held = np.array([[3.0, np.nan], [6.0, 2.0]])
    assert np.isnan(dominant_shares(held, capacity=np.array([9.0, 18.0]), weight=np.ones(2))).tolist() == [True, False]
    assert dominant_shares(held, capacity=np.array([9.0, 0.0]), weight=np.ones(2)).tolist() == pytest.approx([1 / 3, 2 / 3])
    assert np.isnan(dominant_shares(held[1:], capacity=np.array([9.0, np.nan]), weight=np.ones(1))).all()


def test_deserved_first_then_the_surplus_by_weight() -> None:
    """KAI: quota 2 and 1 of 6 GPUs, both want all; the surplus of 3 is shared 2 to 1 by over-quota weight."""
    made = tree(parent=[-1, -1], guaranteed=[2, 1], weight=[2, 1])
    assert shares(made, [6, 6], 6) == [4, 2]


def test_what_one_does_not_ask_for_is_the_others() -> None:
    """KAI: fair share is min(deserved, requested) first."""
    made = tree(parent=[-1, -1], guaranteed=[4, 2])
    assert shares(made, [1, 9], 6) == [1, 5]


def test_a_higher_priority_is_served_first_of_the_surplus() -> None:
    """KAI: then by priority; guarantees stay."""
    made = tree(parent=[-1, -1, -1], guaranteed=[1, 1, 1], priority=[0, 5, 0])
    assert shares(made, [4, 4, 4], 6) == [1, 4, 1]


def test_a_borrowing_limit_ends_the_borrowing() -> None:
    """Kueue: nominal 3 and a borrowing limit of 1 is a limit of 4, though 9 lie idle in the cohort."""
    made = tree(parent=[-1, -1], guaranteed=[3, 9], limit=[4, INF])
    assert shares(made, [10, 0], 12) == [4, 0]


def test_what_is_not_lent_is_nobodys() -> None:
    """Kueue: nominal 9 with a lending limit of 5: four stay where they are."""
    made = tree(parent=[-1, -1], guaranteed=[3, 9], floor=[0, 4])
    assert shares(made, [12, 0], 12) == [8, 0]


def test_a_tenant_that_may_not_borrow_keeps_to_its_guarantee() -> None:
    """Whatever lies idle."""
    made = tree(parent=[-1, -1], guaranteed=[2, 2], borrow=[False, True])
    assert shares(made, [8, 8], 8) == [2, 6]


def test_guarantees_that_do_not_fit_shrink_alike() -> None:
    """In proportion to what is guaranteed."""
    made = tree(parent=[-1, -1], guaranteed=[6, 3])
    assert shares(made, [9, 9], 6) == [4, 2]


def test_a_department_is_divided_among_its_teams() -> None:
    """What it is entitled to, by their guarantees and weights."""
    made = tree(parent=[-1, 0, 0, -1], guaranteed=[6, 2, 0, 2], weight=[1, 1, 3, 1])
    assert shares(made, [0, 9, 9, 9], 12) == [8, 3.5, 4.5, 4]


def test_what_is_not_known_leads_to_no_share() -> None:
    """A demand that nobody knows is not none."""
    made = tree(parent=[-1, -1], guaranteed=[2, 2])
    assert np.isnan(entitlements(made, demand=np.array([[math.nan], [2.0]]), capacity=np.array([8.0]))).all()
    assert np.isnan(entitlements(made, demand=np.array([[1.0], [2.0]]), capacity=np.array([math.nan]))).all()


amounts = st.integers(0, 20).map(float)


@st.composite
def trees(draw: st.DrawFn) -> tuple[TenantTree, list[float], float]:
    """Up to two levels, with demands of leaves and a capacity that holds the guarantees of the first level."""
    tops = draw(st.integers(1, 4))
    parent = [-1] * tops + draw(st.lists(st.integers(0, tops - 1), max_size=6))
    count = len(parent)
    guaranteed = draw(st.lists(amounts, min_size=count, max_size=count))
    for row in range(tops):
        below = [child for child, above in enumerate(parent) if above == row]
        if below:
            guaranteed[row] = max(guaranteed[row], sum(guaranteed[child] for child in below))
    made = tree(
        parent=parent,
        guaranteed=guaranteed,
        weight=draw(st.lists(st.integers(1, 5).map(float), min_size=count, max_size=count)),
        limit=[value + draw(amounts) if draw(st.booleans()) else INF for value in guaranteed],
        floor=[draw(st.integers(0, int(value))) for value in guaranteed],
        priority=draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        borrow=draw(st.lists(st.booleans(), min_size=count, max_size=count)),
    )
    demand = draw(st.lists(amounts, min_size=count, max_size=count))
    return made, demand, sum(guaranteed[:tops]) + draw(amounts)


@given(trees())
def test_shares_are_within_the_capacity_the_limits_and_what_is_asked_for(case: tuple[TenantTree, list[float], float]) -> None:
    """On every level."""
    made, demand, capacity = case
    found = entitlements(made, demand=np.array(demand)[:, None], capacity=np.array([capacity]))[:, 0]
    assert (found >= -1e-9).all()
    assert (found <= made.limit[:, 0] + 1e-6).all()
    leaves = np.flatnonzero(made.leaf)
    assert (found[leaves] <= np.array(demand)[leaves] + 1e-6).all()
    assert found[made.parent < 0].sum() <= capacity + 1e-6
    for row in np.flatnonzero(~made.leaf).tolist():
        assert found[made.parent == row].sum() <= found[row] + 1e-6


@given(trees())
def test_a_guarantee_that_is_asked_for_is_given(case: tuple[TenantTree, list[float], float]) -> None:
    """Where guarantees fit into those above, and the parent's own borrowing does not matter."""
    made, demand, capacity = case
    found = entitlements(made, demand=np.array(demand)[:, None], capacity=np.array([capacity]))[:, 0]
    for row in np.flatnonzero(made.leaf).tolist():
        above = int(made.parent[row])
        if above < 0 or made.limit[above, 0] == INF:
            assert found[row] >= min(demand[row], float(made.guaranteed[row, 0]), float(made.limit[row, 0])) - 1e-6


@given(trees(), st.integers(0, 9))
def test_more_weight_never_means_less(case: tuple[TenantTree, list[float], float], which: int) -> None:
    """All else alike."""
    made, demand, capacity = case
    row = which % len(made.names)
    heavier = made.weight.copy()
    heavier[row] *= 2
    asked = np.array(demand)[:, None]
    before = entitlements(made, demand=asked, capacity=np.array([capacity]))[row, 0]
    after = entitlements(replace(made, weight=heavier), demand=asked, capacity=np.array([capacity]))[row, 0]
    assert after >= before - 1e-6


@given(st.lists(st.tuples(amounts, st.integers(1, 5).map(float), amounts), min_size=1, max_size=8), amounts, st.randoms())
def test_the_order_of_tenants_changes_nothing(cases: list[tuple[float, float, float]], capacity: float, random: object) -> None:
    """To the last bit."""
    shuffled = list(enumerate(cases))
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    def found(rows: list[tuple[float, float, float]]) -> list[float]:
        made = tree(parent=[-1] * len(rows), guaranteed=[row[0] for row in rows], weight=[row[1] for row in rows])
        asked = np.array([[row[2]] for row in rows])
        result: list[float] = entitlements(made, demand=asked, capacity=np.array([capacity]))[:, 0].tolist()
        return result

    one, other = found(cases), found([case for _, case in shuffled])
    assert [one[row] for row, _ in shuffled] == other


@given(st.integers(1, 6), amounts, st.integers(1, 4).map(float), amounts, amounts)
def test_identical_tenants_get_identical_shares(count: int, guaranteed: float, weight: float, demand: float, capacity: float) -> None:
    """And with enough demand they share everything."""
    made = tree(parent=[-1] * count, guaranteed=[guaranteed] * count, weight=[weight] * count)
    found = shares(made, [demand] * count, capacity)
    assert len(set(found)) == 1
    if demand * count >= capacity:
        assert sum(found) == pytest.approx(capacity, abs=1e-6)


@given(st.lists(st.tuples(amounts, st.integers(1, 5).map(float)), min_size=1, max_size=8), st.floats(0, 100))
def test_water_is_level(cases: list[tuple[float, float]], amount: float) -> None:
    """Whoever is not full stands at one level, and nobody full stands above it."""
    headroom, weight = np.array([case[0] for case in cases]), np.array([case[1] for case in cases])
    found = water_fill(amount, headroom=headroom, weight=weight)
    assert found.sum() == pytest.approx(min(amount, headroom.sum()), abs=1e-6)
    open_ = found < headroom - 1e-9
    if open_.any():
        level = (found / weight)[open_]
        assert level.max() - level.min() < 1e-6
        assert (found / weight <= level.max() + 1e-6).all()
