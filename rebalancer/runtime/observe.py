"""One look at the cluster: lists from the API server, samples from Prometheus, one state. Either it is whole, or there is none."""

from __future__ import annotations

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import node_directory, read_cluster
from rebalancer.collect.metrics import read_samples
from rebalancer.collect.prometheus import Prometheus
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsMissing
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Spec
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_percent


def observe(*, client: KubeClient, prometheus: Prometheus, spec: Spec, at: float, deadline: Deadline, stopwatch: Stopwatch) -> ClusterState:
    """The state at ``at`` (unix seconds). Raises KubernetesError or MetricsError; then nothing is known and nothing may be decided."""
    with stopwatch.stage("kubernetes"):
        objects = read_cluster(client, deadline=deadline)
    with stopwatch.stage("prometheus"):
        samples = read_samples(
            prometheus,
            spec=spec,
            directory=node_directory(objects),
            at=at,
            deadline=deadline,
            namespaces=sorted({pod.metadata.namespace for pod in objects.pods}),
            pods=len(objects.pods),
        )
    with stopwatch.stage("assemble"):
        return assemble(objects, samples, at=at, late_s=spec.metrics.max_age)


def require_coverage(state: ClusterState, spec: Spec) -> None:
    """Raises MetricsMissing when a signal is known for less than ``metrics.minCoverage`` of the nodes or pods: too little to decide by."""
    for subject, shares in (("nodes", state.coverage.nodes), ("pods", state.coverage.pods)):
        for name in spec.judged_signals:
            share = shares.get(name)
            if share is None or share.ratio * 100 >= spec.metrics.min_coverage:
                continue
            failed = (state.coverage.failed or {}).get(name, "")
            why = f" ({failed})" if failed else ""
            raise MetricsMissing(
                f"signal {name} is known for {share.known} of {share.of} {subject} ({format_percent(share.ratio)}), "
                f"metrics.minCoverage is {spec.metrics.min_coverage:g} %{why}",
                remedy="run `rebalancer check` to see which series are missing, or lower metrics.minCoverage; nothing was moved",
            )
