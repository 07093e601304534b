"""Whose crane annotations are they? Two writers of one key would overwrite each other for ever, so we stand back where another is.

What this process has written it knows again by its text. For anything else on a node the API server is asked who wrote it, for all nodes in
one list: at a start, when there are annotations of an earlier process, and when text appears that nobody here wrote. A node with a single
value of somebody else's is left to that somebody, until its annotations are gone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.act.annotating_nodes import writers_in_words
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.field_managers import AnnotatedNode, annotated_nodes
from rebalancer.kube.patches import FIELD_MANAGER
from rebalancer.state.arrays import BoolArray
from rebalancer.steer.annotation_work import CRANE_KEYS, NodePatch

ASK_AGAIN_S = 600.0
"""The list is of all nodes, so it is not asked for more often than this."""
_REMEMBERED = 3
"""Texts of ours a node: a look may be a moment older than the last patch."""


class AnnotationOwners:
    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._texts: dict[str, tuple[int, ...]] = {}
        """Node -> hashes of what we have left there, the newest first."""
        self._foreign: set[str] = set()
        self._asked_at = -math.inf
        self._told = ""

    def judge(
        self, names: Sequence[str], present: Sequence[Mapping[str, str]], *, rows: BoolArray, at: float, deadline: Deadline
    ) -> tuple[BoolArray, tuple[str, ...]]:
        """(nodes,): crane's keys are ours to write there, or nobody's; and what there is to tell, once. ``rows``: whom it is asked about.

        Raises Interrupted.
        """
        ours = np.ones(len(names), dtype=np.bool_)
        open_rows: list[int] = []
        for row in np.flatnonzero(rows).tolist():
            name, mark = names[row], _mark(present[row])
            if mark is None:
                self._foreign.discard(name)
            elif name in self._foreign:
                ours[row] = False
            elif mark not in (known := self._texts.get(name, ())):
                open_rows.append(row)
            elif known[0] != mark:
                self._texts[name] = (mark, *(other for other in known if other != mark))
        notes: tuple[str, ...] = ()
        if open_rows:
            notes = self._ask({names[row]: present[row] for row in open_rows}, at=at, deadline=deadline)
            for row in open_rows:
                ours[row] = _mark(present[row]) in self._texts.get(names[row], ())
        self._forget(names)
        return ours, notes

    def wrote(self, tried: Sequence[NodePatch], present: Sequence[Mapping[str, str]]) -> None:
        """Remember what may stand on the nodes after these patches; ``present`` (nodes,): what stood there before."""
        for patch in tried:
            left = {**present[patch.row], **patch.values}
            mark = _mark({key: value for key, value in left.items() if value is not None})
            if mark is not None:
                self._texts[patch.node] = (mark, *self._texts.get(patch.node, ()))[:_REMEMBERED]

    def _ask(self, doubtful: Mapping[str, Mapping[str, str]], *, at: float, deadline: Deadline) -> tuple[str, ...]:
        if at - self._asked_at < ASK_AGAIN_S:
            return ()
        self._asked_at = at
        try:
            found = {node.name: node for node in annotated_nodes(self._client, CRANE_KEYS, deadline=deadline)}
        except KubernetesError as error:
            return (f"it cannot be told who wrote the crane annotations of {len(doubtful)} nodes, so they are left alone: {error}",)
        others: list[AnnotatedNode] = []
        for name, there in doubtful.items():
            node = found.get(name)
            if node is None:
                continue
            if all(FIELD_MANAGER in writers for writers in node.writers.values()):
                marks = [mark for mark in (_mark(there), _mark(node.values)) if mark is not None]
                self._texts[name] = (*marks, *self._texts.get(name, ()))[:_REMEMBERED]
            else:
                self._foreign.add(name)
                others.append(node)
        return self._tell(others)

    def _tell(self, others: Sequence[AnnotatedNode]) -> tuple[str, ...]:
        """Once for each writer; that another node is its too is no news."""
        who = writers_in_words(others) if others else ""
        if not who or who == self._told:
            return ()
        self._told = who
        named = ", ".join(node.name for node in others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        keys = " ".join(f"{key}-" for key in CRANE_KEYS)
        return (
            f"crane annotations of {named} are written by {who} and left alone; to have them written here, stop the other writer and run "
            f"kubectl annotate nodes --all {keys}",
        )

    def _forget(self, names: Sequence[str]) -> None:
        """Nodes that are no more."""
        if len(self._texts) > 2 * len(names) + 100:
            there = set(names)
            self._texts = {name: marks for name, marks in self._texts.items() if name in there}
            self._foreign &= there


def _mark(annotations: Mapping[str, str]) -> int | None:
    """A number for the crane annotations of a node; None where there are none."""
    texts = tuple((key, annotations[key]) for key in CRANE_KEYS if key in annotations)
    return hash(texts) if texts else None
