"""The closed list of gates, for whoever needs all their names."""

from __future__ import annotations

from rebalancer.guard.gate import all_gates


def gate_names() -> tuple[str, ...]:
    """Every gate name, in the order in which they are asked: the closed set of the metric label."""
    return tuple(gate.name for gate in all_gates())
