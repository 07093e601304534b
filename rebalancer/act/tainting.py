"""Soft taints: while a plan is carried out, warm nodes repel new pods a little, so that replacements land on cooler ones.

They are ours by their keys, written only on change, all of a node in one patch, and leave as soon as their reason does: when the node is no
longer warm, or no longer hot (`plan.steering`), when its load is no longer known, when the policy gives soft taints up, on clean shutdown,
and by `rebalancer cleanup`. A crash leaves them to the next start, whose first cycle sees them on the nodes and judges them like its own;
so are those of an earlier version, which knew one grade.

The keys are the same for every controller that shares the cluster, so they do not say whose a taint is; the pool does. On a node that no
pool of the policy claims, a taint is another controller's, and stays, unless this process put it there before the node left its pool.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from rebalancer.act.names import SOFT_TAINTS
from rebalancer.act.outcome import Prepared
from rebalancer.deadline import Deadline
from rebalancer.detect.pools import claimed
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.patches import TaintChange, set_soft_taints
from rebalancer.kube.resources import NODES
from rebalancer.plan.model import NodeReport, Plan
from rebalancer.policy.model import Pool

_KEYS = tuple(taint.key for taint in SOFT_TAINTS)


class TaintResult(Enum):
    """What became of the soft taints of a node that were to be changed; a closed set, fit for a label."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """They were as wanted by then: nothing was sent."""
    GONE = "gone"
    """The node is there no more."""
    CONFLICT = "conflict"
    """Other writers came first at every attempt."""
    FORBIDDEN = "forbidden"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TaintWork:
    """Nodes to change. ``put``: (name, keys): of our soft taints it is to carry these and no others; ``remove``: it is to carry none."""

    put: tuple[tuple[str, tuple[str, ...]], ...] = ()
    remove: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.put) + len(self.remove)


def taint_work(plan: Plan, *, put: Collection[str] = ()) -> TaintWork:
    """What the plan changes about soft taints.

    A plan without moves taints no node anew; what a node carries that is still warm is kept, or changed for what is right for it now.
    ``put``: nodes whose taints are ours although no pool may claim them any more.
    """
    wanted = set(plan.soft_taints)
    targets = {node.name: _target(node, plan, wanted=node.name in wanted, ours=node.name in put) for node in plan.nodes}
    changes = {node.name: targets[node.name] for node in plan.nodes if set(targets[node.name]) != set(node.carries)}
    return TaintWork(
        put=tuple(sorted((name, keys) for name, keys in changes.items() if keys)),
        remove=tuple(sorted(name for name, keys in changes.items() if not keys)),
    )


def _target(node: NodeReport, plan: Plan, *, wanted: bool, ours: bool) -> tuple[str, ...]:
    """What the node is to carry of our soft taints."""
    if wanted:
        return node.soft_taints
    if not node.carries:
        return ()
    if plan.soft_tainting and node.warm:
        return node.soft_taints
    return () if node.pool is not None or ours else node.carries


class SoftTainting:
    """Keeps the taints of the cluster in step with a plan.

    A failed patch is told and left to the next cycle; it never stops one. What would fail for every node (a missing right, no time left)
    is told once. ``told`` hears of each node that was tried.
    """

    def __init__(self, client: KubeClient, *, told: Callable[[TaintResult], None] = lambda result: None) -> None:
        self._client = client
        self._told = told
        self.put: set[str] = set()
        """Nodes that this process has tainted and not untainted since."""

    def apply(self, work: TaintWork, *, deadline: Deadline) -> tuple[str, ...]:
        """What was done or failed, in sentences."""
        return self.steer(work, deadline=deadline).notes

    def steer(self, work: TaintWork, *, deadline: Deadline) -> Prepared:
        """The same, with the nodes that lack their taints."""
        failures: list[str] = []
        missing = dict.fromkeys(name for name, _ in work.put)
        changes: dict[str, TaintChange] = {}
        tasks = [*work.put, *((name, ()) for name in work.remove)]
        for done, (name, keys) in enumerate(tasks):
            try:
                changes[name] = self._set(name, keys, deadline=deadline)
                missing.pop(name, None)
                self.put.add(name) if keys else self.put.discard(name)
            except KubernetesError as error:
                hopeless = isinstance(error, KubernetesForbidden) or deadline.remaining() <= 0
                left = len(tasks) - done - 1 if hopeless else 0
                rest = f", nor {left} more" if left else ""
                failures.append(f"soft taint of node {name} could not be changed{rest}: {error}")
                if hopeless:
                    break
        return Prepared((*failures, *_words(changes)), tuple(missing))

    def remove_all(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        """Take them off the nodes of ``pools``, whoever put them there, and off those that this process has tainted; None: off every node.

        Raises KubernetesError when the nodes cannot be listed.
        """
        nodes = list_all(self._client, NODES, deadline=deadline).items
        tainted = [node.metadata for node in nodes if any(taint.key in _KEYS for taint in node.spec.taints or ())]
        ours = [node.name for node in tainted if pools is None or claimed(pools, node.labels or {}) or node.name in self.put]
        return self.apply(TaintWork(remove=tuple(sorted(ours))), deadline=deadline)

    def _set(self, name: str, keys: Collection[str], *, deadline: Deadline) -> TaintChange:
        """What was changed; a node that is gone needs nothing."""
        wanted = tuple(taint for taint in SOFT_TAINTS if taint.key in keys)
        change, result = TaintChange(), TaintResult.FAILED
        try:
            change = set_soft_taints(self._client, name, wanted, own=_KEYS, deadline=deadline)
            result = TaintResult.CHANGED if change else TaintResult.UNCHANGED
        except KubernetesNotFound:
            result = TaintResult.GONE
        except KubernetesConflict:
            result = TaintResult.CONFLICT
            raise
        except KubernetesForbidden:
            result = TaintResult.FORBIDDEN
            raise
        finally:
            self._told(result)
        return change


def _words(changes: dict[str, TaintChange]) -> tuple[str, ...]:
    """A sentence for each set of taints that was put, then for each that was taken."""
    put: dict[tuple[str, ...], list[str]] = {}
    taken: dict[tuple[str, ...], list[str]] = {}
    for name, change in changes.items():
        if change.put:
            put.setdefault(change.put, []).append(name)
        if change.taken:
            taken.setdefault(change.taken, []).append(name)
    return (
        *(f"soft taint{_several(keys)} put on {_listed(names)}" for keys, names in sorted(put.items())),
        *(f"soft taint{_several(keys)} taken off {_listed(names)}" for keys, names in sorted(taken.items())),
    )


def _several(keys: tuple[str, ...]) -> str:
    return f"{'s' if len(keys) > 1 else ''} {' and '.join(keys)}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
