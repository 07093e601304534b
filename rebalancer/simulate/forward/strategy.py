"""What a strategy is: it looks at a state and says which pods to evict and which nodes repel new ones. Nothing else can it do.

To bring one of your own, write a class with ``name`` and ``decide`` and wrap it in a `StrategyKind`; hand that to `running.compare`, or
name it to the command as ``--strategy package.module:NAME``. A strategy gets the same `ClusterState` that the project's own rules get:
late means, NaN for what is unknown, requests, budgets. It keeps what it wants to remember in ``Actions.memory``, which comes back to it in
the next cycle; instances may be used for one world only. Evictions are carried out in their order and answered as the API server would
answer; whoever depends on the answers asks an `eviction.EvictionApi` of the same state, which gives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rebalancer.policy.model import RebalancePolicy
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Actions:
    evictions: tuple[int, ...] = ()
    """Rows in ``state.pods``, in the order in which they are tried."""
    soft_taints: BoolArray | None = None
    """(nodes, `plan.grades.SOFT_TAINTS`): who carries which of our soft taints from now on; (nodes,): who carries one, for strategies that
    know no grades. None changes nothing. They are put on before the first eviction."""
    memory: object = None
    """What `Strategy.decide` gets in the next cycle."""
    undecided: str = ""
    """Why nothing could be decided in this cycle, in words, such as metrics that are missing; empty when a decision was made."""


class Strategy(Protocol):
    name: str

    def decide(self, state: ClusterState, memory: object) -> Actions:
        """One cycle. ``memory``: what the last one returned, None in the first. Must not change the state, nor draw from a clock."""
        ...


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """How a strategy is made, one instance a world."""

    name: str
    describe: str
    """One sentence for the help and the report."""
    make: Callable[[RebalancePolicy], Strategy]
    """The policy gives the marks, the windows that the state holds, and the interval at which the strategy is asked."""
    by_policy: bool = True
    """False: what it does is the same whatever the policy, so it is run once."""


class DoNothing:
    """Watches. What every other strategy is compared with."""

    name = "none"

    def decide(self, state: ClusterState, memory: object) -> Actions:
        return Actions()


DO_NOTHING = StrategyKind("none", "Does nothing; what the world comes to by itself.", lambda policy: DoNothing(), by_policy=False)
