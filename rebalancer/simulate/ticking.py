"""Lets the virtual clock run by itself, in step with real time or a multiple of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rebalancer.simulate.world import World

_TICK_S = 0.1


class Ticker:
    """A thread that advances a world. ``start`` and ``stop`` once each; the thread is joined by ``stop``."""

    def __init__(self, world: World, speed: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._world, self._speed, self._clock = world, speed, clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulate-clock", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        last = self._clock()
        while not self._stop.wait(_TICK_S):
            now = self._clock()
            self._world.advance((now - last) * self._speed)
            last = now
