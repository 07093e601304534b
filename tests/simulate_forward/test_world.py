"""The world between two looks: what is used is what is seen, evictions and their replacements, budgets, outages, rollouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rebalancer.plan.grades import carried
from rebalancer.simulate.forward.happenings import Happening, What, outage
from rebalancer.simulate.forward.running import lens_of
from rebalancer.simulate.forward.strategy import Actions
from rebalancer.simulate.forward.tally import Tally
from rebalancer.simulate.forward.world import ForwardWorld
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_load
from rebalancer.state.tables import Phase
from tests.simulate_forward.kit import population, scenario, setting, world


def some_pod(state: ClusterState, *, node: int = 0) -> int:
    return int(np.flatnonzero(state.pods.node == node)[0])


def evict(living: ForwardWorld, *pods: int) -> tuple[int, ...]:
    return living.act(living.look(), Actions(evictions=pods))


def pass_time(living: ForwardWorld, seconds: float) -> None:
    for _ in range(round(seconds / 15)):
        living.tick()


# ---- what is used is what is seen -----------------------------------------------------------------------------------------


def test_nodes_are_seen_to_use_what_their_pods_and_they_themselves_use() -> None:
    """Steady and not throttled: the window mean of a node is the sum of its pods' and its own, to the last digit."""
    living = world(scenario())
    state = living.look().state
    for column, own in ((0, 0.2), (1, 2.0 * 2**30)):
        by_pods = np.bincount(state.pods.node, weights=state.pods.measured[:, column], minlength=8)
        np.testing.assert_allclose(state.nodes.usage[:, column], by_pods + own)
    assert (state.nodes.departed == 0).all()
    np.testing.assert_allclose(node_load(state), living.loads)


def test_no_node_uses_more_than_it_has_and_its_pods_share_what_there_is() -> None:
    """Demand of twice the machine shows as a load of 1, each pod throttled by the same share; the true load is above 1."""
    living = world(scenario(workloads=[population(pods=100, use={"cpu": {"median": 2.4}})]))
    state = living.look().state
    assert state.nodes.usage[:, 0].max() <= 16 + 1e-9
    assert living.loads[:, 0].max() > 1.5
    by_pods = np.bincount(state.pods.node, weights=state.pods.measured[:, 0], minlength=8)
    np.testing.assert_allclose(state.nodes.usage[:, 0], by_pods + 0.2)


def test_m2_the_mean_lags_behind_an_eviction_and_the_ledger_does_not() -> None:
    """Minutes after a pod has left its node, the mean still holds it; what is booked as departed takes it out at once."""
    living = world(scenario(policy={"metrics": {"window": "5m"}}))
    view = living.look()
    pod = some_pod(view.state)
    before, gone = view.state.nodes.usage[0, 0], view.state.pods.measured[pod, 0]
    evict(living, pod)
    pass_time(living, 60)
    state = living.look().state
    assert state.nodes.usage[0, 0] > before - 0.2 * gone
    assert state.nodes.departed[0, 0] > 0.8 * gone
    assert node_load(state)[0, 0] == pytest.approx(living.loads[0, 0], abs=0.02 * gone)
    pass_time(living, 360)
    state = living.look().state
    assert state.nodes.departed[0, 0] == 0
    assert state.nodes.usage[0, 0] / 16 == pytest.approx(living.loads[0, 0])


def test_a_replacement_too_young_to_be_measured_is_estimated_by_its_siblings() -> None:
    """The rule of production: a minute after it came, its usage is that of its siblings and marked as an estimate."""
    living = world(scenario())
    view = living.look()
    evict(living, some_pod(view.state))
    pass_time(living, 60)
    state = living.look().state
    (young,) = np.flatnonzero(~np.isin(np.array(state.pods.uids), np.array(view.state.pods.uids))).tolist()
    assert state.pods.estimated[young, 0]
    assert state.pods.usage[young, 0] == pytest.approx(0.5)


