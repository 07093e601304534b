"""The marks of our own judge: those of each node's pool in the controller's policy."""

from __future__ import annotations

import numpy as np

from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import Spec
from rebalancer.steer.judging import OwnJudge, PodAsk
from rebalancer.steer.pool_marks import NO_POOL, PoolFinder, pool_marks
from tests.steer.kit import NOW, own, view

HEAD = "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nmetadata: {name: t}\nspec:\n"
POOLS = """
  risk: {deviations: 1.5}
  pools:
    - name: batch
      nodeSelector: {matchLabels: {kind: batch}}
      thresholds: deviation
      signals: {cpu: {low: 10, target: 5, high: 20}}
    - name: web
      nodeSelector: {matchExpressions: [{key: kind, operator: In, values: [web]}]}
      signals: {cpu: {low: 20, target: 50, high: 70}, memory: {low: 20, target: 60, high: 80}}
"""


def spec(text: str) -> Spec:
    return parse_policy(HEAD + text, origin="test").spec


def loads(*cpu: float) -> np.ndarray:
    return np.array([[each, np.nan, np.nan, np.nan] for each in cpu])


def test_each_node_has_the_marks_of_its_pool() -> None:
    """Deviations are resolved against the mean of the pool's known loads; a node without a pool has none."""
    rules = spec(POOLS)
    finder = PoolFinder(rules.pools)
    pool = np.array([finder.row({"kind": kind}) for kind in ("batch", "batch", "web", "other")])
    assert pool.tolist() == [0, 0, 1, NO_POOL]
    marks = pool_marks(rules, pool=pool, load=loads(0.2, 0.4, 0.9, 0.9))
    assert np.allclose(marks.target[:, 0], [0.35, 0.35, 0.5, np.nan], equal_nan=True)
    assert np.allclose(marks.high[:, 0], [0.5, 0.5, 0.7, np.nan], equal_nan=True)
    assert np.allclose(marks.high[:, 1], [np.nan, np.nan, 0.8, np.nan], equal_nan=True)
    assert marks.deviations == 1.5


def test_marks_are_shares_of_what_pods_may_have_and_loads_of_the_machine() -> None:
    """70 % of nine tenths of a machine are 63 % of it; what is unknown is the whole."""
    rules = spec("  pools: [{name: all, signals: {cpu: {low: 20, target: 50, high: 70}}}]\n")
    share = np.array([[0.9, 1.0, np.nan, np.nan], [np.nan] * 4])
    marks = pool_marks(rules, pool=np.zeros(2, dtype=np.int64), load=loads(0.1, 0.1), allocatable=share)
    assert np.allclose(marks.high[:, 0], [0.63, 0.7])
    rules = spec("  pools: [{name: all, thresholds: deviation, signals: {cpu: {low: 20, target: 10, high: 20}}}]\n")
    marks = pool_marks(rules, pool=np.zeros(2, dtype=np.int64), load=loads(0.45, 0.5), allocatable=share)
    assert np.allclose(marks.high[:, 0], [0.63, 0.7])


def test_the_pool_without_a_selector_takes_the_rest() -> None:
    """As the controller has it."""
    finder = PoolFinder(spec("  pools: [{name: all, signals: {cpu: {low: 20, target: 50, high: 70}}}]\n").pools)
    assert finder.row({}) == finder.row({"kind": "web"}) == 0


def test_of_two_pools_that_claim_a_node_the_first_counts() -> None:
    """The controller refuses such a policy; here nobody waits because of it."""
    rules = spec(POOLS)
    both = PoolFinder((rules.pools[0], rules.pools[0].model_copy(update={"name": "again"})))
    assert both.row({"kind": "batch"}) == 0


GPU = """
  signals: [{name: gpu, unit: devices, nodeQuery: n, podQuery: p, capacity: {value: 8}}]
  pools: [{name: all, signals: {cpu: {low: 20, target: 50, high: 70}, gpu: {low: 20, target: 50, high: 70}}}]
"""


def test_gpus_judge_nobody_until_some_annotation_speaks_of_them() -> None:
    """Then a node that says nothing of its own is unknown."""
    rules = spec(GPU)
    pool = np.zeros(2, dtype=np.int64)
    asking = PodAsk(gpu=True)
    silent = view({"idle": own(cpu=0), "busy": own(cpu=0.5)})
    judge = OwnJudge(pool_marks(rules, pool=pool, load=silent.own.load))
    assert judge.scores(silent, np.array([0, 1]), asking, now=NOW).tolist() == [10, 5]
    told = view({"idle": own(cpu=0), "busy": own(cpu=0.5, gpu=0.1)})
    judge = OwnJudge(pool_marks(rules, pool=pool, load=told.own.load))
    assert judge.scores(told, np.array([0, 1]), asking, now=NOW).tolist() == [5, 5]
    assert judge.scores(told, np.array([0, 1]), PodAsk(), now=NOW).tolist() == [10, 5]
