"""The controller's open moves as reservations, from the ConfigMap in which it keeps them.

An open move is written there before its pod is evicted, and taken off when its replacement is Ready, so the extender knows of it before
the replacement is made. A record that cannot be read reserves nothing new; what was read before runs out by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from rebalancer.errors import ConfigurationError
from rebalancer.kube.wire_steering import ConfigMapWire
from rebalancer.runtime.memory import OpenMove
from rebalancer.runtime.records import load_open_moves
from rebalancer.runtime.store import KEY
from rebalancer.steer.reservations import Reservation

log = structlog.get_logger(__name__)


class PlannedMoves:
    """Looks at one state of the ConfigMap after the other."""

    def __init__(self) -> None:
        self._text: str | None = None
        self.reservations: tuple[Reservation, ...] = ()
        """Of the last look that could be read."""

    def look(self, found: Sequence[ConfigMapWire]) -> bool:
        """``found``: the ConfigMap, or nothing where there is none. True when there is news."""
        stored = found[0] if found else None
        text = (stored.data or {}).get(KEY, "") if stored is not None else ""
        if text == self._text:
            return False
        self._text = text
        if stored is None or not text:
            self.reservations = ()
            return True
        origin = f"ConfigMap {stored.metadata.namespace}/{stored.metadata.name}"
        try:
            moves = load_open_moves(text.encode(), origin=origin)
        except ConfigurationError as error:
            log.warning("planned moves cannot be read, so no room is reserved for them", error=error.message)
            return False
        self.reservations = tuple(_reservation(move) for move in moves if move.eviction.destination)
        return True


def _reservation(move: OpenMove) -> Reservation:
    eviction = move.eviction
    return Reservation(
        key=eviction.pod_uid,
        workload=eviction.workload,
        controller_uid=eviction.controller_uid,
        namespace=eviction.namespace,
        node=eviction.destination,
        since=eviction.at,
        use=eviction.usage,
    )
