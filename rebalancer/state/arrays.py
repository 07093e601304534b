"""The few array types that the tables are made of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]


def by_column(shape: tuple[int, ...], *, fill: float = float("nan")) -> FloatArray:
    """A matrix whose columns each lie in one piece, for what is worked on column by column; all of it is ``fill``."""
    return np.full(shape, fill, order="F")


def frozen(array: NDArray[np.generic]) -> None:
    """Make an array read-only, so that a decision can never change the state it was made from."""
    array.setflags(write=False)
