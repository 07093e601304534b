"""Where randomness comes from: one stream a purpose, all from one seed.

What comes from outside (loads, noise, failures) must be the same for every strategy that is compared, however many evictions each one
makes; so it may not share a stream with what a strategy causes (ties of the scheduler, start-up times).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    FLEET = 1
    DEMAND = 2
    NOISE = 3
    HAPPENINGS = 4
    ARRANGEMENT = 5
    TIES = 6
    STARTUPS = 7


def stream(seed: int, purpose: Stream) -> np.random.Generator:
    """The generator of a purpose, at its beginning."""
    return np.random.default_rng([seed, int(purpose)])
