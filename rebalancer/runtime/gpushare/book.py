"""What is known of all shared devices at this moment: pods, nodes, unhealthy devices, and the bindings that are under way.

It is told things from three sides, in any order: by watches, which may lag behind, repeat themselves or miss something; by reads of
single nodes and pods, which are newer than the watch; and by the binder, of what it is doing. The version of each pod puts that in order:
older news never undo newer ones. Nothing here asks the API server; any thread may call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from rebalancer.kube.watch_events import version_number
from rebalancer.runtime.gpushare.facts import GpuNode, GpuPod, Unhealthy
from rebalancer.steer.gpushare.ledger import NodeLedger, node_ledger
from rebalancer.steer.gpushare.register import Entry

_MOST_DEPARTED = 4096
"""How many deletions are remembered, for a read that began before and ends after one of them."""


class ShareBook:
    """``most_free`` and ``own`` are read by the verb filter without the lock: see `filter_nodes`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pods: dict[str, GpuPod] = {}
        self._on: dict[str, dict[str, GpuPod]] = {}
        self._nodes: dict[str, GpuNode] = {}
        self._unhealthy: dict[str, Unhealthy] = {}
        self._pending: dict[str, dict[str, Entry]] = {}
        self._departed: OrderedDict[str, int] = OrderedDict()
        self._odd: dict[str, str] = {}
        self.loads: dict[str, str] = {}
        """Node -> the annotation with the measured load of its devices."""
        self.most_free: dict[str, int] = {}
        self.own: dict[str, dict[str, int]] = {}

    # ---- pods ---------------------------------------------------------------------------------------------------------

    def take_pod(self, pod: GpuPod) -> None:
        """The pod as it is since its version; nothing happens if something newer is known."""
        with self._lock:
            before = self._pods.get(pod.key)
            if (before is not None and before.number > pod.number) or self._departed.get(pod.key, 0) > pod.number:
                return
            self._put(pod.key, pod if pod.matters and not pod.ended else None)
            self._settle(pod)

    def lose_pod(self, key: str, version: int) -> None:
        """A pod was deleted at ``version``."""
        with self._lock:
            self._departed[key] = version
            self._departed.move_to_end(key)
            if len(self._departed) > _MOST_DEPARTED:
                self._departed.popitem(last=False)
            before = self._pods.get(key)
            if before is not None and before.number <= version:
                self._put(key, None)
            self._void(key, before=version)

    def forget_pod(self, key: str, version: int) -> None:
        """Since ``version`` a pod is none that matters."""
        with self._lock:
            before = self._pods.get(key)
            if before is not None and before.number <= version:
                self._put(key, None)

    def replace_pods(self, pods: Mapping[str, GpuPod], *, version: int, odd: Mapping[str, str]) -> int:
        """A list of all pods that matter, as of ``version``. How many were known otherwise, though not from later.

        ``odd``: pods that could not be read, and why; what is known of them stays.
        """
        with self._lock:
            gone = [key for key, pod in self._pods.items() if key not in pods and key not in odd and pod.number <= version]
            changed = [
                pod for key, pod in pods.items() if (known := self._pods.get(key)) is None or (known.number < pod.number and known != pod)
            ]
            for key in gone:
                self._put(key, None)
            for pod in changed:
                self.take_pod(pod)
            self._odd = dict(odd)
            return len(gone) + len(changed)

    def take_node_pods(self, node: str, pods: Iterable[GpuPod], *, version: int) -> None:
        """All pods that were bound to ``node`` at ``version``."""
        with self._lock:
            listed = {pod.key: pod for pod in pods}
            here = [pod for pod in self._on.get(node, {}).values() if pod.key not in listed and pod.number <= version]
            for pod in here:
                self._put(pod.key, None)
            for pod in listed.values():
                self.take_pod(pod)

    def pod(self, namespace: str, name: str) -> GpuPod | None:
        """A pod that matters, as it is known; it may have changed since."""
        with self._lock:
            return self._pods.get(f"{namespace}/{name}")

    def is_on(self, node: str, uid: str) -> bool:
        """Whether a pod is known to hold memory of ``node``."""
        with self._lock:
            return uid in self._on.get(node, {})

    def _put(self, key: str, pod: GpuPod | None) -> None:
        before = self._pods.pop(key, None)
        if pod is not None:
            self._pods[key] = pod
        if before is not None and before.holds:
            self._on[before.node].pop(before.uid, None)
            if not self._on[before.node]:
                del self._on[before.node]
        if pod is not None and pod.holds:
            self._on.setdefault(pod.node, {})[pod.uid] = pod
        for node in {each.node for each in (before, pod) if each is not None and each.node}:
            self._refresh(node)

    # ---- bindings under way -------------------------------------------------------------------------------------------

    def pend(self, node: str, entry: Entry) -> None:
        """A binding is under way, in place of any other of that pod to ``node``."""
        with self._lock:
            self._pending.setdefault(node, {})[entry.uid] = entry
            self._refresh(node)

    def end(self, node: str, uid: str) -> None:
        """It is over, and has not taken place."""
        with self._lock:
            if self._pending.get(node, {}).pop(uid, None) is not None:
                self._refresh(node)

    def set_pending(self, node: str, entries: Iterable[Entry]) -> None:
        """Exactly these bindings to ``node`` are under way."""
        with self._lock:
            self._pending[node] = {entry.uid: entry for entry in entries}
            self._refresh(node)

    def pending(self, node: str) -> tuple[Entry, ...]:
        """Those of which nothing has been heard. The rest is known by the pods themselves."""
        with self._lock:
            return tuple(self._pending.get(node, {}).values())

    def entry(self, node: str, uid: str) -> Entry | None:
        with self._lock:
            return self._pending.get(node, {}).get(uid)

    def waiting(self, *, before: float) -> tuple[str, ...]:
        """Nodes with bindings that were begun before then (Unix seconds), and of which nothing has been heard."""
        with self._lock:
            return tuple(node for node, entries in self._pending.items() if any(entry.at < before for entry in entries.values()))

    def _settle(self, pod: GpuPod) -> None:
        """News of a pod end the bindings of it that are void by them, and those that they show to have taken place."""
        for node, entries in list(self._pending.items()):
            entry = entries.get(pod.uid)
            if entry is not None and (pod.node == node or pod.number > (version_number(entry.version) or 0)):
                self.end(node, pod.uid)
        self._void(pod.key, before=pod.number, but=pod.uid)

    def _void(self, key: str, *, before: int, but: str = "") -> None:
        """The pods of that name that were there before a version are gone, apart from the one of uid ``but``."""
        for node, entries in list(self._pending.items()):
            for entry in list(entries.values()):
                if entry.key == key and entry.uid != but and (version_number(entry.version) or 0) < before:
                    self.end(node, entry.uid)

    # ---- nodes --------------------------------------------------------------------------------------------------------

    def take_node(self, name: str, node: GpuNode | None) -> None:
        """A node as it is now; None: it is gone, or shares no devices."""
        with self._lock:
            if node is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = node
            if node is not None and node.load:
                self.loads[name] = node.load
            else:
                self.loads.pop(name, None)
            self._refresh(name)

    def take_unhealthy(self, node: str, unhealthy: Unhealthy | None) -> None:
        with self._lock:
            if unhealthy is None:
                self._unhealthy.pop(node, None)
            else:
                self._unhealthy[node] = unhealthy
            self._refresh(node)

    def nodes(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._nodes)

    def unhealthy_nodes(self) -> tuple[str, ...]:
        """Nodes of which some ConfigMap speaks."""
        with self._lock:
            return tuple(self._unhealthy)

    def node(self, name: str) -> GpuNode | None:
        with self._lock:
            return self._nodes.get(name)

    # ---- sums ---------------------------------------------------------------------------------------------------------

    def ledger(self, node: str, *, without: str = "") -> NodeLedger | None:
        """Who holds what on ``node``; None if it shares no devices. ``without``: the uid of a pod that does not count."""
        with self._lock:
            known = self._nodes.get(node)
            if known is None:
                return None
            here = self._on.get(node, {})
            holders = [pod.holder() for uid, pod in here.items() if uid != without]
            coming = self._pending.get(node, {})
            holders += [entry.holder() for uid, entry in coming.items() if uid not in here and uid != without]
            unhealthy = self._unhealthy.get(node, Unhealthy(frozenset()))
            return node_ledger(node, known.devices, holders, unhealthy=unhealthy.devices)

    def ledgers(self) -> list[NodeLedger]:
        with self._lock:
            return [ledger for node in self._nodes if (ledger := self.ledger(node)) is not None]

    def oddities(self, node: str = "") -> tuple[str, ...]:
        """What is odd about ConfigMaps and pods that could not be read, a sentence each. ``node``: of this one alone."""
        with self._lock:
            found = [
                f"ConfigMap unhealthy-gpu-{name} names {unhealthy.oddity}, which is no device"
                for name, unhealthy in sorted(self._unhealthy.items())
                if unhealthy.oddity and node in ("", name)
            ]
            return (*found, *(f"pod {key} could not be read, {why}" for key, why in sorted(self._odd.items())))

    def _refresh(self, node: str) -> None:
        ledger = self.ledger(node)
        if ledger is None:
            self.most_free.pop(node, None)
        else:
            self.most_free[node] = ledger.most_free
        for uid in [uid for uid, free in self.own.items() if node in free]:
            kept = {name: free for name, free in self.own[uid].items() if name != node}
            if kept:
                self.own[uid] = kept
            else:
                del self.own[uid]
        for uid in self._pending.get(node, {}):
            again = self.ledger(node, without=uid)
            if again is not None:
                self.own[uid] = {**self.own.get(uid, {}), node: again.most_free}
