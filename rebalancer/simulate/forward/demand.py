"""What every slot wants at a moment, which has little to do with what its pods request.

    cpu(slot, t) = base * (1 + wave * sin(2 pi t / period + phase)) * (1 + day * cos(2 pi (t - peak) / 24 h)) * (1 + noise(t)) * bursts(t)

Noise is an autoregressive process per slot (it forgets with the time ``hold``). Other signals stay at their base. Where a trace is replayed
its values take the place of the wave and the day. Nothing here depends on where pods run, so all strategies meet the same demand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

DAY_S = 86400.0
LEAST = 0.02
"""A pod never wants less than this share of its level: idle processes still tick."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Samples of a trace on one signal. ``values`` (samples, series) ratios; NaN where there is none."""

    column: int
    times: FloatArray
    """(samples,) seconds from the start, ascending; after the last one the trace begins again."""
    values: FloatArray
    carried: FloatArray
    """(samples, series): the same with each hole filled by the last value before it: what the pod is made to use there, unseen."""
    series: IntArray
    """(slots,): which series each slot follows; -1 none."""
    scale: FloatArray
    """(slots,): usage = value * scale."""
    most: FloatArray
    """(slots,): and never more than this."""


@dataclass(frozen=True, slots=True)
class DemandPlan:
    base: FloatArray
    """(slots, signals): level; NaN unknown."""
    busy: int
    """Column of the signal that waves, days, noise and bursts move (cpu); -1 when there is none."""
    wave_share: FloatArray
    wave_period_s: FloatArray
    wave_phase: FloatArray
    day_share: FloatArray
    day_peak_s: FloatArray
    """(slots,): seconds after midnight."""
    noise_share: FloatArray
    noise_hold_s: FloatArray
    replays: tuple[Replay, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """``amount`` (slots, signals): what a running pod of the slot wants; 0 where that is unknown. ``seen``: Prometheus would have it."""

    amount: FloatArray
    seen: BoolArray


def steady(base: FloatArray, *, busy: int) -> DemandPlan:
    """A plan in which everything stays at its level."""
    flat = np.zeros(len(base))
    return DemandPlan(base, busy, flat, np.ones(len(base)), flat, flat, flat, flat, np.ones(len(base)))


class Demand:
    """The plan in time; `at` must be asked for ascending moments, since noise has a memory."""

    def __init__(self, plan: DemandPlan, noise: np.random.Generator, *, start: float) -> None:
        self._plan = plan
        self._noise = noise
        self._start = start
        self._known: BoolArray = np.isfinite(plan.base)
        self._base: FloatArray = np.where(self._known, plan.base, 0.0)
        self._bursts = np.ones(len(plan.base))
        self._noisy = bool((plan.noise_share > 0).any())
        self._state = noise.standard_normal(len(plan.base)) if self._noisy else np.zeros(len(plan.base))

    def multiply(self, slots: IntArray, factor: float) -> None:
        """From now on these slots want ``factor`` times as much of the busy signal."""
        self._bursts[slots] *= factor

    def at(self, moment: float, *, step_s: float) -> Wanted:
        """The demand around ``moment`` (unix seconds), ``step_s`` after the last one that was asked for."""
        plan, amount, seen = self._plan, self._base.copy(), self._known
        if plan.busy >= 0:
            amount[:, plan.busy] *= self._swing(moment)
        for replay in plan.replays:
            amount, seen = self._replayed(replay, moment, amount, seen)
        if plan.busy >= 0:
            amount[:, plan.busy] *= self._bursts * self._shaken(step_s)
        return Wanted(amount, seen)

    def _swing(self, moment: float) -> FloatArray:
        plan = self._plan
        wave = plan.wave_share * np.sin(2 * math.pi / plan.wave_period_s * moment + plan.wave_phase)
        day = plan.day_share * np.cos(2 * math.pi / DAY_S * ((moment % DAY_S) - plan.day_peak_s))
        return np.asarray(np.maximum((1 + wave) * (1 + day), LEAST), dtype=np.float64)

    def _shaken(self, step_s: float) -> FloatArray:
        if not self._noisy:
            return np.ones(len(self._state))
        keep = np.exp(-step_s / self._plan.noise_hold_s)
        self._state = keep * self._state + np.sqrt(1 - keep**2) * self._noise.standard_normal(len(self._state))
        return np.asarray(np.maximum(1 + self._plan.noise_share * self._state, LEAST), dtype=np.float64)

    def _replayed(self, replay: Replay, moment: float, amount: FloatArray, seen: BoolArray) -> tuple[FloatArray, BoolArray]:
        span = replay.times[-1] + (replay.times[-1] - replay.times[0]) / max(1, len(replay.times) - 1)
        row = int(np.searchsorted(replay.times, (moment - self._start) % span, side="right")) - 1
        follows = replay.series >= 0
        series = replay.series[follows]
        amount[follows, replay.column] = np.minimum(replay.carried[row, series] * replay.scale[follows], replay.most[follows])
        seen = seen.copy()
        seen[follows, replay.column] = np.isfinite(replay.values[row, series])
        return amount, seen
