"""Lists of device numbers: ``0,1``."""

from __future__ import annotations

from rebalancer.gpu.unreadable import Unreadable, digits, shown

_LONGEST = 4096


def indices(where: str, text: str) -> tuple[int, ...]:
    """Raises Unreadable; also for a number that stands twice."""
    found = tuple(digits(where, part) for part in text[:_LONGEST].split(",") if part.strip())
    if not found or len(set(found)) < len(found):
        raise Unreadable(f"{where} is {shown(text)}, which are no numbers of different devices")
    return found
