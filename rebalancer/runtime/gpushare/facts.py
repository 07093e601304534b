"""What is kept of a pod, a node and a ConfigMap: the few facts that matter to shared devices, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.kube.gpu_sharing import (
    UNHEALTHY_PREFIX,
    GpuAnnotationsWire,
    GpuContainerWire,
    GpuNodeWire,
    GpuPodWire,
    UnhealthyWire,
)
from rebalancer.kube.watch_events import version_number
from rebalancer.steer.gpushare.allocations import Share, share_of
from rebalancer.steer.gpushare.devices import Devices, GpuAsk, ask_of, devices_of, read_unhealthy
from rebalancer.steer.gpushare.ledger import Holder

_ENDED = frozenset(("Succeeded", "Failed"))


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod, whether or not it asks for memory of a GPU. ``node`` is empty while it is not bound. ``version``: resourceVersion."""

    uid: str
    namespace: str
    name: str
    version: str
    node: str
    ended: bool
    leaving: bool
    ask: GpuAsk
    share: Share

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def number(self) -> int:
        """The version, for putting two in order; 0 when it is no number."""
        return version_number(self.version) or 0

    @property
    def matters(self) -> bool:
        """Whether it asks for a device, or says that it holds one."""
        return self.ask.asks or bool(self.share.of_device) or bool(self.share.oddity)

    @property
    def holds(self) -> bool:
        """Whether it counts on its node. A pod that is leaving does until it has left."""
        return bool(self.node) and not self.ended and self.matters

    def holder(self) -> Holder:
        return Holder(self.uid, self.namespace, self.name, self.share)


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node that shares devices. ``load``: the annotation with the measured load of its devices, empty without."""

    name: str
    devices: Devices
    load: str = ""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """``oddity``: what in the list is no device."""

    devices: frozenset[int]
    oddity: str = ""


def gpu_pod(wire: GpuPodWire) -> GpuPod:
    metadata, spec = wire.metadata, wire.spec
    ask = ask_of(_limits(spec.containers), _limits(spec.init_containers))
    annotations = metadata.annotations or GpuAnnotationsWire()
    node = spec.node_name or ""
    return GpuPod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        version=metadata.resource_version,
        node=node,
        ended=wire.status.phase in _ENDED,
        leaving=metadata.deletion_timestamp is not None,
        ask=ask,
        share=share_of(annotations.written(), asked=ask.memory) if node else Share(),
    )


def kept_pod(wire: GpuPodWire) -> GpuPod | None:
    """The pod, if it matters and has not ended."""
    pod = gpu_pod(wire)
    return pod if pod.matters and not pod.ended else None


def kept_node(wire: GpuNodeWire) -> GpuNode | None:
    """The node, if it shares devices."""
    status = wire.status
    devices = devices_of(status.capacity.amounts() if status.capacity else {}, status.allocatable.amounts() if status.allocatable else None)
    load = wire.metadata.annotations.load if wire.metadata.annotations else None
    return None if devices is None else GpuNode(wire.metadata.name, devices, load or "")


def kept_unhealthy(wire: UnhealthyWire) -> Unhealthy | None:
    """What a ConfigMap says of a node's devices, if it is one that does."""
    if not wire.metadata.name.startswith(UNHEALTHY_PREFIX):
        return None
    return Unhealthy(*read_unhealthy(wire.data.gpus if wire.data else None))


def node_of(name: str) -> str:
    """The node that a ConfigMap speaks of."""
    return name.removeprefix(UNHEALTHY_PREFIX)


def _limits(containers: tuple[GpuContainerWire, ...] | None) -> list[dict[str, str]]:
    limits = [each.resources.limits if each.resources else None for each in containers or ()]
    return [{} if each is None or each.gpu_memory is None else {"aliyun.com/gpu-mem": each.gpu_memory} for each in limits]
