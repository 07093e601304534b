"""What a method of planning is: a file that looks at the findings and proposes moves, or says why it has none.

Methods are tried in the order of `plan.planner.METHODS`; the first whose proposal has moves is carried out, so one cycle pursues one aim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rebalancer.detect.findings import Findings
from rebalancer.guard.gate import Refusal, Scene
from rebalancer.plan.destination import Destinations
from rebalancer.plan.disturbance import Disturbance
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.heat import LoadBook
from rebalancer.plan.ledger import Placements
from rebalancer.policy.tenants_in_force import TenantNow
from rebalancer.state.arrays import BoolArray


@dataclass(frozen=True, slots=True)
class ProposedMove:
    pod: int
    source: int
    destination: int
    alternatives: tuple[int, ...]
    chance: float
    """How much of the predicted landings the destination and the alternatives cover."""
    gain: float
    reason: str
    loads: tuple[tuple[float, float, float, float], ...]
    """One entry a signal: source before, after, destination before, after; ratios, NaN unknown."""
    makes_room_for: int = -1
    """Row of the pod that waits for the room; then there is no destination, and all moves for it belong together."""
    gang: int = -1
    """Row of the gang that moves whole: its moves belong together. -1 for a pod that moves alone, as surplus of a gang too."""
    led_by: str = ""
    """What makes the replacement go to a node that was chosen (`plan.hinting`); empty where the scheduler's choice was predicted."""


@dataclass(frozen=True, slots=True)
class Proposal:
    method: str
    moves: tuple[ProposedMove, ...]
    refused: tuple[tuple[int, Refusal], ...]
    """(pod, why), one entry a candidate that stays."""
    outcome: str
    """One sentence: what is proposed, or why nothing is."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a method works with: the scene for the gates, the findings, and the books that grow with the plan."""

    scene: Scene
    findings: Findings
    placements: Placements
    feasibility: Feasibility
    destinations: Destinations
    loads: LoadBook
    disturbance: Disturbance
    soft_tainted: BoolArray
    """(nodes,) nodes that would carry soft taints while the plan is carried out."""
    warm: BoolArray
    """(nodes,) nodes that keep a soft taint that they carry, whether the plan moves anything or not."""
    tenants: tuple[TenantNow, ...]
    """Those of the tenants file, by the quotas that are in force; empty without a file."""
    grades: BoolArray
    """(nodes, `grades.SOFT_TAINTS`) which of them is right for each warm node."""


class Method(Protocol):
    name: str

    def propose(self, bench: Bench) -> Proposal: ...
