"""CPU in cores.

A node's use is the time that its processors were busy for the machine: idle, waiting for disks and stolen by the hypervisor are not use.
A pod's use is summed over its containers; a container that was restarted leaves a dead twin, whose rate is part of the window and counts.
The inner maximum drops copies of one series (scraped by two jobs, or by two replicas of Prometheus), which a sum would count twice.
"""

from __future__ import annotations

from rebalancer.collect.queries import BuiltInSignal, NodeSource, PodSource, counter
from rebalancer.state.tables import Signal

SIGNAL = BuiltInSignal(
    signal=Signal("cpu", "cores", "cpu"),
    maximum=100_000.0,
    nodes=(
        NodeSource(
            name="node_exporter",
            usage=counter('sum without (cpu, mode) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[{window}]))'),
            raw='node_cpu_seconds_total{cpu="0", mode="idle"}',
            raw_without="cpu, mode",
        ),
        NodeSource(
            name="kubelet resource metrics",
            usage=counter("rate(node_cpu_usage_seconds_total[{window}])"),
            raw="node_cpu_usage_seconds_total",
        ),
    ),
    pods=(
        PodSource(
            name="cAdvisor",
            usage=counter(
                "sum by ({by}) (max by ({by}, container, id, cpu) "
                '(rate(container_cpu_usage_seconds_total{container!="", container!="POD", pod!=""{shard}}[{window}])))'
            ),
        ),
        PodSource(
            name="kubelet resource metrics",
            usage=counter('max by ({by}) (rate(pod_cpu_usage_seconds_total{pod!=""{shard}}[{window}]))'),
        ),
    ),
)
