"""When pods are moved aside so that one that waits for GPUs fits."""

from __future__ import annotations

from pydantic import Field

from rebalancer.policy.quantities import Duration, Strict


class Defragment(Strict):
    """Moves for a pod that waits for GPUs which are free, but not together. Pods that would be moved are evicted only if each of them has
    another place and the pod that waits then fits."""

    enabled: bool = False
    """Make room for waiting pods. Off, since running pods are disturbed for the sake of another, although no node is hot. In evict mode the
    waiting pod is nominated for the node first, so that no pod of its priority or below takes the room: that needs the right to patch
    ``pods/status``."""
    after: Duration = Field(default=300.0, ge=10)
    """How long a pod must have waited."""
    max_moves: int = Field(default=4, ge=1, le=16)
    """The most pods that are moved for one that waits."""
