"""Windows that were not measured from end to end, and what may be said of them.

``rate`` spreads what a counter counted over its whole window. Where samples cover only a part, the result is too low by the rest, and a
hot node looks cool: at the end of a series that has fallen silent, and at the beginning of one that is new. Neither error is visible in
the answer.

A silent node keeps the value of its last window that was measured up to the end, which is what trusting a sample for ``maxAge`` means. A
node whose series began less than a window ago is unknown until a window has passed.
"""

from __future__ import annotations

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray


def hold_through_silence(line: FloatArray, *, times: FloatArray, last_sample_at: float, step_s: float) -> FloatArray:
    """``line`` (points,) with the points that come more than ``step_s`` after the last sample set to the last point before it.

    NaN where no such point is known. Unchanged when the time of the last sample is NaN.
    """
    silent = times > last_sample_at + step_s
    if not silent.any():
        return line
    measured = np.flatnonzero(times <= last_sample_at)
    return np.where(silent, line[measured[-1]] if len(measured) else np.nan, line)


def too_young(present: BoolArray, *, times: FloatArray, window_s: float, step_s: float) -> BoolArray:
    """(points,): a series that began in sight, or began again, has not yet been measured for a whole window at this point."""
    begins = np.flatnonzero(present[1:] & ~present[:-1]) + 1
    young = np.zeros_like(present)
    for begin in begins.tolist():
        young |= (times >= times[begin]) & (times < times[begin] + window_s - step_s)
    return young & present
