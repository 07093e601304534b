"""Soft taints: while a plan is carried out, warm nodes repel new pods a little, so that replacements land on cooler ones.

They are ours by their key, written only on change, and leave as soon as their reason does: when the node is no longer warm
(`plan.steering`), when its load is no longer known, when the policy gives soft taints up, on clean shutdown, and by `rebalancer cleanup`. A
crash leaves them to the next start, whose first cycle sees them on the nodes and judges them like its own.

The key is the same for every controller that shares the cluster, so it does not say whose a taint is; the pool does. On a node that no pool
of the policy claims, a taint is another controller's, and stays, unless this process put it there before the node left its pool.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rebalancer.act.names import SOFT_TAINT
from rebalancer.act.outcome import Prepared
from rebalancer.deadline import Deadline
from rebalancer.detect.pools import claimed
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.patches import add_soft_taint, remove_soft_taint
from rebalancer.kube.resources import NODES
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Pool


@dataclass(frozen=True, slots=True)
class TaintWork:
    """Names of nodes to change."""

    add: tuple[str, ...]
    remove: tuple[str, ...]


def taint_work(plan: Plan, *, put: Collection[str] = ()) -> TaintWork:
    """What the plan changes about soft taints. A plan without moves adds none, and keeps those whose node is still warm.

    ``put``: nodes whose taint is ours although no pool may claim them any more.
    """
    stay = {report.name for report in plan.nodes if report.warm} if plan.soft_tainting else set()
    wanted = set(plan.soft_taints)
    present = {report.name for report in plan.nodes if report.tainted and (report.pool is not None or report.name in put)}
    return TaintWork(add=tuple(sorted(wanted - present)), remove=tuple(sorted(present - wanted - stay)))


class SoftTainting:
    """Keeps the taints of the cluster in step with a plan.

    A failed patch is told and left to the next cycle; it never stops one. What would fail for every node (a missing right, no time left)
    is told once.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.put: set[str] = set()
        """Nodes that this process has tainted and not untainted since."""

    def apply(self, work: TaintWork, *, deadline: Deadline) -> tuple[str, ...]:
        """What was done or failed, in sentences."""
        return self.steer(work, deadline=deadline).notes

    def steer(self, work: TaintWork, *, deadline: Deadline) -> Prepared:
        """The same, with the nodes that lack their taint."""
        notes: list[str] = []
        missing = dict.fromkeys(work.add)
        added: list[str] = []
        removed: list[str] = []
        tasks = [*((name, True) for name in work.add), *((name, False) for name in work.remove)]
        for done, (name, present) in enumerate(tasks):
            try:
                if self._change(name, present=present, deadline=deadline):
                    (added if present else removed).append(name)
                if present:
                    missing.pop(name)
                    self.put.add(name)
                else:
                    self.put.discard(name)
            except KubernetesError as error:
                hopeless = isinstance(error, KubernetesForbidden) or deadline.remaining() <= 0
                left = len(tasks) - done - 1 if hopeless else 0
                rest = f", nor {left} more" if left else ""
                notes.append(f"soft taint of node {name} could not be changed{rest}: {error}")
                if hopeless:
                    break
        if added:
            notes.append(f"soft taint {SOFT_TAINT.key} put on {_listed(added)}")
        if removed:
            notes.append(f"soft taint {SOFT_TAINT.key} taken off {_listed(removed)}")
        return Prepared(tuple(notes), tuple(missing))

    def remove_all(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        """Take them off the nodes of ``pools``, whoever put them there, and off those that this process has tainted; None: off every node.

        Raises KubernetesError when the nodes cannot be listed.
        """
        nodes = list_all(self._client, NODES, deadline=deadline).items
        tainted = [node.metadata for node in nodes if any(taint.key == SOFT_TAINT.key for taint in node.spec.taints or ())]
        ours = [node.name for node in tainted if pools is None or claimed(pools, node.labels or {}) or node.name in self.put]
        return self.apply(TaintWork(add=(), remove=tuple(sorted(ours))), deadline=deadline)

    def _change(self, name: str, *, present: bool, deadline: Deadline) -> bool:
        """True if it was changed; a node that is gone needs nothing."""
        try:
            if present:
                return add_soft_taint(self._client, name, SOFT_TAINT, deadline=deadline)
            return remove_soft_taint(self._client, name, SOFT_TAINT.key, deadline=deadline)
        except KubernetesNotFound:
            return False


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
