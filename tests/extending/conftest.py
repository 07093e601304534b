from __future__ import annotations

from tests.extending.feeding import said

__all__ = ["said"]
