"""The Dynamic-Scheduler's filter, score and hot value, for all nodes at once.

    refused = usage > limit, for some rule of ``predicate``
    score   = int(sum_i (1 - u_i) * w_i * 100 / sum_i w_i) - int(hot * 10), clamped to 0..100
    hot     = sum over the rules of ``hotValue`` of floor(bindings in its time range / its count)

A missing or stale value refuses nobody. In the score it adds no points while its weight stays, so that such a node fails low; `Missing`
offers to leave its weight out instead. The product's text counts bindings differently from its code, `HotReading` chooses. Sums are taken
in the order of the policy, as the code of crane-scheduler does, for the truncated results to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.steer.crane_policy import CranePolicy, HotRule
from rebalancer.steer.load_annotations import HOT_FRESH_S, LoadColumns

MAX_SCORE = 100
HOT_POINTS = 10
"""Points that a hot value of 1 costs; one point on the scale of an extender."""
REMEMBERED_BINDINGS = 1024


class HotReading(Enum):
    """How bindings make a node hot."""

    CODE = "code"
    """1 for each full ``count`` of bindings: two in a minute are 1, four are 2."""
    PRODUCT_TEXT = "product-text"
    """1 once there are more than ``count``: three in a minute are 1, and so are thirty."""


class Missing(Enum):
    """What the score makes of a series that a node does not have."""

    LOW = "low"
    """No points, and its weight stays: the node fails low, as in crane-scheduler."""
    NEUTRAL = "neutral"
    """Its weight is left out; a node without any series scores half."""


def usage_in_force(policy: CranePolicy, loads: LoadColumns, *, now: float) -> FloatArray:
    """(nodes, names): the values that are fresh by the policy; NaN for the others. Times in the future are fresh, as in crane-scheduler."""
    found = np.full((len(loads.names), len(loads.usage)), np.nan)
    for column, name in enumerate(loads.names):
        lasting = policy.fresh_for_s(name)
        if lasting > 0:
            with np.errstate(invalid="ignore"):
                fresh = now < loads.written_at[:, column] + lasting
            np.copyto(found[column], loads.usage[:, column], where=fresh)
    return found.T


def hot_in_force(loads: LoadColumns, *, now: float) -> FloatArray:
    """(nodes,): hot values that are fresh; 0 for the others, as the contract says of them."""
    with np.errstate(invalid="ignore"):
        fresh = (now < loads.hot_written_at + HOT_FRESH_S) & np.isfinite(loads.hot)
    return np.where(fresh, loads.hot, 0.0)


def over_limit(policy: CranePolicy, usage: FloatArray, names: Sequence[str]) -> BoolArray:
    """(nodes, rules of ``predicate``): over the limit of the rule. ``usage`` (nodes, names) with NaN unknown, which is never over."""
    over = np.zeros((len(usage), len(policy.spec.predicate)), dtype=np.bool_)
    for column, rule in enumerate(policy.spec.predicate):
        if rule.limit > 0 and rule.name in names:
            with np.errstate(invalid="ignore"):
                over[:, column] = usage[:, names.index(rule.name)] > rule.limit
    return over


def refusal(series: str, node: str) -> str:
    """What kube-scheduler tells whoever asks why a pod is not there; the words of crane-scheduler."""
    return f"Load[{series}] of node[{node}] is too high"


def dynamic_scores(
    policy: CranePolicy, usage: FloatArray, names: Sequence[str], *, hot: FloatArray, missing: Missing = Missing.LOW
) -> IntArray:
    """(nodes,) int64 in 0..100. ``usage`` (nodes, names), NaN unknown; ``hot`` (nodes,), at least 0."""
    points, weights = np.zeros(len(usage)), np.zeros(len(usage))
    for rule in policy.spec.priority:
        column = usage[:, names.index(rule.name)] if rule.name in names else np.full(len(usage), np.nan)
        known = ~np.isnan(column)
        # A load beyond any machine must stay a number: infinite points would be no score at all.
        points += np.where(known, (1.0 - np.minimum(column, 1e9)) * rule.weight * MAX_SCORE, 0.0)
        weights += np.where(known, rule.weight, 0.0) if missing is Missing.NEUTRAL else rule.weight
    raw = np.full(len(usage), MAX_SCORE / 2 if missing is Missing.NEUTRAL and policy.spec.priority else 0.0)
    np.divide(points, weights, out=raw, where=weights > 0)
    penalty = np.trunc(np.clip(hot * HOT_POINTS, 0.0, 1e9))
    return np.asarray(np.clip(np.trunc(raw) - penalty, 0, MAX_SCORE), dtype=np.int64)


def binding_counts(
    rules: Sequence[HotRule], *, node: IntArray, bound_at: FloatArray, nodes: int, now: float, remembered: int = REMEMBERED_BINDINGS
) -> IntArray:
    """(nodes, rules): bindings within the time range of each rule. ``node`` and ``bound_at`` (bindings,): a row, Unix seconds.

    Only the latest ``remembered`` bindings of the cluster are looked at, as crane-scheduler keeps no more. A binding counts when
    it is younger than the time range, in whole seconds.
    """
    counts = np.zeros((nodes, len(rules)), dtype=np.int64)
    latest = np.argsort(bound_at, kind="stable")[-remembered:] if len(bound_at) > remembered else np.arange(len(bound_at))
    node, at = node[latest], np.floor(bound_at[latest])
    here = (node >= 0) & (node < nodes)
    for column, rule in enumerate(rules):
        young = here & (at > np.floor(now) - np.floor(rule.time_range))
        counts[:, column] = np.bincount(node[young], minlength=nodes)
    return counts


def hot_values(rules: Sequence[HotRule], counts: IntArray, *, reading: HotReading = HotReading.CODE) -> IntArray:
    """(nodes,) int64 from `binding_counts`."""
    each = np.array([rule.count for rule in rules], dtype=np.int64)
    if not len(each):
        return np.zeros(len(counts), dtype=np.int64)
    hot = counts // each if reading is HotReading.CODE else (counts > each).astype(np.int64)
    return np.asarray(hot.sum(axis=1), dtype=np.int64)
