"""Whether replacements land where their plans said: the share of hits, and which moves say anything about it.

A hit is a landing on the planned node or on one of the few that the plan named beside it as equally good. Not every settled move is
evidence: one without a replacement landed nowhere, and one whose plan named only a few of many nodes that were as likely may well land on
another without anybody being wrong. In a cluster of thousands, where the scheduler looks at a sample, or where many nodes score alike, that
is every move; the share is unknown there, which is neither good nor bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

DEFINITE = 0.8
"""How much of the predicted landings the named nodes must cover for a move to say whether predictions come true."""


@dataclass(frozen=True, slots=True)
class LandedMove:
    """A settled move whose replacement is on a node.

    ``chance``: how much of the predicted landings the named nodes covered; NaN unknown, as with moves that an earlier version remembered.
    """

    chance: float
    named: bool
    """On the planned node or on an alternative."""
    planned: bool
    """On the planned node itself."""


@dataclass(frozen=True, slots=True)
class LandingRate:
    """Counts over the moves that say something: ``planned`` <= ``named`` <= ``moves``."""

    moves: int = 0
    named: int = 0
    planned: int = 0

    @property
    def ratio(self) -> float:
        """Share that landed on a named node, 0..1; NaN without moves."""
        return self.named / self.moves if self.moves else math.nan

    @property
    def planned_ratio(self) -> float:
        """Share that landed on the planned node itself, 0..1; NaN without moves."""
        return self.planned / self.moves if self.moves else math.nan


NOTHING_LANDED = LandingRate()


def landing_rate(landed: Iterable[LandedMove]) -> LandingRate:
    """The rate over the moves whose plans were definite about the place."""
    judged = [move for move in landed if move.chance >= DEFINITE]  # NaN is not
    return LandingRate(
        moves=len(judged),
        named=sum(move.named or move.planned for move in judged),
        planned=sum(move.planned for move in judged),
    )
