"""Peaks that come every day, and what looking at yesterday makes of them: the same code as on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rebalancer.policy.model import Anticipation
from rebalancer.runtime.own_strategy import REBALANCER
from rebalancer.simulate.forward.fleet import START
from rebalancer.simulate.forward.happenings import What
from rebalancer.simulate.forward.running import Contestant, Run, compare
from rebalancer.simulate.forward.scenario import SimulationScenario
from tests.simulate_forward.kit import policy_of, population, scenario, setting, world

DAY_S = 86400.0
PEAKS: dict[str, Any] = {
    "share": 50,
    "factor": 4,
    "at": {"from": "30m", "to": "2h"},
    "lasts": {"from": "20m", "to": "20m"},
    "jitter": "10s",
}


def daily(**spec: Any) -> SimulationScenario:
    """Workloads of the same size; half of them want four times as much for twenty minutes in the first two hours of every day."""
    workloads = [population(use={"cpu": {"median": 0.5, "sigma": 0.1, "alike": 1}})]
    return scenario(workloads=workloads, averageLoad=40, dailyPeaks=PEAKS, metrics={"interval": "60s", "delay": "30s"}, **spec)


def test_a_daily_peak_comes_every_day_at_its_time_and_on_the_day_before() -> None:
    """For half of the workloads, within the jitter."""
    happenings = [one for one in setting(daily(), hours=48).happenings if one.what is What.SCALE and one.factor > 1]
    by_owner: dict[int, list[float]] = {}
    for one in happenings:
        by_owner.setdefault(one.subject, []).append(one.at)
    assert len(by_owner) == round(len(setting(daily()).ground.owners.refs) / 2)
    for moments in by_owner.values():
        assert [(at - START) // DAY_S for at in moments] == [-1, 0, 1]
        assert [at % DAY_S for at in moments[1:]] == pytest.approx([moments[0] % DAY_S] * 2, abs=60)


def test_yesterday_is_asked_for_only_by_who_looks_at_it() -> None:
    """Of loads that follow the day alone it is the load of now at this time of the day, and another one later."""
    quiet: dict[str, Any] = {"metrics": {"interval": "60s", "delay": "0s"}, "diurnal": {"share": 50, "peak": "6h"}}
    assert world(scenario(**quiet), warm_up_ticks=30).look().state.yesterday is None
    state = world(scenario(policy={"anticipation": {"horizon": "30m"}}, **quiet), warm_up_ticks=24 * 60 + 40).look().state
    before = state.yesterday
    assert before is not None
    assert before.ahead_s[0] <= -540
    assert before.ahead_s[-1] >= 3600
    then = before.load[:, 0, np.searchsorted(before.ahead_s, 0.0)]
    assert then == pytest.approx(state.nodes.history[:, 0, -1], rel=0.05)
    assert (before.load[:, 0, -1] > 1.1 * then).all()


def test_peaks_that_pass_by_themselves_cost_fewer_evictions() -> None:
    """In the same world: two thirds of the evictions at the most, once yesterday is asked."""

    def lived(horizon: str) -> Run:
        made = daily()
        policy = policy_of(made)
        spec = policy.spec.model_copy(update={"anticipation": Anticipation.model_validate({"horizon": horizon})})
        contestant = Contestant("one", REBALANCER, policy.model_copy(update={"spec": spec}))
        return compare(setting(made, hours=3), (contestant,), hours=3)[0]

    moved, waited = (lived(horizon).tally.evictions for horizon in ("0s", "30m"))
    assert moved >= 4
    assert waited <= moved * 2 / 3
