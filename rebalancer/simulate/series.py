"""The raw series that a monitored cluster has: node_exporter, cAdvisor, the kubelet's resource metrics, kube-state-metrics, dcgm-exporter.

How their labels name a node differs from cluster to cluster; `SeriesOptions` lays out the variants met in the field. `SampleFaults`
spoils samples: silent exporters whose last value is found for a while, NaN, nodes without series, pods without series. Series that no
exporter of this cluster would have (of another cluster, doubles, signals of an operator's own) are added to `RawSeries`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.gpu.series import SOURCE as DCGM
from rebalancer.simulate.gpu.series import DeviceSeries
from rebalancer.simulate.history import History, Samples
from rebalancer.simulate.promql.frames import NAME, Block
from rebalancer.simulate.promql.labels import Column, Labels, Rows
from rebalancer.simulate.promql.syntax import Matcher
from rebalancer.simulate.series_labels import Directory, SeriesOptions

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_MODES = ("idle", "iowait", "system", "user")
_SYSTEM_SHARE = 0.15
_BYTES_PER_CORE_SECOND = 2.0e6


@dataclass(slots=True)
class SampleFaults:
    """Node and pod names whose samples are spoiled. ``since`` and ``until``: unix seconds of the virtual clock."""

    silent_nodes: dict[str, float] = field(default_factory=dict)
    """node -> since when its exporter is gone; no staleness marker is written, so the last value lingers."""
    nan_nodes: set[str] = field(default_factory=set)
    missing_nodes: set[str] = field(default_factory=set)
    missing_pods: set[tuple[str, str]] = field(default_factory=set)
    """(namespace, name)"""
    nan_pods: set[tuple[str, str]] = field(default_factory=set)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    """(from, until): nothing was scraped at all, as while Prometheus was down."""


@dataclass(frozen=True, slots=True)
class RawSeries:
    """A series given by hand; ``times`` ascending. ``labels`` include ``__name__``."""

    labels: Mapping[str, str]
    times: Sequence[float]
    values: Sequence[float]


class ClusterSeries:
    """The `Source` of the Prometheus endpoint: every series of the simulated cluster, by metric name."""

    def __init__(self, history: History, directory: Directory, options: SeriesOptions, *, gpus: DeviceSeries | None = None) -> None:
        self.options = options
        self._gpus = gpus
        self.faults = SampleFaults()
        self.extra: list[RawSeries] = []
        self._history, self._directory = history, directory
        self._families: dict[str, tuple[str, Callable[[Samples], list[Block]]]] = {
            "node_cpu_seconds_total": ("node_exporter", self._node_cpu),
            "node_memory_MemTotal_bytes": ("node_exporter", lambda s: [self._of_nodes(s, "node", self._total_memory(s))]),
            "node_memory_MemAvailable_bytes": ("node_exporter", lambda s: [self._of_nodes(s, "node", self._free_memory(s))]),
            "node_uname_info": ("node_exporter", self._uname),
            "node_network_receive_bytes_total": ("node_exporter", self._node_network),
            "container_cpu_usage_seconds_total": ("cadvisor", lambda s: self._of_containers(s, s.pod_cpu_seconds(), s.node_cpu_seconds())),
            "container_memory_working_set_bytes": ("cadvisor", lambda s: self._of_containers(s, s.pod_memory(), s.node_memory())),
            "container_network_receive_bytes_total": ("cadvisor", self._pod_network),
            "node_cpu_usage_seconds_total": ("kubelet", lambda s: [self._of_nodes(s, "kubelet", s.node_cpu_seconds())]),
            "node_memory_working_set_bytes": ("kubelet", lambda s: [self._of_nodes(s, "kubelet", s.node_memory())]),
            "pod_cpu_usage_seconds_total": ("kubelet", lambda s: [self._of_pods(s, s.pod_cpu_seconds())]),
            "pod_memory_working_set_bytes": ("kubelet", lambda s: [self._of_pods(s, s.pod_memory())]),
            "kube_pod_info": ("kube_state", self._pod_info),
            "up": ("node_exporter", lambda s: [self._of_nodes(s, "node", np.ones(s.node_shape))]),
        }

    @property
    def metric_names(self) -> list[str]:
        served = {name for name, (source, _) in self._families.items() if source in self.options.sources}
        return sorted(served | set(self._gpu_names()) | {series.labels[NAME] for series in self.extra})

    def _gpu_names(self) -> list[str]:
        return self._gpus.names if self._gpus is not None and DCGM in self.options.sources else []

    def select(self, name: str, matchers: Sequence[Matcher], start: float, end: float) -> list[Block]:
        """The blocks of a metric whose series are admitted by every matcher; of every metric that they admit where ``name`` is empty."""
        if not name:
            by_name = [matcher for matcher in matchers if matcher.name == NAME]
            admitted = [each for each in self.metric_names if all(matcher.admits(each) for matcher in by_name)]
            return [block for each in admitted for block in self.select(each, matchers, start, end)]
        blocks = [self._by_hand(series, start, end) for series in self.extra if series.labels[NAME] == name]
        source, build = self._families.get(name, ("", None))
        if build is not None and source in self.options.sources:
            blocks += [self._named(block, name) for block in self._build(build, start, end)]
        elif name in self._gpu_names():
            blocks += [self._named(block, name) for block in self._build(partial(self._of_devices, name), start, end)]
        chosen = [(block, block.labels.admitted(matchers)) for block in blocks]
        return [block if mask.all() else block.take(np.flatnonzero(mask)) for block, mask in chosen if mask.any()]

    def _build(self, build: Callable[[Samples], list[Block]], start: float, end: float) -> list[Block]:
        samples = self._history.samples(start, end)
        kept = np.ones(len(samples.times), dtype=bool)
        for begin, until in self.faults.gaps:
            kept &= (samples.times < begin) | (samples.times >= until)
        blocks = build(samples)
        if kept.all():
            return blocks
        return [Block(b.labels, b.times[kept], b.values[:, kept], b.present[:, kept], np.ones(b.labels.size, dtype=bool)) for b in blocks]

    @staticmethod
    def _named(block: Block, name: str) -> Block:
        labels = block.labels.with_column(NAME, Column.constant(name, block.labels.size))
        return Block(labels, block.times, block.values, block.present, block.silent)

    @staticmethod
    def _by_hand(series: RawSeries, start: float, end: float) -> Block:
        times, values = np.array(series.times, dtype=float), np.array(series.values, dtype=float)
        kept = (times >= start) & (times <= end)
        shape = (1, int(kept.sum()))
        return Block(
            Labels.from_dicts([series.labels]), times[kept], values[kept].reshape(shape), np.ones(shape, dtype=bool), np.ones(1, dtype=bool)
        )

    # ---- nodes --------------------------------------------------------------------------------------------------------

    def _spoiled(self, samples: Samples, present: Bools, values: Floats) -> tuple[Bools, Floats, Bools]:
        """Presence, values and silence of (nodes, samples) with the faults in force."""
        present, values = present.copy(), values.copy()
        silent = np.zeros(len(present), dtype=bool)
        for row, name in enumerate(self._directory.node_names()):
            if name in self.faults.missing_nodes:
                present[row] = False
            if name in self.faults.nan_nodes:
                values[row] = np.nan
            if name in self.faults.silent_nodes:
                present[row] &= samples.times < self.faults.silent_nodes[name]
                silent[row] = True
        return present, values, silent

    def _of_nodes(self, samples: Samples, exporter: str, values: Floats) -> Block:
        present, values, silent = self._spoiled(samples, samples.node_present(), values)
        return Block(self._directory.node_labels(exporter, self.options), samples.times, values, present, silent)

    def _total_memory(self, samples: Samples) -> Floats:
        return np.repeat(self._directory.node_bytes()[:, None], len(samples.times), axis=1)

    def _free_memory(self, samples: Samples) -> Floats:
        return self._total_memory(samples) - samples.node_memory()

    def _node_cpu(self, samples: Samples) -> list[Block]:
        """One series a CPU and mode; all CPUs of a node are equally busy."""
        cpus = np.maximum(1, np.round(self._directory.node_cores())).astype(np.int64)
        node = np.repeat(np.arange(len(cpus)), cpus)
        number = np.arange(len(node)) - np.repeat(np.cumsum(cpus) - cpus, cpus)
        present, used, silent = self._spoiled(samples, samples.node_present(), samples.node_cpu_seconds())
        labels = self._directory.node_labels("node", self.options).take(node)
        words = tuple(str(value) for value in range(int(cpus.max(initial=0))))
        labels = labels.with_column("cpu", Column(number.astype(np.int64), words))
        busy = (used / cpus[:, None])[node]
        idle = samples.times[None, :] - 1.7e9 - busy
        by_mode = {"idle": idle, "iowait": busy * 0, "system": busy * _SYSTEM_SHARE, "user": busy * (1 - _SYSTEM_SHARE)}
        return [
            Block(labels.with_column("mode", Column.constant(mode, labels.size)), samples.times, by_mode[mode], present[node], silent[node])
            for mode in _MODES
        ]

    def _uname(self, samples: Samples) -> list[Block]:
        block = self._of_nodes(samples, "node", np.ones(samples.node_shape))
        labels = block.labels.with_column("nodename", Column.of(self._directory.node_names()))
        return [Block(labels, block.times, block.values, block.present, block.silent)]

    def _node_network(self, samples: Samples) -> list[Block]:
        block = self._of_nodes(samples, "node", samples.node_cpu_seconds() * _BYTES_PER_CORE_SECOND)
        labels = block.labels.with_column("device", Column.constant("eth0", block.labels.size))
        return [Block(labels, block.times, block.values, block.present, block.silent)]

    def _of_devices(self, name: str, samples: Samples) -> list[Block]:
        """What dcgm-exporter tells; the faults of a node's exporters are its too."""
        rows = {node: row for row, node in enumerate(self._directory.node_names())}
        everywhere = np.ones(samples.node_shape, dtype=bool)
        present, spoiled, silent = self._spoiled(samples, everywhere, np.zeros(samples.node_shape))
        blocks = []
        for block, nodes in self._gpus.blocks(name, samples, self.options) if self._gpus is not None else ():
            at = np.array([rows[node] for node in nodes], dtype=np.intp)
            blocks.append(Block(block.labels, block.times, block.values + spoiled[at], block.present & present[at], silent[at]))
        return blocks

    # ---- pods ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def _there(samples: Samples) -> tuple[Rows, Bools]:
        """The tenures that were there at some scrape of this stretch, and when."""
        present = samples.pod_present()
        rows = np.flatnonzero(present.any(axis=1)) if present.size else np.zeros(0, dtype=np.intp)
        return rows, present[rows]

    def _of_pods(self, samples: Samples, values: Floats, **constant: str) -> Block:
        """A series a pod (tenure) that was there in this stretch."""
        rows, present = self._there(samples)
        values = values[rows]
        tenures = samples.tenures
        if self.faults.missing_pods or self.faults.nan_pods:
            names = [(tenures.namespaces[row], tenures.names[row]) for row in rows]
            present = present & ~np.array([name in self.faults.missing_pods for name in names], dtype=bool)[:, None]
            spoiled = np.array([name in self.faults.nan_pods for name in names], dtype=bool)
            values = np.where(spoiled[:, None], np.nan, values)
        labels = self._directory.pod_labels(tenures, rows, self.options)
        for name, word in constant.items():
            labels = labels.with_column(name, Column.constant(word, labels.size))
        return Block(labels, samples.times, values, present, np.zeros(len(rows), dtype=bool))

    def _of_containers(self, samples: Samples, pods: Floats, nodes: Floats) -> list[Block]:
        """What cAdvisor exports: containers, the pause container, the pod's own cgroup, the root cgroup of the node."""
        of_pods = self._of_pods(samples, pods)
        rows, _ = self._there(samples)
        containers = self._directory.container_labels(of_pods.labels, samples.tenures, rows)
        cgroups = self._directory.cgroup_labels(of_pods.labels, samples.tenures, rows)
        pause = containers.with_column("container", Column.constant("POD", containers.size)).with_column(
            "id", cgroups.column("id").mapped([f"{word}/pause" for word in cgroups.column("id").words])
        )
        root = self._of_nodes(samples, "kubelet", nodes)
        root_labels = root.labels.with_column("id", Column.constant("/", root.labels.size))
        return [
            Block(containers, of_pods.times, of_pods.values, of_pods.present, of_pods.silent),
            Block(pause, of_pods.times, np.broadcast_to(0.0, of_pods.values.shape), of_pods.present, of_pods.silent),
            Block(cgroups, of_pods.times, of_pods.values, of_pods.present, of_pods.silent),
            Block(root_labels, root.times, root.values, root.present, root.silent),
        ]

    def _pod_network(self, samples: Samples) -> list[Block]:
        return [self._of_pods(samples, samples.pod_cpu_seconds() * _BYTES_PER_CORE_SECOND, interface="eth0")]

    def _pod_info(self, samples: Samples) -> list[Block]:
        labels = self._directory.pod_info()
        shape = (labels.size, len(samples.times))
        present = np.ones(shape, dtype=bool)
        return [Block(labels, samples.times, np.ones(shape), present, np.zeros(labels.size, dtype=bool))]
