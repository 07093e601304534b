"""Memory in bytes.

A node's use is what cannot be had without swapping: total less available. A pod's use is the working set that the kubelet evicts by. The
inner maximum drops the dead twin of a restarted container, which keeps its last value until Prometheus forgets it.

A pod's mean is its share of the node's mean: a pod that was there for one minute of five counts for a fifth of its size, as it does in the
node's own mean and as a rate does for CPU. So its samples are summed and divided by as many as the kubelet gave in the window, not by its
own; a plain mean would subtract from the node, for a pod that left minutes ago, what the node's mean no longer holds.
"""

from __future__ import annotations

from rebalancer.collect.queries import BuiltInSignal, Expression, NodeSource, PodSource
from rebalancer.state.tables import Signal

_CONTAINERS = 'container_memory_working_set_bytes{container!="", container!="POD", pod!=""{shard}}'
_PODS = 'pod_memory_working_set_bytes{pod!=""{shard}}'


def _share_of_window(summed: str, raw: str) -> str:
    """``summed`` samples of the window over the number of scrapes of the kubelet that they came from."""
    return f"{summed} / on (node, instance) group_left () max by (node, instance) (count_over_time({raw}[{{window}}]))"


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
                mean=_share_of_window(
                    f"sum by ({{by}}) (max by ({{by}}, container) (sum_over_time({_CONTAINERS}[{{window}}])))", _CONTAINERS
                ),
                moment=f"sum by ({{by}}) (max by ({{by}}, container) ({_CONTAINERS}))",
            ),
        ),
        PodSource(
            name="kubelet resource metrics",
            usage=Expression(
                mean=_share_of_window(f"max by ({{by}}) (sum_over_time({_PODS}[{{window}}]))", _PODS),
                moment=f"max by ({{by}}) ({_PODS})",
            ),
        ),
    ),
)
