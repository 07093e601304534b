"""From the labels of a series to the node of the cluster that it speaks of.

Installations differ: a label ``node`` put there by relabelling, an exporter that is known by its own pod, an ``instance`` that is a name,
an address, or an address and port. The ways are tried for each series in the order of `Way`; the first that names a node of this cluster
wins. A label ``node`` that names no node of ours means another cluster's node as long as it names ours in other series: such a series is
foreign, and its ``instance``, which may be equal to one of ours, is not asked.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from rebalancer.collect.prometheus_wire import Labels
from rebalancer.collect.samples import NodeDirectory, PodKey

SHOWN_FOREIGN = 3


class Way(Enum):
    """How a node was found, in the order of trust."""

    FORCED = "the label of metrics.nodeLabel"
    NODE = "label node"
    EXPORTER_POD = "the exporter's pod"
    UNAME = "node_uname_info"
    INSTANCE = "label instance"


@dataclass(frozen=True, slots=True)
class Lookups:
    """What Prometheus itself may know; each is asked only when a series needs it, at most once in a cycle."""

    exporter_pods: Callable[[Iterable[str]], Mapping[PodKey, str]]
    """Namespaces -> (namespace, pod) -> node label of kube_pod_info."""
    unames: Callable[[], Mapping[str, str]]
    """instance -> nodename of node_uname_info; an instance with two names is left out."""


NO_LOOKUPS = Lookups(exporter_pods=lambda _: {}, unames=dict)


@dataclass(frozen=True, slots=True)
class Resolution:
    nodes: tuple[str, ...]
    """One a series; empty where it matches no node of the cluster."""
    ways: Mapping[Way, int]
    foreign: tuple[int, ...]
    """Rows of the series that match no node."""

    @property
    def matched(self) -> int:
        """How many nodes of the cluster have a series."""
        return len({node for node in self.nodes if node})

    def describe(self) -> str:
        """``label node (57), the exporter's pod (3)``."""
        return ", ".join(f"{way.value} ({self.ways[way]})" for way in Way if self.ways.get(way))


def resolve(labels: Sequence[Labels], *, directory: NodeDirectory, forced: str | None = None, lookups: Lookups = NO_LOOKUPS) -> Resolution:
    """The node of each series. ``forced`` names the only label that may be asked; None detects."""
    nodes = [""] * len(labels)
    ways: Counter[Way] = Counter()

    def take(way: Way, rows: Iterable[int], find: Callable[[Labels], str]) -> None:
        for row in rows:
            if node := find(labels[row]):
                nodes[row] = node
                ways[way] += 1

    def left() -> list[int]:
        return [row for row in range(len(labels)) if not nodes[row]]

    if forced is not None:
        take(Way.FORCED, range(len(labels)), lambda one: match_node(one.get(forced, ""), directory))
        return _result(nodes, ways)
    take(Way.NODE, range(len(labels)), lambda one: match_node(one.get("node", ""), directory))
    node_label_means_node = ways[Way.NODE] > 0

    def open_rows() -> list[int]:
        return [row for row in left() if not (node_label_means_node and labels[row].get("node"))]

    take(Way.EXPORTER_POD, open_rows(), lambda one: _known(directory.pod_nodes.get(_pod_key(one), ""), directory))
    if rows := [row for row in open_rows() if all(_pod_key(labels[row]))]:
        pods = lookups.exporter_pods({labels[row]["namespace"] for row in rows})
        take(Way.EXPORTER_POD, rows, lambda one: _known(pods.get(_pod_key(one), ""), directory))
    if rows := [row for row in open_rows() if labels[row].get("instance")]:
        direct = [row for row in rows if match_node(labels[row]["instance"], directory)]
        if len(direct) < len(rows):  # a name in `instance` needs no table, and asking for one costs a query
            names = lookups.unames()
            take(Way.UNAME, rows, lambda one: match_node(names.get(one["instance"], ""), directory))
        take(Way.INSTANCE, open_rows(), lambda one: match_node(one.get("instance", ""), directory))
    return _result(nodes, ways)


def _result(nodes: list[str], ways: Counter[Way]) -> Resolution:
    return Resolution(nodes=tuple(nodes), ways=dict(ways), foreign=tuple(row for row, node in enumerate(nodes) if not node))


def _pod_key(labels: Labels) -> PodKey:
    return labels.get("namespace", ""), labels.get("pod", "")


def _known(name: str, directory: NodeDirectory) -> str:
    return name if name in directory.names else ""


def match_node(text: str, directory: NodeDirectory) -> str:
    """The node that a label value names: its name, its address, either with a port or in a URL. Empty when there is none."""
    if not text:
        return ""
    for candidate in _spellings(text):
        if candidate in directory.names:
            return candidate
        if node := directory.addresses.get(candidate):
            return _known(node, directory)
    return ""


@lru_cache(maxsize=65536)
def _spellings(text: str) -> tuple[str, ...]:
    """What may stand in the tables for a label value: as it is, without scheme and path, without port, as the shortest form of an IP."""
    bare = re.sub(r"^[a-z][a-z0-9+.-]*://", "", text).partition("/")[0]
    forms = [text, bare]
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::\d+)?", bare)
    if bracketed:
        forms.append(bracketed[1])
    elif bare.count(":") == 1:
        forms.append(bare.partition(":")[0])
    for form in tuple(forms):
        try:
            forms.append(str(ipaddress.ip_address(form.partition("%")[0])))
        except ValueError:
            continue
    return tuple(dict.fromkeys(form for form in forms if form))


def show(labels: Labels) -> str:
    """Labels as PromQL writes them, in a stable order."""
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"


def describe_foreign(labels: Sequence[Labels], resolution: Resolution) -> str:
    """``2 series match no node of the cluster: {...}, {...}``; empty when all do."""
    if not resolution.foreign:
        return ""
    shown = ", ".join(show(labels[row]) for row in resolution.foreign[:SHOWN_FOREIGN])
    more = len(resolution.foreign) - SHOWN_FOREIGN
    return f"{len(resolution.foreign)} series match no node of the cluster: {shown}" + (f" and {more} more" if more > 0 else "")
