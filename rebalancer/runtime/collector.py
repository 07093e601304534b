"""When Python looks for garbage: not while a cycle reads and decides.

A cycle makes millions of small objects that live as long as it does and hardly ever point back at each other, so reference counting frees
them all. The cyclic collector would walk over them again and again meanwhile, for a fifth of the cycle's CPU, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Nothing is collected within; what was made within is the collector's business again afterwards. May be nested."""
    awake = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if awake:
            gc.enable()
