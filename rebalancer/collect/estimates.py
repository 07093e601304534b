"""What a pod uses that is too young to have been measured: as much as its siblings, else as much as it asked for.

Metrics are up to a minute late and a mean over five minutes rises slowly, so a node that ten pods were just bound to still looks empty. The
estimate closes that gap and never hides a measurement: where a young pod's sample is already higher, the sample counts. A pod that should
have been measured by now and was not stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.tables import Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAges:
    """``active`` (pods,): bound and not finished. ``age_s`` (pods,): since the pod started, or since it was created when it has not."""

    active: BoolArray
    age_s: FloatArray
    window_s: float
    late_s: float
    """How long after the window a pod may still be without a sample."""

    @property
    def young(self) -> BoolArray:
        return self.active & (self.age_s < self.window_s)

    @property
    def settled(self) -> BoolArray:
        return self.active & (self.age_s >= self.window_s)

    @property
    def awaited(self) -> BoolArray:
        """(pods,): a missing sample says nothing yet."""
        return self.active & (self.age_s < self.window_s + self.late_s)


def with_estimates(
    measured: FloatArray, *, ages: PodAges, workload: IntArray, signals: Sequence[Signal], asked: Sequence[FloatArray | None]
) -> tuple[FloatArray, BoolArray]:
    """``usage`` and ``estimated`` (pods, signals). ``asked`` (signals,): what each pod requests of a signal's resource, NaN or None
    where there is no such thing."""
    usage = measured.copy()
    estimated = np.zeros(measured.shape, dtype=np.bool_)
    for column in range(len(signals)):
        sample = measured[:, column]
        missing = np.isnan(sample)
        wanted = ages.young | (ages.awaited & missing)
        if not wanted.any():
            continue
        estimate = _of_siblings(sample, ages.settled & ~missing, workload)
        request = asked[column]
        if request is not None:
            estimate = np.where(np.isnan(estimate), request, estimate)
        used = wanted & ~np.isnan(estimate) & (missing | (estimate > sample))
        usage[used, column] = estimate[used]
        estimated[used, column] = True
    return usage, estimated


def _of_siblings(sample: FloatArray, settled: BoolArray, workload: IntArray) -> FloatArray:
    """(pods,): mean usage of the settled, measured pods of the same workload; NaN without a workload or without such pods."""
    result = np.full(len(sample), np.nan)
    count = int(workload.max(initial=-1)) + 1
    if count == 0:
        return result
    members = settled & (workload >= 0)
    total = np.bincount(workload[members], weights=sample[members], minlength=count)
    number = np.bincount(workload[members], minlength=count)
    mean = np.full(count, np.nan)
    np.divide(total, number, out=mean, where=number > 0)
    owned = workload >= 0
    result[owned] = mean[workload[owned]]
    return result
