"""The scheduling constraints of pods, each distinct value once.

Pods of one workload carry the same bytes, so the encoded fields are the key of a cache and the translation runs once a template, not once a
pod. ``spec.nodeName`` is where a pod is, not where it may be, and is no constraint; the node that a DaemonSet names in its affinity is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import msgspec

from rebalancer.collect.claims import PodClaims
from rebalancer.collect.selectors import node_term, node_terms, selector
from rebalancer.kube.wire_pods import (
    AffinityWire,
    ContainerWire,
    NodeAffinityWire,
    PodAffinityWire,
    PodSpecWire,
    PodTermWire,
    SpreadWire,
    TolerationWire,
)
from rebalancer.state.scheduling import Constraints, HostPort, PodTerm, SpreadConstraint, Toleration

WeightedPodTerms: TypeAlias = tuple[tuple[int, PodTerm], ...]

_NO_CLAIMS = PodClaims()
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an empty hostIP means, nothing is bound to it


class ConstraintTable:
    """Collects distinct constraints; `row` gives each pod the number of its own."""

    def __init__(self) -> None:
        self._rows: dict[Constraints, int] = {}
        self._values: list[Constraints] = []
        self._templates: dict[bytes, int] = {}
        self._encode = msgspec.json.Encoder().encode

    def __len__(self) -> int:
        return len(self._values)

    def value(self, row: int) -> Constraints:
        return self._values[row]

    def row(self, spec: PodSpecWire) -> int:
        """Of a pod without claims."""
        ports = host_ports(spec)
        key = self._encode(
            (spec.scheduler_name, spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints, ports)
        )
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = self._number(_constraints(spec, ports))
        return found

    def with_claims(self, row: int, claims: PodClaims) -> int:
        """The row of the same constraints with what the claims add."""
        if claims == _NO_CLAIMS:
            return row
        return self._number(
            replace(
                self._values[row],
                volume_terms=claims.volume_terms,
                volume_zones=claims.volume_zones,
                exclusive_claims=claims.exclusive,
                unbound_claims=claims.unbound,
            )
        )

    def _number(self, value: Constraints) -> int:
        row = self._rows.setdefault(value, len(self._values))
        if row == len(self._values):
            self._values.append(value)
        return row


def host_ports(spec: PodSpecWire) -> tuple[HostPort, ...]:
    """Ports of the node that containers and sidecars take; ordinary init containers take none."""
    found: list[HostPort] = []
    for container in spec.containers or ():
        if container.ports:
            found.extend(_ports(container))
    for container in spec.init_containers or ():
        if container.ports and container.restart_policy == "Always":
            found.extend(_ports(container))
    return tuple(found)


def _ports(container: ContainerWire) -> Iterable[HostPort]:
    for port in container.ports or ():
        if port.host_port:
            yield HostPort(ip=port.host_ip or _ANY_ADDRESS, protocol=port.protocol or "TCP", port=port.host_port)


def _constraints(spec: PodSpecWire, ports: tuple[HostPort, ...]) -> Constraints:
    affinity = spec.affinity or AffinityWire()
    nodes = affinity.node_affinity or NodeAffinityWire()
    near, apart = affinity.pod_affinity or PodAffinityWire(), affinity.pod_anti_affinity or PodAffinityWire()
    return Constraints(
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        node_terms=node_terms(nodes.required),
        preferred_nodes=tuple((wire.weight, node_term(wire.preference)) for wire in nodes.preferred or ()),
        tolerations=tuple(_toleration(wire) for wire in spec.tolerations or ()),
        affinity=tuple(_pod_term(wire) for wire in near.required or ()),
        anti_affinity=tuple(_pod_term(wire) for wire in apart.required or ()),
        preferred_affinity=_weighted(near),
        preferred_anti_affinity=_weighted(apart),
        spread=tuple(_spread(wire) for wire in spec.topology_spread_constraints or ()),
        host_ports=ports,
        scheduler_name=spec.scheduler_name or "default-scheduler",
    )


def _toleration(wire: TolerationWire) -> Toleration:
    return Toleration(key=wire.key or "", operator=wire.operator or "Equal", value=wire.value or "", effect=wire.effect or "")


def _weighted(wire: PodAffinityWire) -> WeightedPodTerms:
    return tuple((each.weight, _pod_term(each.pod_affinity_term)) for each in wire.preferred or ())


def _pod_term(wire: PodTermWire) -> PodTerm:
    return PodTerm(
        topology_key=wire.topology_key,
        selector=selector(wire.label_selector),
        namespaces=wire.namespaces or (),
        namespace_selector=selector(wire.namespace_selector),
    )


def _spread(wire: SpreadWire) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=wire.topology_key,
        max_skew=wire.max_skew,
        hard=wire.when_unsatisfiable != "ScheduleAnyway",
        selector=selector(wire.label_selector),
        min_domains=1 if wire.min_domains is None else wire.min_domains,
        honor_node_affinity=wire.node_affinity_policy != "Ignore",
        honor_node_taints=wire.node_taints_policy == "Honor",
        match_label_keys=wire.match_label_keys or (),
    )
