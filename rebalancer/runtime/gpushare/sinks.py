"""What the book is told by a list, object by object and then as a whole, and by a watch: one sink for each watched resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import msgspec

from rebalancer.kube.gpu_sharing import UNHEALTHY_PREFIX, GpuNodeWire, GpuPodWire, UnhealthyWire
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.facts import GpuNode, GpuPod, Unhealthy, gpu_pod, kept_node, kept_pod, kept_unhealthy, node_of

T_contra = TypeVar("T_contra", bound=msgspec.Struct, contravariant=True)


class Sink(Protocol[T_contra]):
    """What is fed. Called by one thread."""

    def begin(self) -> None:
        """A list begins."""

    def listed(self, item: T_contra) -> None:
        """An object of the list."""

    def complete(self, *, version: int, odd: Mapping[str, str]) -> None:
        """The list is complete as of ``version``. ``odd``: objects that could not be read, and why."""

    def present(self, key: str, version: int, item: T_contra) -> None: ...

    def absent(self, key: str, version: int) -> None: ...


class PodSink:
    """Pods of the list that matter wait here until it is complete; of the watch, all are told to the book, which keeps what matters."""

    def __init__(self, book: ShareBook) -> None:
        self._book = book
        self._found: dict[str, GpuPod] = {}

    def begin(self) -> None:
        self._found = {}

    def listed(self, item: GpuPodWire) -> None:
        pod = kept_pod(item)
        if pod is not None:
            self._found[pod.key] = pod

    def complete(self, *, version: int, odd: Mapping[str, str]) -> None:
        self._book.replace_pods(self._found, version=version, odd=odd)
        self._found = {}

    def present(self, key: str, version: int, item: GpuPodWire) -> None:
        pod = gpu_pod(item)
        if pod.matters:
            self._book.take_pod(pod)
        else:
            self._book.forget_pod(key, version)

    def absent(self, key: str, version: int) -> None:
        self._book.lose_pod(key, version)


class NodeSink:
    def __init__(self, book: ShareBook) -> None:
        self._book = book
        self._found: dict[str, GpuNode] = {}

    def begin(self) -> None:
        self._found = {}

    def listed(self, item: GpuNodeWire) -> None:
        node = kept_node(item)
        if node is not None:
            self._found[node.name] = node

    def complete(self, *, version: int, odd: Mapping[str, str]) -> None:
        for name in self._book.nodes():
            if name not in self._found and name not in odd:
                self._book.take_node(name, None)
        for name, node in self._found.items():
            self._book.take_node(name, node)
        self._found = {}

    def present(self, key: str, version: int, item: GpuNodeWire) -> None:
        node = kept_node(item)
        if node != self._book.node(key):
            self._book.take_node(key, node)

    def absent(self, key: str, version: int) -> None:
        self._book.take_node(key, None)


class UnhealthySink:
    def __init__(self, book: ShareBook) -> None:
        self._book = book
        self._found: dict[str, Unhealthy] = {}

    def begin(self) -> None:
        self._found = {}

    def listed(self, item: UnhealthyWire) -> None:
        unhealthy = kept_unhealthy(item)
        if unhealthy is not None:
            self._found[node_of(item.metadata.name)] = unhealthy

    def complete(self, *, version: int, odd: Mapping[str, str]) -> None:
        for node in self._book.unhealthy_nodes():
            if node not in self._found:
                self._book.take_unhealthy(node, None)
        for node, unhealthy in self._found.items():
            self._book.take_unhealthy(node, unhealthy)
        self._found = {}

    def present(self, key: str, version: int, item: UnhealthyWire) -> None:
        unhealthy = kept_unhealthy(item)
        if unhealthy is not None:
            self._book.take_unhealthy(node_of(item.metadata.name), unhealthy)

    def absent(self, key: str, version: int) -> None:
        name = key.partition("/")[2]
        if name.startswith(UNHEALTHY_PREFIX):
            self._book.take_unhealthy(node_of(name), None)