def test_samples_older_than_the_policy_allows_are_unknown() -> None:
    """A delay above maxAge leaves every node without a load, and says so."""
    living = world(scenario(metrics={"delay": "4m"}, policy={"metrics": {"maxAge": "3m"}}))
    state = living.look().state
    assert np.isnan(state.nodes.usage).all()
    assert "last sample is 4m old" in state.nodes.unknown[0, 0]


# ---- evictions ------------------------------------------------------------------------------------------------------------


def test_a_deployment_replaces_an_evicted_pod_at_once() -> None:
    """The replacement is there beside the one that is leaving, bound and not Ready, and takes over its requests."""
    living = world(scenario())
    view = living.look()
    pod = some_pod(view.state)
    assert evict(living, pod) == (pod,)
    state = living.look().state
    assert len(state.pods.uids) == 81
    assert state.pods.terminating[state.pods.uids.index(view.state.pods.uids[pod])]
    (fresh,) = np.flatnonzero(state.pods.created_at == living.now).tolist()
    assert (state.pods.node[fresh] >= 0, state.pods.ready[fresh], state.pods.phase[fresh]) == (True, False, Phase.PENDING)
    assert state.workload_of(fresh) == view.state.workload_of(pod)
    pass_time(living, 60)
    state = living.look().state
    assert len(state.pods.uids) == 80
    assert state.pods.ready.all()


def test_a_stateful_set_waits_until_the_pod_is_gone_and_keeps_its_name() -> None:
    """One pod less in between, then the same name again."""
    living = world(scenario(workloads=[population(kind="StatefulSet", shutdown="20s")]))
    view = living.look()
    pod = some_pod(view.state)
    evict(living, pod)
    assert len(living.look().state.pods.uids) == 80
    pass_time(living, 90)
    state = living.look().state
    assert (len(state.pods.uids), state.pods.ready.all()) == (80, True)
    assert sorted(state.pods.names) == sorted(view.state.pods.names)
    assert view.state.pods.uids[pod] not in state.pods.uids


def test_a_disruption_budget_refuses_the_second_pod_until_the_first_is_replaced() -> None:
    """The API server's answer of the moment, and again when the replacement is Ready."""
    living = world(scenario(workloads=[population(replicas={"from": 4, "to": 4}, disruptionBudget={"maxUnavailable": 1})]))
    state = living.look().state
    first, second = np.flatnonzero(state.pods.workload == 0)[:2].tolist()
    assert evict(living, first, second) == (first,)
    state = living.look().state
    assert state.budgets[0].allowed == 0
    assert (state.budgets[0].current_healthy, state.budgets[0].desired_healthy) == (3, 3)
    pass_time(living, 60)
    state = living.look().state
    assert state.budgets[0].allowed == 1
    assert len(evict(living, int(np.flatnonzero(state.pods.workload == 0)[0]))) == 1


def test_a_pod_that_is_leaving_already_is_not_evicted_twice() -> None:
    """Nor counted."""
    living = world(scenario())
    pod = some_pod(living.look().state)
    assert evict(living, pod, pod) == (pod,)


def test_the_scheduler_keeps_away_from_soft_taints() -> None:
    """With every node but one tainted, the replacement goes to that one, though it is the fullest by request."""
    living = world(scenario())
    view = living.look()
    taints = np.ones(8, dtype=bool)
    taints[5] = False
    living.act(view, Actions(evictions=(some_pod(view.state),), soft_taints=taints))
    state = living.look().state
    (fresh,) = np.flatnonzero(state.pods.created_at == living.now).tolist()
    assert state.pods.node[fresh] == 5
    assert [any(taint.key == "rebalancer.dev/hot" for taint in each) for each in state.nodes.taints] == taints.tolist()
    living.act(living.look(), Actions(soft_taints=np.zeros(8, dtype=bool)))
    assert not any(living.look().state.nodes.taints)


def test_nodes_with_both_of_our_taints_are_the_last_resort() -> None:
    """A pod that finds no node without them goes to the one that carries one; the state shows which node carries which."""
    living = world(scenario())
    view = living.look()
    taints = np.ones((8, 2), dtype=bool)
    taints[5] = (False, True)
    living.act(view, Actions(evictions=(some_pod(view.state),), soft_taints=taints))
    state = living.look().state
    (fresh,) = np.flatnonzero(state.pods.created_at == living.now).tolist()
    assert state.pods.node[fresh] == 5
    assert carried(state.nodes.taints).tolist() == taints.tolist()


