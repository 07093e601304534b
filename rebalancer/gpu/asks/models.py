"""Which model a pod names, in its node selector or in the hints of HAMi."""

from __future__ import annotations

from rebalancer.gpu.clues import PodClues
from rebalancer.state.gpu import ANY_MODEL, ModelConstraint

USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"


def selected_model(pod: PodClues) -> ModelConstraint:
    """By node selector: one exact name a label. Several labels that differ name no model of their own; affinity settles that."""
    models = tuple(dict.fromkeys(value for _, value in pod.selector if value))
    return ModelConstraint(models=models) if len(models) == 1 else ANY_MODEL


def hinted_model(pod: PodClues) -> ModelConstraint:
    """By node selector and by the comma lists of HAMi's annotations."""
    return ModelConstraint(
        models=selected_model(pod).models,
        like=_list(pod.annotation(USE_TYPE)),
        unlike=_list(pod.annotation(NO_TYPE)),
        uuids=_list(pod.annotation(USE_UUID)),
        not_uuids=_list(pod.annotation(NO_UUID)),
    )


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
