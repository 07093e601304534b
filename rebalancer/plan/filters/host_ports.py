"""Host ports: two pods clash on protocol and port, unless each names an IP of its own."""

from __future__ import annotations

import numpy as np

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.replacement import Replacement
from rebalancer.state.scheduling import Constraints, HostPort

_ANY = "0.0.0.0"  # noqa: S104  the address in a pod spec, nothing is bound here


def clash(first: HostPort, second: HostPort) -> bool:
    """An empty IP is 0.0.0.0, an empty protocol TCP."""
    if (first.protocol or "TCP") != (second.protocol or "TCP") or first.port != second.port:
        return False
    one, other = first.ip or _ANY, second.ip or _ANY
    return _ANY in (one, other) or one == other


def _clashing(mine: tuple[HostPort, ...], others: Constraints) -> HostPort | None:
    return next((port for port in mine if any(clash(port, other) for other in others.host_ports)), None)


def passes(replacement: Replacement) -> Verdict:
    mine = replacement.constraints.host_ports
    if not mine:
        return True
    state, neighbours = replacement.state, replacement.placements.neighbours
    blocking = tuple(row for row in neighbours.port_holders if _clashing(mine, state.constraints[row]) is not None)
    free = np.ones(len(state.nodes.names), dtype=np.bool_)
    free[replacement.standing(neighbours.with_constraints(blocking))] = False
    return free


def reason(replacement: Replacement, node: int) -> str:
    neighbours, mine = replacement.placements.neighbours, replacement.constraints.host_ports
    taken = [
        port
        for row in neighbours.port_holders
        if (port := _clashing(mine, replacement.state.constraints[row])) is not None
        and node in replacement.standing(neighbours.with_constraints((row,)))
    ]
    names = sorted({f"{port.ip or _ANY}:{port.port}/{port.protocol or 'TCP'}" for port in taken})
    return f"Host port {', '.join(names)} is in use on {replacement.state.nodes.names[node]}"


FILTER = Filter(name="host-ports", order=60, describe="A host port of the pod is in use on the node.", passes=passes, reason=reason)
