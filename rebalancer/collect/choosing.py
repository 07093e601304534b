"""Whether a way to measure speaks of enough of the cluster to be taken, or the next one is to be asked as well.

What is recorded is a short cut to the same numbers, so it has to be as good as they are: a rule that is evaluated for a part of the
cluster, or only since a few minutes ago, must not make unknown what a query would know.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebalancer.collect.pod_samples import PodSamples
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import Resolution
from rebalancer.collect.samples import NodeDirectory

ENOUGH = 0.5
"""A source that speaks of this share of the cluster is taken; a lesser one only when no other speaks of more."""


def why_not_recorded_nodes(answer: Answer, resolution: Resolution, *, directory: NodeDirectory, min_coverage: float) -> str:
    """Why what is recorded of nodes does not suffice, in words; empty when it does. ``min_coverage``: percent."""
    if not resolution.matched:
        return "there is none, or none of a node of the cluster"
    now = {node for node, present in zip(resolution.nodes, answer.present[:, -1].tolist(), strict=True) if node and present}
    if len(now) < _share(min_coverage) * len(directory.names):
        return f"they speak of {len(now)} of {len(directory.names)} nodes now"
    if not answer.present[:, 0].any():
        return "they do not reach back to the first window that is looked at"
    return ""


def why_not_recorded_pods(usage: PodSamples, *, directory: NodeDirectory, min_coverage: float) -> str:
    """The same of pods. Counted are the nodes whose pods they speak of: pods that have run to their end are nowhere measured."""
    homes = set(directory.pod_nodes.values()) & directory.names
    spoken = set(_nodes_spoken_of(usage, directory)) & homes
    if not spoken:
        return "there is none, or none of a pod of the cluster"
    if len(spoken) < _share(min_coverage) * len(homes):
        return f"they speak of pods on {len(spoken)} of {len(homes)} nodes"
    return ""


def _nodes_spoken_of(usage: PodSamples, directory: NodeDirectory) -> Iterator[str]:
    """Where the API server says that each pod is; of a pod that it does not place, what the series says."""
    known = len(usage.known)
    for pod in np.unique(usage.pod[usage.pod < known]).tolist():
        yield directory.pod_nodes[usage.known[pod]]
    strange = usage.pod >= known
    for pod, place in zip(usage.pod[strange].tolist(), usage.place[strange].tolist(), strict=True):
        yield directory.pod_nodes.get(usage.strangers[pod - known]) or usage.nodes[place]


def is_better(matched: int, *, than: int | None, recorded: bool, best_recorded: bool) -> bool:
    """A way that speaks of more; of two that speak of as much, the query itself. ``than`` None: there is no other."""
    return than is None or matched > than or (matched == than > 0 and best_recorded and not recorded)


def _share(min_coverage: float) -> float:
    return max(ENOUGH, min_coverage / 100)
