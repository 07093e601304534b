"""What Prometheus knows of GPUs, read once a cycle: which exporters there are, and the newest mean of each of their metrics by device and
pod.

One question tells which metrics exist; only those are asked for. The two that say whose a device is carry all labels; the others are asked
by device alone, for there may be tens of thousands. Nothing is decided here: what the numbers come to is for `rebalancer.gpu.meters`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rebalancer.collect.asking import Asking
from rebalancer.collect.gpu.spoiled import mended, spoiled
from rebalancer.collect.in_flight import run_jobs
from rebalancer.collect.prometheus_wire import Answer, Labels
from rebalancer.collect.queries import NamedQuery
from rebalancer.collect.resolve import SHOWN_FOREIGN, match_node, resolve, show
from rebalancer.collect.sanity import Dropped, DropReason, believed
from rebalancer.errors import MetricsError
from rebalancer.gpu.meters.catalogue import METERS, NEEDED, OF_PODS, Exporter, Meter, Quantity
from rebalancer.gpu.meters.labels import (
    DEVICE_LABELS,
    HOST_LABELS,
    NO_POD,
    NODE_LABELS,
    POD_LABELS,
    DeviceName,
    PodKey,
    device_name,
    model_of,
    pod_of,
    profile_of,
)
from rebalancer.gpu.sightings import NOTHING_SEEN, SeenDevice, SeenPod, Sightings
from rebalancer.policy.gpu_metrics import GpuMetrics
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import FloatArray
from rebalancer.units import format_duration

_ALL = ", ".join(DEVICE_LABELS + NODE_LABELS + POD_LABELS)
_PARTITION = ("gpu_id", "gpu_partition_id", "gpu_compute_partition_type")
_SHORT = ("UUID", "GPU_I_ID", "device_uuid", "deviceuuid", "gpu_uuid", *_PARTITION, "node", "hostname", "instance")
_WHERE = "node, nodeid, nodename, Hostname, hostname, instance"
_DEVICE = f"UUID, uuid, device_uuid, deviceuuid, gpu_id, GPU_I_ID, gpu_partition_id, {_WHERE}"
_BRIEF = frozenset({Quantity.FREE, Quantity.RESERVED, Quantity.XID, Quantity.TEMPERATURE})
"""Quantities that are asked for without the labels of pods."""
_NOW = frozenset({Quantity.XID, Quantity.TEMPERATURE, Quantity.POD_KERNEL_AGE})
"""Quantities of which the newest value counts, and no mean."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One series of a device: of the device alone where ``pod`` is none. ``virtual``: it carries the number of a virtual GPU: a copy of the
    device's value, or the pod's own."""

    device: DeviceName
    node: str
    value: float
    pod: PodKey = NO_POD
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class GpuSamples:
    """``readings``: by meter, in the units of the state (shares, bytes, seconds). ``ages``, ``most_busy``, ``most_engine``: as readings."""

    meters: tuple[Meter, ...] = ()
    readings: Mapping[str, Sequence[DeviceReading]] = field(default_factory=dict)
    ages: Sequence[DeviceReading] = ()
    most_busy: Sequence[DeviceReading] = ()
    most_engine: Sequence[DeviceReading] = ()
    sightings: Sightings = NOTHING_SEEN
    history: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    """signal -> node -> (windows,) newest last."""
    shapes: tuple[str, ...] = ()
    """What was found of each exporter, in words."""
    notes: tuple[str, ...] = ()
    """Sentences about devices that could not be placed."""
    dropped: Dropped = field(default_factory=Counter)
    failed: str = ""
    """Why nothing is known, in words."""


NO_GPU_SAMPLES = GpuSamples()


def read_gpu_samples(asking: Asking, *, spec: Spec, asking_pods: Container[PodKey], in_flight: int = 2) -> GpuSamples:
    """``asking_pods``: pods that ask for GPUs. What fails is in ``failed`` or a note; Raises Interrupted on a stop."""
    names = spec.gpu.metrics.names
    try:
        known = asking.instant(NamedQuery("which GPU metrics there are", "gpu", _existing(names), "nodes"))
    except MetricsError as error:
        return GpuSamples(failed=error.message)
    there = {labels.get("__name__", "") for labels in known.labels}
    meters = tuple(meter for meter in METERS if names.get(meter.name, meter.name) in there)
    if not meters:
        return GpuSamples(failed=f"Prometheus has none of the metrics of GPU exporters; {asking.scraped_jobs()}")
    return _Reader(asking, spec, meters, asking_pods).read(in_flight)


def _existing(names: Mapping[str, str]) -> str:
    wanted = "|".join(sorted({names.get(meter.name, meter.name) for meter in METERS}))
    return f'count by (__name__) ({{__name__=~"{wanted}"}})'


class _Reader:
    """The questions of one cycle about these meters, and their answers as readings."""

    def __init__(self, asking: Asking, spec: Spec, meters: tuple[Meter, ...], asking_pods: Container[PodKey]) -> None:
        self._asking, self._spec, self._meters, self._pods = asking, spec, meters, asking_pods
        self._settings: GpuMetrics = spec.gpu.metrics
        self._window = format_duration(spec.metrics.window)
        self._dropped: Dropped = Counter()
        self._lost: dict[DeviceName, Labels] = {}

    def read(self, in_flight: int) -> GpuSamples:
        texts = {meter.name: self._mean(meter) for meter in self._meters}
        aged = [meter for meter in self._meters if meter.quantity in NEEDED]
        texts |= {f"age of {meter.name}": self._age(meter) for meter in aged}
        lasting = [meter for meter in self._meters if meter.quantity in (Quantity.BUSY, Quantity.ENGINE)]
        texts |= {f"highest {meter.name}": self._highest(meter) for meter in lasting}
        answers = self._mended(self._answers(texts, in_flight), in_flight)
        readings = {meter.name: self._readings(answers.get(meter.name), meter) for meter in self._meters}
        ages = [reading for meter in aged for reading in self._readings(answers.get(f"age of {meter.name}"), None)]
        most = {meter.name: self._readings(answers.get(f"highest {meter.name}"), meter) for meter in lasting}
        sightings = self._sightings(answers)
        lost = tuple(self._lost_devices({seen.uuid for seen in sightings.devices}))
        return GpuSamples(
            meters=self._meters,
            readings=readings,
            ages=ages,
            most_busy=[one for meter in lasting if meter.quantity is Quantity.BUSY for one in most[meter.name]],
            most_engine=[one for meter in lasting if meter.quantity is Quantity.ENGINE for one in most[meter.name]],
            sightings=sightings,
            history=self._history(in_flight),
            shapes=tuple(self._shapes(answers)),
            notes=lost,
            dropped=self._dropped,
        )

    def _answers(self, texts: Mapping[str, str], in_flight: int) -> dict[str, Answer]:
        def ask(name: str, text: str) -> Answer | None:
            try:
                return self._asking.instant(NamedQuery(name, "gpu", text, "nodes"))
            except MetricsError as error:
                self._asking.heard.note(f"GPUs: {error.message}")
                return None

        jobs = [partial(ask, name, text) for name, text in texts.items()]
        found = run_jobs(jobs, in_flight=in_flight, deadline=self._asking.deadline)
        return {name: answer for name, answer in zip(texts, found, strict=True) if answer is not None}

    def _mended(self, answers: dict[str, Answer], in_flight: int) -> dict[str, Answer]:
        """With the middle of the window for those whose mean one absurd sample has spoiled."""
        meters = [meter for meter in self._meters if meter.name in answers and meter.quantity not in _NOW]
        bad = {meter.name: spoiled(answers[meter.name], meter.most) for meter in meters}
        ask = [meter for meter in meters if bad[meter.name].any()]
        middles = self._answers({meter.name: self._middle(meter) for meter in ask}, in_flight)
        for meter in ask:
            if meter.name in middles:
                better = mended(answers[meter.name], middles[meter.name], meter.most)
                self._dropped[DropReason.ABSURD] += int((bad[meter.name] & ~spoiled(better, meter.most)).sum())
                answers[meter.name] = better
        return answers

    # ---- questions --------------------------------------------------------------------------------------------------------

    def _name(self, meter: Meter) -> str:
        return self._settings.names.get(meter.name, meter.name)

    def _by(self, meter: Meter) -> str:
        return ", ".join(_SHORT) if meter.quantity in _BRIEF and meter.exporter is Exporter.DCGM else _ALL

    def _mean(self, meter: Meter) -> str:
        """Health is what it is now; everything else is a mean."""
        if meter.quantity in _NOW:
            return f"max by ({self._by(meter)}) ({self._name(meter)})"
        return f"max by ({self._by(meter)}) (avg_over_time({self._name(meter)}[{self._window}]))"

    def _middle(self, meter: Meter) -> str:
        return f"max by ({self._by(meter)}) (quantile_over_time(0.5, {self._name(meter)}[{self._window}]))"

    def _age(self, meter: Meter) -> str:
        return f"max by ({', '.join(_SHORT)}) (timestamp({self._name(meter)}))"

    def _highest(self, meter: Meter) -> str:
        """Only of devices that were measured at the beginning of that time too."""
        by, name, after = ", ".join(_SHORT), self._name(meter), format_duration(self._spec.gpu.idle.after)
        return f"max by ({by}) (max_over_time({name}[{after}])) and max by ({by}) ({name} offset {after})"

    # ---- answers ----------------------------------------------------------------------------------------------------------

    def _nodes(self, labels: Sequence[Labels]) -> list[str]:
        """The node of each series; the host name that the exporter tells is asked where the usual ways name none of ours."""
        directory = self._asking.directory
        nodes = list(resolve(labels, directory=directory, lookups=self._asking.lookups).nodes)
        for row, node in enumerate(nodes):
            if not node:
                told = (match_node(labels[row].get(name, ""), directory) for name in HOST_LABELS)
                nodes[row] = next((name for name in told if name), "")
        return nodes

    def _readings(self, answer: Answer | None, meter: Meter | None) -> list[DeviceReading]:
        """``meter`` None: the values are times of samples, and become ages."""
        if answer is None:
            return []
        if meter is None:
            values: FloatArray = self._asking.at - answer.values[:, -1]
        else:
            kept, dropped = believed(answer, maximum=meter.most)
            self._dropped.update(dropped)
            values = kept[:, -1] * meter.scale
        found = []
        needs_node = meter is None or meter.exporter is Exporter.AMD
        nodes = self._nodes(answer.labels) if needs_node else [""] * len(answer.labels)
        for labels, node, value in zip(answer.labels, nodes, values.tolist(), strict=True):
            device = device_name(labels)
            if device is not None:
                found.append(DeviceReading(device, node, value, pod_of(labels, self._pods), bool(labels.get("vgpu"))))
        return found

    def _sightings(self, answers: Mapping[str, Answer]) -> Sightings:
        devices: dict[tuple[str, str, int], SeenDevice] = {}
        pods: dict[SeenPod, None] = {}
        for meter, labels, node in self._told(answers):
            device = device_name(labels)
            if device is None or not device.uuid:
                continue
            if meter.exporter is Exporter.DCGM:
                seen = SeenDevice(
                    node=node,
                    uuid=device.uuid,
                    index=device.index,
                    model=model_of(labels),
                    instance=device.instance,
                    profile=profile_of(labels),
                )
                devices.setdefault((node, device.uuid, device.instance), seen)
                key = pod_of(labels, self._pods)
                if key is not NO_POD:
                    pods[SeenPod(node=node, uuid=device.uuid, namespace=key[0], pod=key[1], instance=device.instance)] = None
        return Sightings(tuple(devices.values()), tuple(pods))

    def _told(self, answers: Mapping[str, Answer]) -> Iterator[tuple[Meter, Labels, str]]:
        for meter in self._meters:
            answer = answers.get(meter.name)
            if answer is None or meter.quantity not in NEEDED | OF_PODS:
                continue
            nodes = self._nodes(answer.labels)
            if meter.quantity in NEEDED:
                self._lose(answer.labels, nodes)
            yield from ((meter, labels, node) for labels, node in zip(answer.labels, nodes, strict=True) if node)

    def _lose(self, labels: Sequence[Labels], nodes: Sequence[str]) -> None:
        """Keeps the labels of devices that no series has a node for so far."""
        for told, node in zip(labels, nodes, strict=True):
            device = None if node else device_name(told)
            if device is not None:
                self._lost.setdefault(device, told)

    def _lost_devices(self, placed: Container[str]) -> Iterator[str]:
        """``placed``: uuids that some other series has a node for."""
        lost = [labels for device, labels in self._lost.items() if device.uuid not in placed]
        if lost:
            self._dropped[DropReason.FOREIGN] += len(lost)
            shown = "; ".join(show(labels) for labels in lost[:SHOWN_FOREIGN])
            more = f" and {len(lost) - SHOWN_FOREIGN} more" if len(lost) > SHOWN_FOREIGN else ""
            yield f"GPUs: by their labels {len(lost)} devices are on no node of the cluster: {shown}{more}"

    def _history(self, in_flight: int) -> dict[str, dict[str, FloatArray]]:
        """Of nodes, for the windows that confirm: what lacks a device is too low, and so confirms nothing."""
        queries = {"gpu": self._node_text((Quantity.BUSY, Quantity.ENGINE)), "gpu_memory": self._memory_text()}
        judged = set(self._spec.judged_signals)
        found: dict[str, dict[str, FloatArray]] = {}
        for signal, (text, scale) in queries.items():
            if signal not in judged or not text:
                continue
            confirm = self._spec.confirm
            try:
                answer = self._asking.windows(
                    NamedQuery(f"{signal} of nodes", signal, text, "nodes"), windows=confirm.windows, step_s=confirm.step
                )
            except MetricsError as error:
                self._asking.heard.note(f"GPUs: {error.message}")
                continue
            lines: dict[str, FloatArray] = {}
            for node, line in zip(self._nodes(answer.labels), answer.values * scale, strict=True):
                if node:
                    lines[node] = line if node not in lines else lines[node] + line
            found[signal] = lines
        return found

    def _node_text(self, quantities: tuple[Quantity, ...]) -> tuple[str, float]:
        """Of the first exporter that has it; an instance counts by its engine, a whole GPU by its utilisation."""
        own = {meter.quantity: meter for meter in reversed(self._meters) if meter.quantity in quantities}
        first = own.get(quantities[0])
        if first is None:
            second = own.get(quantities[-1])
            return (self._total(second), second.scale) if second is not None else ("", 1.0)
        return self._total(first, '{GPU_I_ID=""}' if len(quantities) > 1 else ""), first.scale

    def _total(self, meter: Meter, matcher: str = "") -> str:
        """Over the devices of each node, without those whose mean is no possible one."""
        mean = f"avg_over_time({self._name(meter)}{matcher}[{self._window}])"
        return f"sum by ({_WHERE}) (max by ({_DEVICE}) ({mean} <= {meter.most:.0f}))"

    def _memory_text(self) -> tuple[str, float]:
        """With what drivers reserve, where that is told: the newest window has it too."""
        text, scale = self._node_text((Quantity.USED,))
        reserved = next((meter for meter in self._meters if meter.quantity is Quantity.RESERVED and meter.scale == scale), None)
        return (f"({text} + {self._total(reserved)}) or {text}" if text and reserved is not None else text), scale

    # ---- words ------------------------------------------------------------------------------------------------------------

    def _shapes(self, answers: Mapping[str, Answer]) -> Iterator[str]:
        for exporter in Exporter:
            own = [meter for meter in self._meters if meter.exporter is exporter]
            answer = next((answers[meter.name] for meter in own if meter.name in answers and meter.quantity in NEEDED), None)
            if answer is None:
                continue
            seen = [labels for labels in answer.labels if device_name(labels) is not None]
            named = {name for labels in seen for name in (*HOST_LABELS, "node", "exported_pod", "vgpu", "GPU_I_ID") if labels.get(name)}
            pods = "exported_pod" if "exported_pod" in named else "pod" if any(pod_of(one, self._pods)[1] for one in seen) else "no label"
            more = [words for label, words in (("vgpu", "virtual GPUs"), ("GPU_I_ID", "MIG instances")) if label in named]
            host = next((name for name in ("node", *HOST_LABELS) if name in named), "instance")
            count = len({device_name(labels) for labels in seen})
            yield f"{exporter.value}: {count} devices, nodes by {host}, pods by {pods}{', with ' + ' and '.join(more) if more else ''}"
