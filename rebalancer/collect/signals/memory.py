"""Memory in bytes.

A node's use is what cannot be had without swapping: total less available. A pod's use is the working set that the kubelet evicts by. The
inner maximum drops the dead twin of a restarted container, which keeps its last value until Prometheus forgets it.
"""

from __future__ import annotations

from rebalancer.collect.queries import BuiltInSignal, Expression, NodeSource, PodSource
from rebalancer.state.tables import Signal

_CONTAINERS = 'container_memory_working_set_bytes{container!="", container!="POD", pod!=""{shard}}'
_PODS = 'pod_memory_working_set_bytes{pod!=""{shard}}'

SIGNAL = BuiltInSignal(
    signal=Signal("memory", "bytes", "memory"),
    maximum=2.0**50,
    nodes=(
        NodeSource(
            name="node_exporter",
            usage=Expression(
                mean="avg_over_time(node_memory_MemTotal_bytes[{window}]) - avg_over_time(node_memory_MemAvailable_bytes[{window}])",
                moment="node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
            ),
            raw="node_memory_MemAvailable_bytes",
        ),
        NodeSource(
            name="kubelet resource metrics",
            usage=Expression(mean="avg_over_time(node_memory_working_set_bytes[{window}])", moment="node_memory_working_set_bytes"),
            raw="node_memory_working_set_bytes",
        ),
    ),
    pods=(
        PodSource(
            name="cAdvisor",
            usage=Expression(
                mean=f"sum by ({{by}}) (max by ({{by}}, container) (avg_over_time({_CONTAINERS}[{{window}}])))",
                moment=f"sum by ({{by}}) (max by ({{by}}, container) ({_CONTAINERS}))",
            ),
        ),
        PodSource(
            name="kubelet resource metrics",
            usage=Expression(mean=f"max by ({{by}}) (avg_over_time({_PODS}[{{window}}]))", moment=f"max by ({{by}}) ({_PODS})"),
        ),
    ),
)
