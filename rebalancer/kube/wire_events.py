"""Events as they are read: of those that a scheduler writes when it binds a pod, the node and the moment."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from rebalancer.kube.wire import MetaWire

_ASSIGNED = re.compile(r"Successfully assigned \S+ to (\S+)")


class EventWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``events.k8s.io/v1``. A writer of the older API leaves ``eventTime`` empty, and its times are under their deprecated names."""

    metadata: MetaWire
    reason: str = ""
    type: str = ""
    note: str | None = None
    event_time: datetime | None = None
    deprecated_last_timestamp: datetime | None = None

    @property
    def bound_to(self) -> str:
        """The node that a pod was bound to; empty for any other Event."""
        if self.reason != "Scheduled" or self.type != "Normal":
            return ""
        found = _ASSIGNED.match(self.note or "")
        return found[1] if found else ""

    @property
    def at(self) -> float | None:
        """Unix seconds; None when it does not say."""
        moment = self.event_time or self.deprecated_last_timestamp or self.metadata.creation_timestamp
        return None if moment is None else moment.timestamp()
