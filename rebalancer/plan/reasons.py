"""The refusals that planning itself makes, beside those of the gates: a closed list, with one sentence for the documentation each."""

from __future__ import annotations

from enum import Enum


class PlanGate(Enum):
    NO_FEASIBLE_NODE = "no-feasible-node"
    NO_BETTER_PLACE = "no-better-place"
    GAIN_TOO_SMALL = "gain-too-small"
    NOT_NEEDED = "not-needed"

    @property
    def describe(self) -> str:
        return _DESCRIBE[self]


_DESCRIBE = {
    PlanGate.NO_FEASIBLE_NODE: "kube-scheduler's filters leave no node for a replacement of the pod.",
    PlanGate.NO_BETTER_PLACE: (
        "The replacement would land on a node that is hot, warm, unknown, in another pool, or on the source again, or could be given a GPU "
        "that is full by measurement, ill, in doubt, or of another model; marks of the pool (`target`, `high`), `steering.softTaint` and "
        "`gpu.sameModel` change it."
    ),
    PlanGate.GAIN_TOO_SMALL: "The move would cure less than `gain.minRelative` of the excess, or win less than `gain.disruptionCost`.",
    PlanGate.NOT_NEEDED: "The moves that are planned already bring the node under its target.",
}
