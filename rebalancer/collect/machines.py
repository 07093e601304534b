"""What a machine has, for loads that readers outside of this project compare with the whole of it.

Load, everywhere else, is a share of allocatable, as packing is. Readers of node load annotations were made for percentages of
node_exporter, which are shares of the machine: the 65 % at which they refuse a node means 65 % of its processors, those of the system
included. So here it is ``status.capacity``, which is what the kubelet found, whatever it keeps back or a webhook sells twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalancer.collect.samples import NodeDirectory
from rebalancer.kube.wire import NodeWire
from rebalancer.state.requests import amount, in_units

_RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Machines:
    """The nodes of a cycle as the API server tells of them. ``capacity``: node name -> resource -> cores or bytes; unknown is absent."""

    directory: NodeDirectory
    capacity: Mapping[str, Mapping[str, float]]


def machines(nodes: Sequence[NodeWire], directory: NodeDirectory) -> Machines:
    return Machines(directory, {node.metadata.name: _capacity(node.status.capacity or {}) for node in nodes})


def _capacity(quantities: Mapping[str, str]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name in _RESOURCES:
        try:
            value = in_units(name, amount(name, quantities[name]))
        except (KeyError, ValueError):
            continue
        if value > 0:
            found[name] = value
    return found