# ---- what comes from outside ----------------------------------------------------------------------------------------------


def with_happenings(*happenings: Happening, **spec: object) -> ForwardWorld:
    made = scenario(**spec)  # type: ignore[arg-type]
    ground = setting(made)
    start = ground.ground.start
    moved = tuple(sorted((replace(one, at=start + one.at) for one in happenings), key=lambda one: one.at))
    tally = Tally(ground.high, ground.ground.nodes.capacity, start, 86400)
    policy = made.spec.policy
    return ForwardWorld(replace(ground, happenings=moved), metrics=policy.metrics, lens=lens_of(policy), warm_up_ticks=80, tally=tally)


def test_a_node_that_is_down_is_unknown_and_its_pods_are_replaced_after_what_they_tolerate() -> None:
    """Not Ready and without a load at once; five minutes and forty seconds later its pods are terminating, and others take their place."""
    living = with_happenings(*outage(2, at=60, lasts_s=1200))
    pass_time(living, 90)
    state = living.look().state
    here = state.pods.node == 2
    assert not state.nodes.ready[2]
    assert not state.pods.ready[here].any()
    assert np.isnan(living.loads[2]).all()
    pass_time(living, 400)
    state = living.look().state
    assert np.isnan(state.nodes.usage[2]).all()
    assert state.pods.terminating[state.pods.node == 2].all()
    assert (state.pods.ready & ~state.pods.terminating).sum() == 80
    pass_time(living, 900)
    state = living.look().state
    assert state.nodes.ready[2]
    assert (state.pods.node == 2).sum() == 0
    assert len(state.pods.uids) == 80


def test_a_short_outage_moves_nobody() -> None:
    """Two minutes are tolerated; the pods are Ready again when the node is."""
    living = with_happenings(*outage(2, at=60, lasts_s=120))
    before = living.look().state.pods.uids
    pass_time(living, 300)
    state = living.look().state
    assert state.pods.uids == before
    assert state.pods.ready.all()


def test_a_rollout_renews_every_pod_one_by_one_and_says_so() -> None:
    """At no time fewer Ready pods than wanted; afterwards other pods of another controller."""
    living = with_happenings(Happening(60, What.ROLL_OUT, 0))
    old = {uid for uid, owner in zip(living.look().state.pods.uids, living.look().state.pods.workload, strict=True) if owner == 0}
    words = set()
    for _ in range(60):
        living.tick()
        state = living.look().state
        mine = state.pods.workload == 0
        assert (state.pods.ready & ~state.pods.terminating)[mine].sum() >= len(old)
        words.add(state.workloads.rollout[0])
    assert words == {"", "a new revision is being rolled out"}
    assert not old & set(state.pods.uids)
    assert len(np.unique(state.pods.controller[state.pods.workload == 0])) == 1
    assert len(state.pods.uids) == 80


def test_workloads_arrive_and_leave() -> None:
    """More pods for a while, placed and Ready; then none of them is left."""
    living = world(scenario(arrivals={"perDay": 48, "lasts": {"from": "5m", "to": "10m"}}, hours=1))
    counts = set()
    for _ in range(240):
        living.tick()
        counts.add(len(living.look().state.pods.uids))
    pass_time(living, 900)
    assert max(counts) > 80
    assert len(living.look().state.pods.uids) == 80


def test_a_burst_multiplies_the_load_of_one_workload_and_ends() -> None:
    """Three times, for as long as it lasts."""
    burst = (Happening(60, What.SCALE, 0, 3.0), Happening(360, What.SCALE, 0, 1 / 3))
    living = with_happenings(*burst)
    calm = living.loads[:, 0].sum()
    replicas = int((living.look().state.pods.workload == 0).sum())
    pass_time(living, 120)
    assert living.loads[:, 0].sum() - calm == pytest.approx(2 * 0.5 * replicas / 16)
    pass_time(living, 600)
    assert living.loads[:, 0].sum() == pytest.approx(calm)
