"""What a pod spec says about nodes regardless of other pods: selectors, required affinity, taints, volumes, topology domains.

None of it changes while a plan grows, and pods share it, so each distinct value is evaluated once over all nodes and kept. Every mask
that is returned is (nodes,), shared and read-only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.plan.grades import is_own
from rebalancer.plan.tolerations import CORDON, soft_untolerated, tolerates, untolerated
from rebalancer.state.arrays import BoolArray, IntArray, frozen
from rebalancer.state.cluster import ClusterState
from rebalancer.state.matching import LabelIndex
from rebalancer.state.scheduling import Constraints, NodeTerm, Taint, Toleration, VolumeZone

_ZONE_KEYS = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Zone label of a volume -> the label to try when the node does not have that one."""


@dataclass(frozen=True, slots=True)
class Domains:
    """A topology key over all nodes. ``of``: (nodes,) number of each node's domain, 0 where the node lacks the key."""

    of: IntArray
    names: tuple[str | None, ...]

    @property
    def size(self) -> int:
        """Numbers in use, the 0 for "no domain" included."""
        return len(self.names)

    def count(self, nodes: IntArray) -> IntArray:
        """(size,): entries of ``nodes`` in each domain; number 0 stays 0, since a node without the key shares nothing."""
        counts = np.bincount(self.of[nodes], minlength=self.size).astype(np.int64)
        counts[0] = 0
        return counts


class NodeRules:
    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._labels = LabelIndex(state.nodes.labels)
        self._masks: dict[Hashable, BoolArray] = {}
        self._soft: dict[tuple[bool, tuple[Toleration, ...]], IntArray] = {}
        self._domains: dict[str, Domains] = {}
        kinds: dict[tuple[Taint, ...], int] = {}
        self._taint_kind = np.array([kinds.setdefault(taints, len(kinds)) for taints in state.nodes.taints], dtype=np.int64)
        self._taint_kinds = tuple(kinds)

    def domains(self, key: str) -> Domains:
        found = self._domains.get(key)
        if found is None:
            numbers, names = self._labels.column(key)
            found = self._domains[key] = Domains(of=numbers, names=names)
        return found

    def selected(self, constraints: Constraints) -> BoolArray:
        """Nodes that match nodeSelector and required node affinity; a required affinity without terms matches none."""
        key = ("selected", constraints.node_selector, constraints.node_terms)
        mask = self._masks.get(key)
        if mask is None:
            mask = self._labels.pairs_mask(constraints.node_selector)
            if constraints.node_terms is not None:
                mask = mask & self.term_mask(constraints.node_terms)
            mask = self._keep(key, mask)
        return mask

    def term_mask(self, terms: tuple[NodeTerm, ...]) -> BoolArray:
        """Nodes that at least one term matches."""
        key = ("terms", terms)
        mask = self._masks.get(key)
        return self._keep(key, self._labels.node_terms_mask(terms, self.state.node_index)) if mask is None else mask

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        """Nodes without a NoSchedule or NoExecute taint that the tolerations leave uncovered."""
        key = ("tolerated", tolerations)
        mask = self._masks.get(key)
        if mask is None:
            verdicts = np.array([untolerated(taints, tolerations) is None for taints in self._taint_kinds], dtype=np.bool_)
            mask = self._keep(key, verdicts[self._taint_kind])
        return mask

    def open(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        """Nodes that are not cordoned, or all of them for a pod that tolerates cordons."""
        if any(tolerates(toleration, CORDON) for toleration in tolerations):
            return np.ones(len(self.state.nodes.names), dtype=np.bool_)
        return ~self.state.nodes.unschedulable

    def soft_taints(self, tolerations: tuple[Toleration, ...], *, own: bool = True) -> IntArray:
        """(nodes,): PreferNoSchedule taints of each node that the tolerations leave uncovered; without ``own``, those of others alone."""
        found = self._soft.get((own, tolerations))
        if found is None:
            kinds = [[taint for taint in taints if own or not is_own(taint)] for taints in self._taint_kinds]
            counts = np.array([soft_untolerated(taints, tolerations) for taints in kinds], dtype=np.int64)
            found = self._soft[own, tolerations] = counts[self._taint_kind]
            frozen(found)
        return found

    def zone_mask(self, zone: VolumeZone) -> BoolArray:
        """Nodes where a zone label of a volume lets it be attached; nodes without any zone or region label are not asked."""
        key = ("zone", zone)
        mask = self._masks.get(key)
        return self._keep(key, self._zone_mask(zone)) if mask is None else mask

    def _zone_mask(self, zone: VolumeZone) -> BoolArray:
        def allowed(labels: Mapping[str, str]) -> bool:
            if not any(key in labels for key in _ZONE_KEYS):
                return True
            value = labels.get(zone.key, labels.get(_ZONE_KEYS.get(zone.key, zone.key)))
            return value is not None and value in zone.values

        return np.array([allowed(labels) for labels in self.state.nodes.labels], dtype=np.bool_)

    def _keep(self, key: Hashable, mask: BoolArray) -> BoolArray:
        frozen(mask)
        self._masks[key] = mask
        return mask
