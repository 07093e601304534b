"""How much the pods swing: standard deviations as Prometheus remembers them, and what is taken for pods that it does not know long enough.

A pod that runs for five minutes has a standard deviation of nearly nothing over an hour, which says nothing of the hour to come. So only
pods that were there for half of the time are believed, and the others are taken to swing like their workload, else like the median pod, in
proportion to what they use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.collect.pod_samples import joined
from rebalancer.collect.samples import PodKey, SignalSamples
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

LONG_ENOUGH = 0.5
"""Of the lookback: how old a pod must be for its own deviation to be believed."""


def deviation_columns(
    pods: Mapping[PodKey, int], node: IntArray, *, nodes: Mapping[str, int], signals: Sequence[SignalSamples]
) -> FloatArray:
    """(pods, signals): what Prometheus says; NaN unknown. Arguments as those of `usage_columns.pod_columns`."""
    found = np.full((len(node), len(signals)), np.nan)
    for column, signal in enumerate(signals):
        told = joined(signal.pod_deviation, pods=pods, nodes=nodes)
        here = (told.row >= 0) & (told.nodeless | ((told.where >= 0) & (np.append(node, -1)[told.row] == told.where)))
        found[told.row[here], column] = told.value[here]
    return found


def with_typical(deviation: FloatArray, *, usage: FloatArray, workload: IntArray, long_enough: BoolArray) -> FloatArray:
    """(pods, signals): ``deviation`` where it can be believed, else in proportion to ``usage``; NaN where nothing is known to go by.

    ``long_enough`` (pods,): the pod was there for most of the time that the deviation is taken over.
    """
    filled = np.full(deviation.shape, np.nan)
    for column in range(deviation.shape[1]):
        used, own = usage[:, column], deviation[:, column]
        believed = long_enough & ~np.isnan(own) & (used > 0)
        if not believed.any():
            continue
        share = np.full(len(used), np.nan)
        share[believed] = own[believed] / used[believed]
        typical = _of_workloads(share, believed, workload)
        typical[np.isnan(typical)] = float(np.median(share[believed]))
        filled[:, column] = np.where(believed, own, typical * used)
    return filled


def _of_workloads(share: FloatArray, believed: BoolArray, workload: IntArray) -> FloatArray:
    """(pods,): mean share of the believed pods of the same workload, NaN where there are none."""
    owned, count = workload >= 0, int(workload.max(initial=-1)) + 1
    members = believed & owned
    total = np.bincount(workload[members], weights=share[members], minlength=count)
    number = np.bincount(workload[members], minlength=count)
    mean = np.full(count, np.nan)
    np.divide(total, number, out=mean, where=number > 0)
    result = np.full(len(share), np.nan)
    result[owned] = mean[workload[owned]]
    return result
