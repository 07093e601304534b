"""The mixed integer program: one binary a pod and place, 1 when the pod goes there. Sparse rows, and HiGHS to solve them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from enum import Enum

import highspy
import numpy as np

from rebalancer.state.arrays import FloatArray, IntArray

ROUNDING = 1e-6
"""How far HiGHS lets a row or an integer be off; shares are ratios of a node."""


class Outcome(Enum):
    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped at the time limit"


@dataclass(frozen=True, slots=True)
class Answer:
    """``chosen``: columns that are 1; empty with ``found`` False. ``bound``: no solution costs less; inf when infeasible."""

    outcome: Outcome
    found: bool
    chosen: IntArray
    bound: float
    seconds: float


@dataclass(slots=True)
class Rows:
    """Sparse rows while they are collected. ``columns``: how many there are."""

    columns: int
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    row: list[IntArray] = field(default_factory=list)
    column: list[IntArray] = field(default_factory=list)
    value: list[FloatArray] = field(default_factory=list)

    def add(self, column: IntArray, value: FloatArray | float, *, lower: float = -math.inf, upper: float = math.inf) -> None:
        """``lower <= sum of value * column <= upper``; columns may come twice."""
        self.row.append(np.full(len(column), len(self.lower), dtype=np.int64))
        self.column.append(column)
        self.value.append(np.broadcast_to(np.asarray(value, dtype=np.float64), column.shape))
        self.lower.append(lower)
        self.upper.append(upper)

    def compressed(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Row starts, columns, values; entries of one row and column summed."""
        rows, columns, values = (np.concatenate(part) if part else np.zeros(0) for part in (self.row, self.column, self.value))
        key = rows.astype(np.int64) * max(1, self.columns) + columns.astype(np.int64)
        unique, inverse = np.unique(key, return_inverse=True)
        summed = np.bincount(inverse, weights=values, minlength=len(unique)).astype(np.float64)
        starts = np.searchsorted(unique // max(1, self.columns), np.arange(len(self.lower) + 1))
        return starts.astype(np.int64), unique % max(1, self.columns), summed


def solve(rows: Rows, *, cost: FloatArray, seconds: float, seed: int) -> Answer:
    """Minimise ``cost`` (columns,), whole numbers, over the chosen columns, within the seconds, on one thread. All columns are binary.

    Raises RuntimeError when HiGHS refuses the program, which is a mistake here and never the cluster's.
    """
    started = time.perf_counter()
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", seed),
        ("time_limit", max(0.0, seconds)),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1 - 1e-4),  # costs are whole, so a bound less than one below is a proof
        ("mip_feasibility_tolerance", ROUNDING),
    ):
        _demand(highs.setOptionValue(name, value), f"option {name}")
    _demand(highs.passModel(_linear_program(rows, cost)), "the program")
    _demand(highs.run(), "the run")
    status, info, spent = highs.getModelStatus(), highs.getInfo(), time.perf_counter() - started
    nothing = np.zeros(0, dtype=np.int64)
    if status == highspy.HighsModelStatus.kInfeasible:
        return Answer(Outcome.INFEASIBLE, found=False, chosen=nothing, bound=math.inf, seconds=spent)
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kModelEmpty):
        raise RuntimeError(f"HiGHS ended with {highs.modelStatusToString(status)}")
    optimal = status != highspy.HighsModelStatus.kTimeLimit
    found = optimal or info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(highs.getSolution().col_value) if found and rows.columns else np.zeros(0)
    chosen = np.flatnonzero(values > 0.5).astype(np.int64)
    bound = float(cost[chosen].sum()) if optimal else max(0.0, info.mip_dual_bound)
    return Answer(Outcome.OPTIMAL if optimal else Outcome.STOPPED, found=found, chosen=chosen, bound=bound, seconds=spent)


def _linear_program(rows: Rows, cost: FloatArray) -> highspy.HighsLp:
    starts, columns, values = rows.compressed()
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = rows.columns, len(rows.lower)
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = np.zeros(rows.columns), np.ones(rows.columns)
    program.row_lower_, program.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = starts, columns, values
    program.integrality_ = [highspy.HighsVarType.kInteger] * rows.columns
    return program


def _demand(status: highspy.HighsStatus, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise RuntimeError(f"HiGHS does not take {what}")
