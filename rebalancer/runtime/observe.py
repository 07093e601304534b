"""One look at the cluster: objects from the API server, samples from Prometheus, one state. Either it is whole, or there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.collect.asking import Asking
from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import ClusterObjects, ClusterSource, ListedCluster, node_directory
from rebalancer.collect.gpu.assembling import GpuWords, may_have_gpus
from rebalancer.collect.gpu.exporters import read_gpu_samples
from rebalancer.collect.gpu.signals import beliefs_of, with_gpu_signals
from rebalancer.collect.machines import Machines, machines
from rebalancer.collect.metrics import read_samples
from rebalancer.collect.pod_table import PodTable
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.yesterday import read_yesterday
from rebalancer.deadline import Deadline
from rebalancer.detect.classify import detect
from rebalancer.detect.pools import assign_pools
from rebalancer.errors import KubernetesError, MetricsMissing
from rebalancer.gpu.naming import names_of
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Spec
from rebalancer.runtime.collector import collector_at_rest
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState, Share
from rebalancer.state.freezing import freeze
from rebalancer.state.tables import Phase
from rebalancer.units import format_duration, format_percent

MOST_SKEW_S = 60.0
"""How far our clock may be from the API server's."""
SHOWN = 3
"""Names that a sentence about gaps holds."""


def observe(
    *,
    client: KubeClient,
    prometheus: Prometheus,
    spec: Spec,
    at: float,
    deadline: Deadline,
    stopwatch: Stopwatch,
    source: ClusterSource | None = None,
    seen: Callable[[Machines], None] | None = None,
) -> ClusterState:
    """The state at ``at`` (unix seconds), which is now. Raises KubernetesError or MetricsError; then nothing is known or may be decided.

    ``source``: where objects come from, instead of lists by ``client``. ``seen``: told of the nodes what the state does not hold.
    """
    source = source or ListedCluster(client)
    with collector_at_rest():
        with stopwatch.stage("kubernetes"):
            objects = source.read(deadline=deadline)
        require_right_clock(client, now=at + stopwatch.seconds["kubernetes"])
        return _observe(objects, prometheus, spec=spec, at=at, deadline=deadline, stopwatch=stopwatch, seen=seen)


def require_right_clock(client: KubeClient, *, now: float) -> None:
    """Raises KubernetesError when ``now`` by our clock is far from what the API server's last answer says.

    Prometheus is asked for the values of a moment by our clock. When that is an hour ago, its answer is an hour old and looks fresh.
    """
    theirs = client.server_now
    if theirs is None or abs(now - theirs) <= MOST_SKEW_S:
        return
    direction = "ahead of" if now > theirs else "behind"
    raise KubernetesError(
        f"this machine's clock is {format_duration(round(abs(now - theirs)))} {direction} that of {client.server}, "
        "so samples of another time would be taken for those of now",
        remedy="synchronise the clocks; nothing was moved",
    )


def _observe(
    objects: ClusterObjects,
    prometheus: Prometheus,
    *,
    spec: Spec,
    at: float,
    deadline: Deadline,
    stopwatch: Stopwatch,
    seen: Callable[[Machines], None] | None,
) -> ClusterState:
    if objects.columns is None:
        objects = replace(objects, columns=PodTable().read(objects.pods))
    directory = node_directory(objects)
    if seen is not None:
        seen(machines(objects.nodes, directory))
    with stopwatch.stage("prometheus"):
        samples = read_samples(
            prometheus,
            spec=spec,
            directory=directory,
            at=at,
            deadline=deadline,
            namespaces=sorted({pod.metadata.namespace for pod in objects.pods}),
            pods=len(objects.pods),
        )
        words = _gpu_words(objects, prometheus, spec=spec, directory=directory, at=at, deadline=deadline)
    with stopwatch.stage("assemble"):
        state = assemble(objects, with_gpu_signals(samples, words, spec), at=at, late_s=spec.metrics.max_age, gpus=words)
    if not spec.anticipation.horizon:
        return state
    with stopwatch.stage("prometheus"):
        asking = Asking(prometheus, directory=directory, at=at, deadline=deadline)
        return with_yesterday(state, asking, spec=spec, sources={each.signal.name: each.source for each in samples.signals})


def _gpu_words(
    objects: ClusterObjects, prometheus: Prometheus, *, spec: Spec, directory: NodeDirectory, at: float, deadline: Deadline
) -> GpuWords:
    """What is told of GPUs beside the objects; exporters are asked only where a node may have any."""
    names, columns = names_of(spec.gpu), objects.columns
    rows = [] if columns is None else columns.gpus.rows.tolist()
    if columns is None or not spec.gpu.metrics.enabled or not may_have_gpus(objects.nodes, asking=len(rows)):
        return GpuWords(names=names)
    asking = Asking(prometheus, directory=directory, at=at, deadline=deadline)
    pods = frozenset(columns.keys[row] for row in rows)
    samples = read_gpu_samples(asking, spec=spec, asking_pods=pods, in_flight=prometheus.access.max_in_flight)
    return GpuWords(
        names=names,
        sightings=samples.sightings,
        samples=samples,
        beliefs=beliefs_of(spec),
        notes=(*sorted(asking.heard.notes), *sorted(asking.heard.warnings)),
    )


