"""What a pod says about GPUs, taken from its wire struct once, when it is new or has changed; None of nearly all pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rebalancer.gpu.clues import ASK_ANNOTATIONS, MODEL_LABELS, ContainerClues, PodClues, pairs
from rebalancer.gpu.places.clues import PLACE_ANNOTATIONS, KubeletDevice, PlaceClues, kai_groups
from rebalancer.gpu.places.kai import REPORTED
from rebalancer.kube.wire_pods import ContainerStatusWire, ContainerWire, PodSpecWire, PodWire

GPU_ANNOTATIONS = ASK_ANNOTATIONS | PLACE_ANNOTATIONS
_ASKING = frozenset(("gpu-fraction", "gpu-memory", "run.ai/reserve_for_gpu_index"))
"""Annotations that ask for a GPU where no resource does."""
_ANY_CONTAINER = ""
_HEALTH = {"Healthy": True, "Unhealthy": False}
_OF_CLAIM = "claim:"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """``name``: of the ResourceClaim object, empty while it was not made; ``claim``: what the pod calls it. ``asks``: its requests are
    asks of the pod; else it was made for a resource that the pod asks for."""

    claim: str
    name: str
    container: str = _ANY_CONTAINER
    asks: bool = True


@dataclass(frozen=True, slots=True)
class PodGpu:
    """``place.node`` is the name of its node, or empty. ``tells``: something in it may tell which devices are the pod's.
    ``names``: something in it may name devices of the node for others as well. ``address``: the IP that its containers share."""

    clues: PodClues
    place: PlaceClues
    uses: tuple[ClaimUse, ...]
    tells: bool
    names: bool
    address: str = ""


def without_gpu_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """What other rules read. The lists of devices are long, and nobody else's business."""
    if not annotations or GPU_ANNOTATIONS.isdisjoint(annotations):
        return annotations
    return {key: text for key, text in annotations.items() if key not in GPU_ANNOTATIONS}


def extended_containers(spec: PodSpecWire) -> tuple[ContainerClues, ...]:
    """All containers of a pod of which one asks for an extended resource; nothing for the others. The same for equal templates."""
    if not any(_names_some(each) for each in (*(spec.containers or ()), *(spec.init_containers or ()))):
        return ()
    return tuple(_containers(spec))


def pod_gpu(pod: PodWire, annotations: Mapping[str, str], extended: tuple[ContainerClues, ...]) -> PodGpu | None:
    """``annotations``: those that are read, by name; ``extended``: as `extended_containers`. None: the pod asks for nothing of the kind."""
    spec = pod.spec
    if not extended and not spec.resource_claims and (not annotations or _ASKING.isdisjoint(annotations)):
        return None
    clues = PodClues(
        namespace=pod.metadata.namespace,
        containers=extended or tuple(_containers(spec)),
        annotations=pairs(annotations, ASK_ANNOTATIONS),
        selector=pairs(spec.node_selector, MODEL_LABELS),
    )
    place = PlaceClues(
        node=spec.node_name or "",
        annotations={key: annotations[key] for key in sorted(annotations.keys() & PLACE_ANNOTATIONS)},
        groups=kai_groups(pod.metadata.labels),
        kubelet=tuple(_given(pod.status.container_statuses)),
    )
    uses = tuple(_uses(pod))
    return PodGpu(
        clues=clues,
        place=place,
        uses=uses,
        tells=bool(place.annotations or place.groups or place.kubelet or uses),
        names=bool(place.kubelet or REPORTED in place.annotations),
        address=pod.status.pod_ip or "",
    )


def _names_some(container: ContainerWire) -> bool:
    resources = container.resources
    if resources is None:
        return False
    return any("/" in name for name in resources.limits or ()) or any("/" in name for name in resources.requests or ())


def _containers(spec: PodSpecWire) -> Iterator[ContainerClues]:
    for each in spec.containers or ():
        yield _container(each, init=False)
    for each in spec.init_containers or ():
        yield _container(each, init=each.restart_policy != "Always")


def _container(wire: ContainerWire, *, init: bool) -> ContainerClues:
    resources = wire.resources
    return ContainerClues(
        name=wire.name,
        limits=pairs(_extended(resources.limits)) if resources is not None else (),
        requests=pairs(_extended(resources.requests)) if resources is not None else (),
        init=init,
    )


def _extended(quantities: Mapping[str, str] | None) -> Mapping[str, str]:
    return {name: text for name, text in (quantities or {}).items() if "/" in name}


def _given(statuses: tuple[ContainerStatusWire, ...] | None) -> Iterator[KubeletDevice]:
    for status in statuses or ():
        for resource in status.allocated_resources_status or ():
            if not resource.name.startswith(_OF_CLAIM):
                for each in resource.resources or ():
                    yield KubeletDevice(status.name, resource.name, each.resource_id, _HEALTH.get(each.health or ""))


def _uses(pod: PodWire) -> Iterator[ClaimUse]:
    made = {each.name: each.resource_claim_name or "" for each in pod.status.resource_claim_statuses or ()}
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    users = [(claim.name, each.name) for each in containers if each.resources is not None for claim in each.resources.claims or ()]
    count = Counter(claim for claim, _ in users)
    only = {claim: container for claim, container in users if count[claim] == 1}
    for wire in pod.spec.resource_claims or ():
        yield ClaimUse(wire.name, wire.resource_claim_name or made.get(wire.name, ""), only.get(wire.name, _ANY_CONTAINER))
    special = pod.status.extended_resource_claim_status
    if special is not None and special.resource_claim_name:
        yield ClaimUse(special.resource_claim_name, special.resource_claim_name, asks=False)
