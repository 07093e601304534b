"""Everything that is read of a pod to know which devices it holds, as plain values. Only pods on a node have any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_NOTHING: Mapping[str, str] = {}

TENCENT_INDEX = "tencent.com/predicate-gpu-idx-"
TENCENT_CONTAINERS = 8
"""Containers of a pod whose index annotations are read."""
PLACE_ANNOTATIONS = frozenset(
    (
        "ALIYUN_COM_GPU_MEM_IDX",
        "ALIYUN_COM_GPU_MEM_POD",
        "ALIYUN_COM_GPU_MEM_DEV",
        "ALIYUN_COM_GPU_MEM_ASSIGNED",
        "scheduler.framework.gpushare.allocation",
        "hami.io/vgpu-devices-allocated",
        "hami.io/vgpu-devices-to-allocate",
        "hami.io/vgpu-mig-allocations",
        "hami.io/vgpu-node",
        "hami.io/bind-phase",
        "volcano.sh/vgpu-ids-new",
        "volcano.sh/devices-to-allocate",
        "volcano.sh/vgpu-node",
        "volcano.sh/bind-phase",
        "volcano.sh/gpu-index",
        "scheduling.koordinator.sh/device-allocated",
        "tencent.com/gpu-assigned",
        "run.ai/reserve_for_gpu_index",
        *(f"{TENCENT_INDEX}{container}" for container in range(TENCENT_CONTAINERS)),
    )
)
KAI_GROUP = "runai-gpu-group"
"""Label of one group, and with a slash the beginning of the labels of several."""


@dataclass(frozen=True, slots=True)
class KubeletDevice:
    """A device in ``status.containerStatuses[].allocatedResourcesStatus``. ``healthy`` None: not told."""

    container: str
    resource: str
    id: str
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """A device that a claim of the pod was given. ``claim`` names it in a sentence; ``shared``: other pods use the same claim."""

    claim: str
    driver: str
    pool: str
    device: str
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceClues:
    """``annotations``: of `PLACE_ANNOTATIONS`; ``groups``: of KAI, from the pod's labels; ``missing_claims``: names of claims that are not
    there or not allocated; ``node``: the name of the node that the pod is on. The ids of a kubelet that are made up are not among
    ``kubelet``."""

    node: str
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    groups: tuple[str, ...] = ()
    kubelet: tuple[KubeletDevice, ...] = ()
    claimed: tuple[ClaimedDevice, ...] = ()
    missing_claims: tuple[str, ...] = ()


def kai_groups(labels: Mapping[str, str] | None) -> tuple[str, ...]:
    """The groups that the labels of a pod name."""
    if not labels:
        return ()
    several = f"{KAI_GROUP}/"
    return tuple(
        sorted({value or key.removeprefix(several) for key, value in labels.items() if key == KAI_GROUP or key.startswith(several)})
    )
