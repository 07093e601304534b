"""Selectors and node terms from the wire to the hashable values of the state. Absent stays absent (None), empty stays empty."""

from __future__ import annotations

from collections.abc import Iterable

from rebalancer.kube.wire import NodeSelectorWire, NodeTermWire, RequirementWire, SelectorWire
from rebalancer.state.scheduling import NodeTerm, Requirement, Selector


def selector(wire: SelectorWire | None) -> Selector | None:
    """matchLabels become In, sorted by key, so that equal selectors are equal values."""
    if wire is None:
        return None
    equal = (Requirement(key, "In", (value,)) for key, value in sorted((wire.match_labels or {}).items()))
    return Selector((*equal, *requirements(wire.match_expressions)))


def requirements(wires: Iterable[RequirementWire] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(wire.key, wire.operator, wire.values or ()) for wire in wires or ())


def node_term(wire: NodeTermWire) -> NodeTerm:
    return NodeTerm(expressions=requirements(wire.match_expressions), fields=requirements(wire.match_fields))


def node_terms(wire: NodeSelectorWire | None) -> tuple[NodeTerm, ...] | None:
    """None when nothing is required; an empty tuple, which matches no node, when the list of terms is empty."""
    return None if wire is None else tuple(node_term(term) for term in wire.node_selector_terms or ())
