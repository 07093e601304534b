"""The wall clock, as a value that can be handed in: production reads the machine's, the demo and the tests read the world's."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Unix seconds."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()
