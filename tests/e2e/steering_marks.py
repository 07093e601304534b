"""Everything of ours that a node or a pod can carry, as the API server shows it."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.steer.annotation_work import CRANE_KEYS
from tests.e2e.api import Api, Json

PREFIX = "rebalancer.dev/"


def marks(api: Api) -> list[str]:
    """``nodes/node-1: taint rebalancer.dev/hot`` and so on; empty when nothing of ours is on any node or pod."""
    return sorted(
        f"{resource}/{each['metadata']['name']}: {mark}"
        for resource in ("nodes", "pods")
        for each in api.list(resource)
        for mark in _of(each)
    )


def _of(thing: Json) -> Iterator[str]:
    meta, spec = thing["metadata"], thing["spec"]
    for what, keys in (
        ("annotation", meta.get("annotations") or {}),
        ("label", meta.get("labels") or {}),
        ("finalizer", meta.get("finalizers") or ()),
        ("taint", [each["key"] for each in spec.get("taints") or ()]),
        ("gate", [each["name"] for each in spec.get("schedulingGates") or ()]),
    ):
        yield from (f"{what} {key}" for key in keys if key.startswith(PREFIX) or key in CRANE_KEYS)
