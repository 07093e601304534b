"""A scenario's world, frozen into what a controller sees when its windows are full: a `ClusterState`, and the policy of the scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.policy.model import Budgets, RebalancePolicy
from rebalancer.runtime.simulating import open_world
from rebalancer.simulate.forward.running import Contestant, compare
from rebalancer.simulate.forward.strategy import Actions, StrategyKind
from rebalancer.state.cluster import ClusterState

SCENARIO = Path(__file__).resolve().parents[2] / "config" / "scenarios" / "skewed.yaml"
PLENTY = 1_000_000


@dataclass(frozen=True, slots=True)
class Frozen:
    scenario: str
    seed: int
    state: ClusterState
    policy: RebalancePolicy


@dataclass(slots=True)
class _Onlooker:
    """A strategy that keeps the last state that it was shown and does nothing."""

    seen: list[ClusterState] = field(default_factory=list)
    name: str = "onlooker"

    def decide(self, state: ClusterState, memory: object) -> Actions:
        self.seen[:] = [state]
        return Actions()


def freeze_world(path: Path, *, seed: int | None = None, hours: float = 0.0) -> Frozen:
    """The world of a scenario after so many simulated hours in which nobody did anything; at 0 as it begins, with full windows behind it.

    Raises ScenarioError and UsageError.
    """
    opened = open_world(path, policies=(), seed=seed, hours=max(hours, 1.0), traces=None)
    policy, onlooker = opened.policies[0], _Onlooker()
    kind = StrategyKind(onlooker.name, "Looks on.", lambda _: onlooker)
    compare(opened.setting, [Contestant(kind.name, kind, policy)], hours=max(hours, opened.setting.timing.interval_s / 3600))
    return Frozen(opened.setting.name, opened.setting.seed, onlooker.seen[0], policy)


def without_budgets(policy: RebalancePolicy) -> RebalancePolicy:
    """The policy with budgets that bind nobody, so that one plan may do what would take many cycles."""
    budgets = Budgets(
        window=policy.spec.budgets.window, total=PLENTY, per_node=PLENTY, per_namespace=PLENTY, per_workload=PLENTY, per_tenant=PLENTY
    )
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"budgets": budgets})})
