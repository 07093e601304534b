"""Who waits for room that it is guaranteed: pods of tenants within their guarantee, in the order in which they are served.

A pod has a claim when it has waited for long enough, and with it its tenant would hold no more than it is guaranteed of anything that the
pod asks for and the tenant is guaranteed. Something of the kind there must be: who is guaranteed nothing has nothing to take back. Tenants
are served by dominant share, least first and those of which it is not known last; within a tenant by priority, then by age.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.detect.tenants.accounts import Accounts, PodAmounts
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

SLACK = 1e-9


@dataclass(frozen=True)
class Book:
    """What tenants hold while a plan grows. ``held`` (tenants, resources) changes; all else is of the accounts."""

    accounts: Accounts
    amounts: PodAmounts
    row_of: IntArray
    """(pods,): row of the pod's tenant in the tree; -1 none."""
    held: FloatArray

    def chain(self, row: int) -> list[int]:
        """The tenant and those above it."""
        found = []
        while row >= 0:
            found.append(row)
            row = int(self.accounts.tree.parent[row])
        return found

    def move(self, pod: int, *, sign: int) -> None:
        """The pod leaves (-1) or comes (+1)."""
        for row in self.chain(int(self.row_of[pod])):
            self.held[row] += sign * self.amounts.requested[pod]

    def guaranteed_of(self, pod: int) -> BoolArray:
        """(resources,): what the pod asks for and its tenant is guaranteed."""
        guaranteed = self.accounts.tree.guaranteed[int(self.row_of[pod])]
        return np.asarray((self.amounts.requested[pod] > 0) & (guaranteed > 0), dtype=np.bool_)

    def within_guarantee(self, pod: int) -> bool:
        """Whether the pod's tenant would be within its guarantee with it; no for what is not known."""
        row, mine = int(self.row_of[pod]), self.guaranteed_of(pod)
        after = self.held[row] + self.amounts.requested[pod]
        return bool(mine.any() and (after[mine] <= self.accounts.tree.guaranteed[row, mine] + SLACK).all())

    def may_lose(self, pod: int, claimed: BoolArray, *, sparing: int) -> str:
        """Why the pod's tenant, or one above it, may not lose it for a claim on the ``claimed`` resources; empty when they may. Those above
        ``sparing``, the claimant, too lose nothing by it."""
        tree, takes = self.accounts.tree, self.amounts.requested[pod]
        own = int(self.row_of[pod])
        shared = set(self.chain(sparing))
        for row in self.chain(own):
            if row in shared:
                break
            held, guaranteed = self.held[row], tree.guaranteed[row]
            if np.isnan(held[takes > 0]).any() or np.isnan(guaranteed[takes > 0]).any():
                return f"what tenant {tree.names[row]} holds or is guaranteed is not known"
            if not (claimed & (takes > 0) & (held > guaranteed + SLACK)).any():
                return f"tenant {tree.names[row]} borrows none of it: {self.words(row, claimed)}"
            short = (takes > 0) & (guaranteed > 0) & (held - takes < guaranteed - SLACK) & (claimed | (held >= guaranteed - SLACK))
            if short.any():
                return f"without it tenant {tree.names[row]} would be under its guarantee: {self.words(row, short)}"
        return ""

    def words(self, row: int, which: BoolArray) -> str:
        """``holds 8 of 6 gpu guaranteed``."""
        tree = self.accounts.tree
        parts = [
            f"holds {shown(self.held[row, column], name)} of {shown(tree.guaranteed[row, column], name)} {name} guaranteed"
            for column, name in enumerate(self.accounts.resources)
            if which[column]
        ]
        return ", ".join(parts)

    def overage(self, pod: int, claimed: BoolArray) -> float:
        """How far over what it is entitled to the pod's tenant is, by the worst of the claimed resources; infinite without a title."""
        row = int(self.row_of[pod])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.held[row] / self.accounts.entitled[row]
        return float(np.nanmax(np.where(claimed & (self.amounts.requested[pod] > 0), ratio, -np.inf)))


def shown(amount: float, resource: str) -> str:
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount / 2.0**30:.1f} GiB"
    return f"{amount:g}"


def book_of(state: ClusterState, accounts: Accounts, amounts: PodAmounts) -> Book:
    index = {name: row for row, name in enumerate(accounts.tree.names)}
    rows = np.array([*(index.get(name, -1) for name in state.tenants), -1], dtype=np.int64)
    return Book(accounts, amounts, rows[state.pods.tenant], accounts.requested.copy())


def claims(state: ClusterState, book: Book, *, after_s: float) -> list[int]:
    """Pods that have a claim, in the order in which they are served."""
    pods = state.pods
    waiting = np.flatnonzero(book.amounts.pending & (book.row_of >= 0) & (state.at - pods.created_at >= after_s))
    found = [pod for pod in waiting.tolist() if book.within_guarantee(pod)]
    dominant = np.where(np.isnan(book.accounts.dominant), np.inf, book.accounts.dominant)
    found.sort(
        key=lambda pod: (float(dominant[book.row_of[pod]]), -int(pods.priority[pod]), float(pods.created_at[pod]), state.pod_name(pod))
    )
    return found