def with_yesterday(state: ClusterState, asking: Asking, *, spec: Spec, sources: Mapping[str, str]) -> ClusterState:
    """The state with what yesterday says of the signals that some node is hot by; as it is when none is: then nothing will be moved."""
    columns = np.flatnonzero(detect(state, spec).confirmed.any(axis=0)).tolist()
    wanted = [state.signals[column].name for column in columns]
    if not wanted:
        return state
    nodes, coverage = state.nodes, state.coverage
    yesterday = read_yesterday(asking, spec=spec, names=nodes.names, capacity=nodes.capacity, sources=sources, wanted=wanted)
    notes = (*coverage.notes, *sorted(asking.heard.notes))
    return freeze(replace(state, yesterday=yesterday, coverage=replace(coverage, notes=notes)))


def require_coverage(state: ClusterState, spec: Spec) -> None:
    """Raises MetricsMissing when a signal is known for less than ``metrics.minCoverage`` of the nodes or pods: too little to decide by.

    What counts are the nodes of the pools that are judged by the signal, and their pods: a network exporter that only the edge nodes have
    covers the edge pool whole. Raises PolicyError when two pools claim one node.
    """
    for signal, nodes in _judged_nodes(state, spec).items():
        if signal not in state.signal_index:
            raise MetricsMissing(
                f"signal {signal} is judged by the policy and was not read; read were {', '.join(state.signal_index) or 'none'}",
                remedy="use the policy that the state was read with, or read it again with this one",
            )
        for subject, known in _known(state, state.signal_index[signal], nodes).items():
            share = known.share
            if share.ratio * 100 >= spec.metrics.min_coverage:
                continue
            failed = (state.coverage.failed or {}).get(signal, "")
            why = f" ({failed})" if failed else f"; without it are {known.examples()}{_dropped(state)}"
            raise MetricsMissing(
                f"signal {signal} is known for {share.known} of {share.of} {subject} ({format_percent(share.ratio)}), "
                f"metrics.minCoverage is {spec.metrics.min_coverage:g} %{why}",
                remedy="run `rebalancer check` to see which series are missing, or lower metrics.minCoverage; nothing was moved",
            )


def _dropped(state: ClusterState) -> str:
    """How many samples were not used, and why, to be read after a semicolon."""
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(state.coverage.dropped.items()) if count)
    return f"; samples that were not used: {counts}" if counts else ""


@dataclass(frozen=True, slots=True)
class _Known:
    """Who should be known, and who is; (rows,) each, of nodes or pods."""

    wanted: BoolArray
    known: BoolArray
    name: Callable[[int], str]
    why: Callable[[int], str] = lambda row: ""
    """Why one is not known, in words; empty when that is not said."""

    @property
    def share(self) -> Share:
        return Share(int((self.wanted & self.known).sum()), int(self.wanted.sum()))

    def examples(self) -> str:
        """The first of those that are not known, by name, and why the very first is not."""
        missing = np.flatnonzero(self.wanted & ~self.known).tolist()
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        why = self.why(missing[0]) if missing else ""
        said = f"; of {self.name(missing[0])}: {why}" if why else ""
        return ", ".join(self.name(row) for row in missing[:SHOWN]) + more + said


def _judged_nodes(state: ClusterState, spec: Spec) -> Mapping[str, BoolArray]:
    """signal -> (nodes,) whether the node's pool is judged by it; in the order of the policy's signals."""
    pool = assign_pools(state, spec.pools)
    judged = {}
    for signal in spec.judged_signals:
        nodes = np.isin(pool, [row for row, rules in enumerate(spec.pools) if signal in rules.signals])
        column = state.signal_index.get(signal, -1)
        if column >= 0 and state.signals[column].scoped:
            nodes &= ~np.isnan(state.nodes.capacity[:, column])
        judged[signal] = nodes
    return judged


def _known(state: ClusterState, column: int, nodes: BoolArray) -> Mapping[str, _Known]:
    """Of these nodes, and of their pods, which are known; those that need not be known (see `collect.coverage`) do not count."""
    wanted = nodes & state.nodes.ready
    pods = state.pods
    since = np.where(np.isnan(pods.started_at), pods.created_at, pods.started_at)
    settled = (pods.phase == int(Phase.RUNNING)) & ~pods.terminating & (state.at - since >= state.window_s)
    here = settled & np.append(nodes, False)[pods.node]  # a pod on no node has row -1
    return {
        "nodes": _Known(
            wanted,
            ~np.isnan(state.nodes.usage[:, column]),
            lambda row: state.nodes.names[row],
            lambda row: state.nodes.unknown.get((row, column), ""),
        ),
        "pods": _Known(here, ~np.isnan(pods.measured[:, column]), state.pod_name),
    }
