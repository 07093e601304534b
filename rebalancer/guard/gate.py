"""What a gate is, what it sees, and how the gates are found and asked.

To add a gate, add a file to `guard.gates` with a module-level ``GATE``. Its name joins the closed list of gate names, the metric labels and
the generated documentation by that alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property

from rebalancer.guard.gang_rules import GangRules
from rebalancer.guard.headcount import Headcount
from rebalancer.guard.label_marks import LabelMarks
from rebalancer.guard.measured import Measured, judged_by_policy, measured_pods
from rebalancer.guard.windows import Streak, Window, evictions_within, last_move_by_node, workload_streaks
from rebalancer.policy.model import Mode, Spec
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History, PastEviction
from rebalancer.state.tables import WorkloadRef


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate stays. ``retryable``: a later cycle may decide otherwise without anybody changing a spec or a policy."""

    gate: str
    reason: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that might leave its node."""

    pod: int
    """Row in `Pods`."""
    source: int
    """Row in `Nodes`."""


@dataclass(slots=True)
class Booked:
    """What the growing plan has spent already. The only thing in a decision that changes; one instance a plan."""

    total: int = 0
    by_node: Counter[int] = field(default_factory=Counter)
    by_namespace: Counter[str] = field(default_factory=Counter)
    by_workload: Counter[WorkloadRef] = field(default_factory=Counter)
    by_tenant: Counter[int] = field(default_factory=Counter)
    by_budget: Counter[int] = field(default_factory=Counter)
    """Row of the disruption budget -> disruptions that the plan consumes."""
    by_gang: Counter[int] = field(default_factory=Counter)
    whole_gangs: set[int] = field(default_factory=set)
    """Gangs that the plan moves, or tries to move, with all their members."""
    pods: set[int] = field(default_factory=set)

    def copy(self) -> Booked:
        """As it is now, for `become`."""
        return Booked(
            total=self.total,
            by_node=self.by_node.copy(),
            by_namespace=self.by_namespace.copy(),
            by_workload=self.by_workload.copy(),
            by_tenant=self.by_tenant.copy(),
            by_budget=self.by_budget.copy(),
            by_gang=self.by_gang.copy(),
            whole_gangs=self.whole_gangs.copy(),
            pods=self.pods.copy(),
        )

    def become(self, other: Booked) -> None:
        """Be what the other is, and share nothing with it; whoever holds this one sees it."""
        for each in fields(self):
            setattr(self, each.name, getattr(other.copy(), each.name))


@dataclass(frozen=True)
class Scene:
    """Everything that a gate may look at. Make one a plan: what it adds up, it adds up once (hence not slotted)."""

    state: ClusterState
    spec: Spec
    history: History
    booked: Booked
    mode: Mode = Mode.EVICT
    judged: BoolArray | None = None
    """(nodes, signals) from `Findings`; worked out from the pools of the policy when it is not given."""

    passing: Mapping[int, str] = field(default_factory=dict)
    """Row of a hot node -> why its peak passes by itself, from `Findings`."""

    reclaiming: bool = False
    """Room is given back: that replacements of the victims' workloads wait is what is to be expected, and no reason to wait for them."""

    @cached_property
    def headcount(self) -> Headcount:
        settle_s = max(self.spec.cooldown.workload, self.spec.breaker.pending_after)
        return Headcount(self.state, settle_s)

    @cached_property
    def label_marks(self) -> LabelMarks:
        return LabelMarks(self.state)

    @cached_property
    def gang_rules(self) -> GangRules:
        return GangRules(self.state, self.spec, self.mode)

    def follows_its_gang(self, pod: int) -> bool:
        """Whether the plan moves the pod's whole gang and has booked others of it already: its work stands still anyhow."""
        if not self.booked.whole_gangs:
            return False
        gang = self.gang_rules.of_pod(pod)
        return gang in self.booked.whole_gangs and self.booked.by_gang[gang] > 0

    @cached_property
    def measured(self) -> Measured:
        judged = judged_by_policy(self.state, self.spec) if self.judged is None else self.judged
        return measured_pods(self.state, self.spec, judged)

    @cached_property
    def window(self) -> Window:
        """Past evictions in the sliding window of the budgets."""
        return evictions_within(self.history, now=self.state.at, seconds=self.spec.budgets.window)

    @cached_property
    def streaks(self) -> Mapping[WorkloadRef, Streak]:
        """Moves in a row by workload, as the cooldown counts them."""
        return workload_streaks(self.history, now=self.state.at, seconds=self.spec.cooldown.max)

    @cached_property
    def last_moves(self) -> Mapping[str, float]:
        """node name -> when a pod was last evicted from it."""
        return last_move_by_node(self.history)

    @cached_property
    def leaving(self) -> Mapping[int, PastEviction]:
        """Row of a node -> an eviction from it whose pod is still there: it has not left yet, or nobody knows whether it will."""
        state = self.state
        rows = {state.pod_index.get(past.pod_uid, -1): past for past in self.history.in_flight.values()}
        return {int(state.pods.node[row]): past for row, past in rows.items() if row >= 0 and state.pods.node[row] >= 0}


@dataclass(frozen=True, slots=True)
class Gate:
    """A named rule. ``order`` sorts the gates: final reasons and cheap ones first, so that the refusal shown is the most telling one.

    ``static``: the answer does not depend on ``scene.booked``, so it holds for the whole cycle.
    ``describe`` is one sentence for the documentation: what is refused, and which policy key changes it.
    """

    name: str
    order: int
    describe: str
    check: Callable[[Candidate, Scene], Refusal | None]
    static: bool = True


@cache
def all_gates() -> tuple[Gate, ...]:
    """Every gate, in order. Raises ValueError when two share a name."""
    from rebalancer.guard import gates as package

    found: list[Gate] = []
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        found.append(module.GATE)
    names = [gate.name for gate in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two gates share a name: {sorted(names)}")
    return tuple(sorted(found, key=lambda gate: (gate.order, gate.name)))


@cache
def _gates_of_kind(static: bool | None) -> tuple[Gate, ...]:
    return tuple(gate for gate in all_gates() if static is None or gate.static is static)


def first_refusal(candidate: Candidate, scene: Scene, *, static: bool | None = None) -> Refusal | None:
    """Ask the gates in order and return the first refusal, or None. ``static`` restricts to gates of that kind."""
    for gate in _gates_of_kind(static):
        refusal = gate.check(candidate, scene)
        if refusal is not None:
            return refusal
    return None


def book(candidate: Candidate, scene: Scene) -> None:
    """Charge an accepted candidate to the plan."""
    from rebalancer.guard.disruption import disruption_cost

    state, booked = scene.state, scene.booked
    booked.total += 1
    booked.by_node[candidate.source] += 1
    booked.by_namespace[state.pods.namespaces[candidate.pod]] += 1
    workload = state.workload_of(candidate.pod)
    if workload is not None:
        booked.by_workload[workload] += 1
    tenant = int(state.pods.tenant[candidate.pod])
    if tenant >= 0:
        booked.by_tenant[tenant] += 1
    for budget in state.pods.budgets[candidate.pod]:
        booked.by_budget[budget] += disruption_cost(state, candidate.pod, budget)
    gang = state.gangs.of_pod(candidate.pod)
    if gang >= 0:
        booked.by_gang[gang] += 1
    booked.pods.add(candidate.pod)
