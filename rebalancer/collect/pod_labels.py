"""The labels of a series that say whose usage it is: of a pod, on a node. Nobody reads the others of a hundred thousand series.

A Prometheus that was told not to honour labels keeps the pod's own as ``exported_*``, and the plain ones name the scrape target.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

NODE, INSTANCE = "node", "instance"
_NO_LABEL = "not a label"
"""Names of labels hold no spaces."""


class PodLabels(msgspec.Struct, frozen=True, gc=False):
    """Empty where a series does not have the label. ``node`` is what the label that may name the node says, ``instance`` is empty where
    only that one may."""

    namespace: str = ""
    pod: str = ""
    exported_namespace: str = ""
    exported_pod: str = ""
    node: str = ""
    instance: str = ""


@lru_cache(maxsize=16)
def pod_labels_type(node_label: str | None) -> type[PodLabels] | None:
    """A `PodLabels` whose ``node`` is decoded from ``node_label``, or from the labels that usually name it. None: that label is one of the
    pod's own, and cannot be decoded twice."""
    if node_label is None:
        return PodLabels
    if node_label in {"namespace", "pod", "exported_namespace", "exported_pod"}:
        return None
    fields = [(NODE, str, msgspec.field(default="", name=node_label)), (INSTANCE, str, msgspec.field(default="", name=_NO_LABEL))]
    found: type[PodLabels] = msgspec.defstruct(  # type: ignore[assignment]  # a subclass of its base
        "PodLabels", fields, bases=(PodLabels,), frozen=True, gc=False, module=__name__
    )
    return found


def pod_labels_of(labels: Mapping[str, str], node_label: str | None) -> PodLabels:
    """The same from labels that are decoded already."""
    return PodLabels(
        namespace=labels.get("namespace", ""),
        pod=labels.get("pod", ""),
        exported_namespace=labels.get("exported_namespace", ""),
        exported_pod=labels.get("exported_pod", ""),
        node=labels.get(node_label or NODE, ""),
        instance="" if node_label else labels.get(INSTANCE, ""),
    )
