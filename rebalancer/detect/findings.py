"""What detection says about the cluster, as columns beside `Nodes`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from rebalancer.detect.yesterday import Foreseen
from rebalancer.policy.model import Pool
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray


class NodeClass(IntEnum):
    UNKNOWN = 0
    COLD = 1
    NORMAL = 2
    HOT = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Quadrant(Enum):
    """A node by packing and load of its leading signal, each against the signal's target."""

    LOW_PACKING_HIGH_LOAD = "low-packing/high-load"
    HIGH_PACKING_LOW_LOAD = "high-packing/low-load"
    LOW_PACKING_LOW_LOAD = "low-packing/low-load"
    HIGH_PACKING_HIGH_LOAD = "high-packing/high-load"


@dataclass(frozen=True, slots=True)
class Findings:
    pools: tuple[Pool, ...]
    pool: IntArray
    """(nodes,): row in ``pools``; -1 when no pool claims the node."""
    load: FloatArray
    """(nodes, signals) from the load ledger; NaN unknown."""
    reach: FloatArray
    """(nodes, signals): ``load`` plus ``deviations`` standard deviations of it, as a ratio: what is compared with the marks."""
    packing: FloatArray
    """(nodes, signals); NaN where a signal has no request."""
    judged: BoolArray
    """(nodes, signals): the node's pool is judged by the signal."""
    low: FloatArray
    target: FloatArray
    high: FloatArray
    """(nodes, signals) ratios after deviations were resolved against the pool's mean; NaN where not judged."""
    weight: FloatArray
    """(nodes, signals): 0 where not judged."""
    over: IntArray
    """(nodes, signals): in how many of the confirmation windows the load was over ``high``."""
    windows: int
    """How many confirmation windows there are."""
    node_class: IntArray
    """(nodes,): `NodeClass`."""
    confirmed: BoolArray
    """(nodes, signals): over ``high`` now and in enough windows."""
    quadrant: tuple[Quadrant | None, ...]
    reasons: tuple[str, ...]
    """(nodes,): why the node has its class, with numbers."""
    pool_mean: FloatArray
    """(pools, signals): mean load of the pool's known nodes; NaN when none is known."""
    deviations: float
    """The policy's ``risk.deviations``; 0: ``reach`` is ``load``."""
    pool_stddev: FloatArray
    """(pools, signals): population standard deviation of the same."""
    foreseen: Foreseen
    """What yesterday says of the time to come."""
    notes: tuple[str, ...] = ()

    def nodes_of_class(self, node_class: NodeClass) -> int:
        return int((self.node_class == int(node_class)).sum())
