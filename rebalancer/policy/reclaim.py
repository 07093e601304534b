"""When room that a tenant is guaranteed is taken back from those who borrow it."""

from __future__ import annotations

from pydantic import Field

from rebalancer.policy.quantities import Duration, Strict


class Reclaim(Strict):
    """Evictions for quotas, by the tenants file. Without such a file nobody is evicted for a quota."""

    enabled: bool = False
    """Give tenants back what they are guaranteed, before anything is balanced. In evict mode the waiting pod is nominated for the node
    first, so that no pod of its priority or below takes the room: that needs the right to patch ``pods/status``."""
    after: Duration = Field(default=120.0, ge=10)
    """How long a pod of a tenant within its guarantee must have waited."""
    max_victims: int = Field(default=8, ge=1, le=100)
    """The most pods that are evicted for one that waits."""
