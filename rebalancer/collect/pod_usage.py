"""From the series of the pod queries to one usage a pod and node, and into how many queries the pods of a large cluster are divided.

A pod is known here by namespace, name and the node it was measured on. A StatefulSet's pod that moved a minute ago still has a series on
the old node: only the key with the node keeps the two apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import resolve, show
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import Dropped, DropReason, believed

PODS_PER_QUERY = 20_000
"""Some five megabytes of answer; the number of queries follows from the number of pods, never from that of workloads."""

PlacedPod = tuple[str, str, str]
"""(namespace, pod, node name or empty where the series does not say)"""


@dataclass(frozen=True, slots=True)
class PodUsage:
    usage: Mapping[PlacedPod, float]
    dropped: Dropped
    notes: tuple[str, ...] = ()


def shards(*, directory: NodeDirectory, namespaces: Sequence[str], pods: int) -> tuple[tuple[str, ...] | None, ...]:
    """Namespaces divided so that each query yields about `PODS_PER_QUERY` pods; ``(None,)``: one query for all."""
    counts: Counter[str] = Counter(dict.fromkeys(namespaces, 0))
    counts.update(namespace for namespace, _ in directory.pod_nodes)
    wanted = math.ceil(max(pods, len(directory.pod_nodes)) / PODS_PER_QUERY)
    wanted = min(wanted, len(counts))
    if wanted <= 1:
        return (None,)
    loads = [0] * wanted
    parts: list[list[str]] = [[] for _ in range(wanted)]
    # Known pods may be fewer than there are: namespaces without any still count a little, so that they are spread too.
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        lightest = loads.index(min(loads))
        parts[lightest].append(name)
        loads[lightest] += count + 1
    return tuple(tuple(sorted(part)) for part in parts)


def assemble_pods(
    answers: Iterable[Answer], *, directory: NodeDirectory, node_label: str | None, maximum: float | None, at: float, max_age_s: float
) -> PodUsage:
    """Join the shards, each of which may be gone before the next is asked for.

    A pod with two series on one node is unknown, one on a node that is not ours is foreign.
    """
    dropped: Dropped = Counter()
    usage: dict[PlacedPod, float] = {}
    seen: set[PlacedPod] = set()
    twice: dict[PlacedPod, str] = {}
    for answer in answers:
        values, counted = believed(answer, maximum=maximum)
        dropped.update(counted)
        stale = answer.stamps < at - max_age_s
        first: dict[PlacedPod, int] = {}
        placed = zip(_keys(answer, directory=directory, node_label=node_label), values[:, -1].tolist(), stale.tolist(), strict=True)
        for row, (key, value, is_stale) in enumerate(placed):
            if key is None:
                dropped[DropReason.FOREIGN] += 1
            elif key in first or key in seen:
                twice.setdefault(key, f"{_shown(answer, first.get(key), key)} and {show(answer.labels[row])}")
                dropped[DropReason.AMBIGUOUS] += 1
            else:
                first[key] = row
                if is_stale:
                    dropped[DropReason.STALE] += 1
                elif value == value:  # every amount that is believed is finite
                    usage[key] = value
        seen.update(first)
    for key in twice:
        dropped[DropReason.AMBIGUOUS] += usage.pop(key, None) is not None
    return PodUsage(usage=usage, dropped=+dropped, notes=_notes(twice))


def _keys(answer: Answer, *, directory: NodeDirectory, node_label: str | None) -> list[PlacedPod | None]:
    """The pod behind each series; None where it is no pod, or one on a node that is not ours."""
    keys: list[PlacedPod | None] = []
    namespaces: dict[str, str] = {}
    for labels, node in zip(answer.labels, _nodes(answer, directory=directory, node_label=node_label), strict=True):
        pod = labels.get("exported_pod") or labels.get("pod", "")
        if node is None or not pod:
            keys.append(None)
        else:
            namespace = labels.get("exported_namespace") or labels.get("namespace", "")
            keys.append((namespaces.setdefault(namespace, namespace), pod, node))  # few namespaces, many pods: each name is kept once
    return keys


def _shown(answer: Answer, row: int | None, key: PlacedPod) -> str:
    """The first series of a pod; of one in another shard only what makes its key is left."""
    return show(answer.labels[row]) if row is not None else show(dict(zip(("namespace", "pod", "node"), key, strict=True)))


def _nodes(answer: Answer, *, directory: NodeDirectory, node_label: str | None) -> list[str | None]:
    """Node of each series, empty where nothing can be said, None where it names a node that is not ours.

    If no series at all can be placed, the labels do not say the node here, and none is taken for foreign.
    """
    places = [(labels.get(node_label or "node", ""), "" if node_label else labels.get("instance", "")) for labels in answer.labels]
    distinct = list(dict.fromkeys(places))
    as_labels = [{node_label or "node": node, "instance": instance} for node, instance in distinct]
    found = resolve(as_labels, directory=directory, forced=node_label)
    node_of = dict(zip(distinct, found.nodes, strict=True))
    says = found.matched > 0
    return [node_of[place] or (None if says and any(place) else "") for place in places]


def _notes(twice: Mapping[PlacedPod, str]) -> tuple[str, ...]:
    if not twice:
        return ()
    (namespace, pod, _), shown = next(iter(twice.items()))
    return (f"{len(twice)} pods have more than one series and are unknown, such as {namespace}/{pod}: {shown}",)
