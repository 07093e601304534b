"""The ledger as node_exporter, cAdvisor and kube-state-metrics would show it, in the text format that Prometheus scrapes.

node_exporter is known by the address of its node, cAdvisor by the label ``node``, as in most installations; a pod that is gone has no
series any more, a pod on a node has one for its container, one for its pause container and one for its own cgroup.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.load import Ledger, PodReading

_START = 1000.0
"""What counters begin at: a counter that begins at 0 hides a rate that is taken from the wrong end."""


def node_exporter(ledger: Ledger) -> str:
    reading, lines = ledger.read(), []
    for name, machine in ledger.machines.items():
        where = f'instance="{machine.address}:9100"'
        busy = reading.node_seconds[name] / machine.cores
        idle = reading.alive_s - busy
        for cpu in range(machine.cores):
            modes = {"idle": idle, "iowait": 0.0, "system": 0.2 * busy, "user": 0.8 * busy}
            lines += [f'node_cpu_seconds_total{{{where},cpu="{cpu}",mode="{mode}"}} {_START + value!r}' for mode, value in modes.items()]
        lines.append(f"node_memory_MemTotal_bytes{{{where}}} {machine.memory_bytes!r}")
        lines.append(f"node_memory_MemAvailable_bytes{{{where}}} {machine.memory_bytes - reading.node_bytes[name]!r}")
        lines.append(f'node_uname_info{{{where},nodename="{name}"}} 1')
    return _text(lines)


def cadvisor(ledger: Ledger) -> str:
    lines: list[str] = []
    for one in ledger.read().pods:
        for labels, share in _cgroups(one):
            lines.append(f'container_cpu_usage_seconds_total{{{labels},cpu="total"}} {_START + share * one.cpu_seconds!r}')
            lines.append(f"container_memory_working_set_bytes{{{labels}}} {share * one.usage.memory_bytes!r}")
    return _text(lines)


def kube_state_metrics(ledger: Ledger) -> str:
    lines = [f'kube_node_info{{node="{name}"}} 1' for name in ledger.machines]
    for one in ledger.read().pods:
        meta = one.pod["metadata"]
        lines.append(f'kube_pod_info{{namespace="{meta["namespace"]}",pod="{meta["name"]}",node="{one.node}",uid="{meta["uid"]}"}} 1')
    return _text(lines)


def _cgroups(one: PodReading) -> Iterator[tuple[str, float]]:
    """Labels of each cgroup of the pod, and its share of the pod's usage."""
    meta, group = one.pod["metadata"], f"/kubepods/pod{one.pod['metadata']['uid']}"
    of_pod = f'namespace="{meta["namespace"]}",pod="{meta["name"]}",node="{one.node}"'
    yield f'{of_pod},container="",id="{group}"', 1.0
    yield f'{of_pod},container="POD",id="{group}/pause"', 0.0
    containers = one.pod["spec"]["containers"]
    for container in containers:
        yield f'{of_pod},container="{container["name"]}",id="{group}/{container["name"]}"', 1.0 / len(containers)


def _text(lines: list[str]) -> str:
    """Each family together, as the format demands."""
    return "\n".join([*sorted(lines, key=lambda line: line.partition("{")[0]), ""])
