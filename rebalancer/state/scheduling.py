"""What kube-scheduler looks at in a pod spec, as hashable values that many pods share.

Pods of one workload carry equal constraints, so each distinct value is kept once (`ClusterState.constraints`,
`ClusterState.label_sets`) and every rule over nodes is evaluated once per value, not once per pod.
Field meanings follow the Kubernetes API; absent lists are empty tuples, and an absent selector is None (it matches nothing), which
is not the same as an empty one (it matches everything).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a selector. ``operator``: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector; matchLabels became In. No requirement at all matches everything."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One nodeSelectorTerm: all expressions over labels and all fields (metadata.name) must hold; an empty one matches nothing."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A (anti-)affinity term. Both ``namespaces`` empty and ``namespace_selector`` None: the namespace of the pod that owns it."""

    topology_key: str
    selector: Selector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint. ``hard`` is whenUnsatisfiable: DoNotSchedule."""

    topology_key: str
    max_skew: int
    hard: bool
    selector: Selector | None
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_node_taints: bool = False
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class VolumeZone:
    """A zone or region label of a bound volume and the values it allows."""

    key: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Everything in a pod that restricts or ranks nodes, apart from its numbers (requests) and its own labels."""

    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred_affinity: tuple[tuple[int, PodTerm], ...] = ()
    preferred_anti_affinity: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    scheduler_name: str = "default-scheduler"
    volume_terms: tuple[tuple[NodeTerm, ...], ...] = ()
    """One entry a bound volume with node affinity: the volume's required terms (ORed)."""
    volume_zones: tuple[VolumeZone, ...] = ()
    exclusive_claims: tuple[str, ...] = ()
    """``namespace/name`` of ReadWriteOncePod claims."""
    unbound_claims: tuple[str, ...] = ()
    """Claims that are missing, lost, or not yet bound: where the pod may go is not known, so nowhere is promised."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The namespace and labels of a pod: what other pods' selectors, and disruption budgets, see of it."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    _lookup: dict[str, str] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lookup", dict(self.labels))

    def get(self, key: str) -> str | None:
        return self._lookup.get(key)

    def as_dict(self) -> dict[str, str]:
        return dict(self._lookup)
