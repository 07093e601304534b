"""A cluster with hot nodes, small enough to be cured within a minute or two, for scenarios about something else than the cure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import budget, deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane

SHOP = "e2e-heat"
HIGH = 0.70
NODES = 6
HOT = ("node-0", "node-1")
BUSY = 6
"""Deployments of two replicas: 12 pods of 0.55 cores on 8 cores."""
REPLICAS = 2 * BUSY


@contextlib.contextmanager
def heated(plane: ControlPlane, folder: Path) -> Iterator[Ground]:
    """Two nodes at 84 percent and four idle ones; each Deployment may lack one pod."""
    with ground(plane, folder, [HollowNode(f"node-{number}") for number in range(NODES)]) as own:
        own.namespace(SHOP)
        with own.only(*HOT):
            spec = pod_spec(cpu="100m", memory="128Mi")
            own.apply(*(deployment(f"busy-{n}", SHOP, spec, replicas=2, annotations=uses(cpu="550m")) for n in range(BUSY)))
            own.settled(SHOP, REPLICAS)
        own.apply(*(budget(f"busy-{n}", SHOP, app=f"busy-{n}", maxUnavailable=1) for n in range(BUSY)))
        assert hot(own) == set(HOT), own.loads()
        yield own


def hot(own: Ground) -> set[str]:
    """The nodes that are hot, in truth."""
    return {name for name, load in own.loads().items() if load > HIGH}


def names(own: Ground) -> set[str]:
    return {pod["metadata"]["name"] for pod in own.pods(SHOP)}
