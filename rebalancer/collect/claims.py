"""What a pod's persistent volume claims say about where it may run: the node affinity and zones of the volumes behind them.

A claim that is missing, lost, going away or not bound says nothing, and nothing must not read as "anywhere": it is listed as unbound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalancer.collect.selectors import node_terms
from rebalancer.kube.wire import ClaimWire, PersistentVolumeWire
from rebalancer.state.scheduling import NodeTerm, VolumeZone

_ZONE_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SEVERAL_ZONES = "__"
_BOUND = "Bound"
_EXCLUSIVE = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What one claim restricts. ``name`` is ``namespace/name``; ``terms`` None: the volume has no node affinity."""

    name: str
    bound: bool
    exclusive: bool = False
    terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[VolumeZone, ...] = ()


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod, as `Constraints` holds them."""

    volume_terms: tuple[tuple[NodeTerm, ...], ...] = ()
    volume_zones: tuple[VolumeZone, ...] = ()
    exclusive: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()


class Claims:
    """All claims and volumes of one cycle."""

    def __init__(self, claims: Iterable[ClaimWire], volumes: Iterable[PersistentVolumeWire]) -> None:
        self._claims = {(wire.metadata.namespace, wire.metadata.name): wire for wire in claims}
        self._volumes = {wire.metadata.name: wire for wire in volumes}
        self._rules: dict[tuple[str, str], ClaimRules] = {}

    def of_pod(self, namespace: str, names: Iterable[str]) -> PodClaims:
        """The rules of the named claims together, each distinct rule once."""
        rules = [self._rules_of(namespace, name) for name in names]
        return PodClaims(
            volume_terms=tuple(dict.fromkeys(rule.terms for rule in rules if rule.terms is not None)),
            volume_zones=tuple(dict.fromkeys(zone for rule in rules for zone in rule.zones)),
            exclusive=tuple(rule.name for rule in rules if rule.exclusive),
            unbound=tuple(rule.name for rule in rules if not rule.bound),
        )

    def _rules_of(self, namespace: str, name: str) -> ClaimRules:
        found = self._rules.get((namespace, name))
        if found is None:
            found = self._rules[namespace, name] = self._read(namespace, name)
        return found

    def _read(self, namespace: str, name: str) -> ClaimRules:
        full_name = f"{namespace}/{name}"
        claim = self._claims.get((namespace, name))
        if claim is None:
            return ClaimRules(name=full_name, bound=False)
        exclusive = _EXCLUSIVE in (claim.spec.access_modes or ())
        volume = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if claim.status.phase != _BOUND or claim.metadata.deletion_timestamp is not None or volume is None:
            return ClaimRules(name=full_name, bound=False, exclusive=exclusive)
        affinity = volume.spec.node_affinity
        return ClaimRules(
            name=full_name,
            bound=True,
            exclusive=exclusive,
            terms=None if affinity is None else node_terms(affinity.required),
            zones=_zones(volume.metadata.labels or {}),
        )


def _zones(labels: Mapping[str, str]) -> tuple[VolumeZone, ...]:
    return tuple(VolumeZone(key, frozenset(labels[key].split(_SEVERAL_ZONES))) for key in _ZONE_KEYS if labels.get(key))
