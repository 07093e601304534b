"""Which device of a node a pod goes to: the one that it fills best, away from those that are measured to be full or busy.

The rule of the protocol is best fit: of the devices that fit, the one with the least free memory, the lowest number on a tie. Measurements
only narrow the choice, and never to nothing: if every device that fits is over a ceiling, the rule decides among all of them. A device of
which nothing is known is neither preferred nor refused.
"""

from __future__ import annotations

from rebalancer.steer.gpushare.device_load import Ceilings, Shares
from rebalancer.steer.gpushare.ledger import NodeLedger


def choose_device(ledger: NodeLedger, asked: int, *, loads: Shares | None = None, ceilings: Ceilings | None = None) -> int | None:
    """The device for a pod that asks for ``asked`` (above 0); None when no healthy one fits."""
    fitting = [device for device in ledger.healthy if ledger.free(device) >= asked]
    if loads is not None and fitting:
        over = (ceilings or Ceilings()).over(loads)
        fitting = [device for device in fitting if not over[device]] or fitting
    return min(fitting, key=lambda device: (ledger.free(device), device), default=None)
