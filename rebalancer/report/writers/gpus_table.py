"""GPUs for people: a line a device, and under it a line for each pod that is on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rebalancer.report.gpus import OK, DeviceHolder, DeviceReport, GpusReport
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.text import counted
from rebalancer.units import format_bytes, format_duration, format_percent

_SHOWN = 40
_FULL = 0.9
"""Share from which a number stands out."""
_ESTIMATE = "~"


@writer(GpusReport, Format.TABLE, Format.WIDE)
def gpus_table(report: GpusReport, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.facts(_header(report))
    shown = report.devices if wide or report.shown or len(report.devices) <= _SHOWN else _fullest(report.devices)
    if shown:
        _devices(sheet, report, shown, wide=wide)
    if report.unplaced:
        _unplaced(sheet, report, wide=wide)
    if not report.devices and not report.unplaced:
        sheet.blank()
        sheet.sentence("No node of this cluster tells of a GPU.")
    return sheet.render()


def _header(report: GpusReport) -> Iterator[tuple[str, str]]:
    yield "Cluster", f"{report.cluster}, read at {report.created_at}"
    if report.shown:
        yield "Shown", report.shown
    nodes = len({device.node for device in report.devices})
    conditions = Counter(device.condition for device in report.devices)
    ailing = [f"{count} {word}" for word, count in sorted(conditions.items()) if word != OK]
    free = sum(not device.pods for device in report.devices)
    yield "GPUs", ", ".join((f"{counted(len(report.devices), 'GPU')} on {counted(nodes, 'node')}", f"{free} with nobody on them", *ailing))
    busy = [device.busy for device in report.devices if device.busy is not None]
    full = [d for d in report.devices if d.memory_used_bytes is not None and d.memory_bytes is not None]
    used, whole = sum(d.memory_used_bytes or 0.0 for d in full), sum(d.memory_bytes or 0.0 for d in full)
    if busy:
        memory = f", memory {format_percent(used / whole)} used" if whole else ""
        yield "Use", f"{format_percent(sum(busy) / len(busy))} busy{memory}, mean of {format_duration(report.window_seconds)}"
    for number, note in enumerate(report.notes):
        yield "Notes" if number == 0 else "", note


def _fullest(devices: Sequence[DeviceReport]) -> Sequence[DeviceReport]:
    """What is not well, then the busiest and fullest."""
    chosen = sorted(devices, key=lambda device: (device.condition == OK, -_height(device)))[:_SHOWN]
    return sorted(chosen, key=lambda device: -_height(device))


def _height(device: DeviceReport) -> float:
    full = (device.memory_used_bytes or 0.0) / device.memory_bytes if device.memory_bytes else 0.0
    return max(device.busy or 0.0, full)


def _devices(sheet: Sheet, report: GpusReport, shown: Sequence[DeviceReport], *, wide: bool) -> None:
    several = len(shown) < len(report.devices)
    sheet.title(f"The {len(shown)} busiest or fullest of {len(report.devices):,} GPUs; -o wide shows all" if several else "GPUs")
    columns = [
        Column("NODE, GPU / POD", least=24),
        Column("MODEL / CLASS", least=10),
        Column("SCHEME / TENANT", least=8),
        Column("BUSY", right=True),
        Column("USED", right=True),
        Column("GIVEN", right=True),
        Column("MEMORY", right=True),
        *((Column("UUID / IP"), Column("KNOWN BY / WORKLOAD")) if wide else ()),
    ]
    sheet.grid(columns, [row for device in shown for row in _rows(device, wide=wide)])
    if any(pod.estimated for device in shown for pod in device.pods):
        sheet.blank()
        sheet.sentence(f"{_ESTIMATE}: a part of the device's value, not measured of the pod. Nothing is evicted for it.", style="dim")


def _rows(device: DeviceReport, *, wide: bool) -> Iterator[Row]:
    model = " ".join(word for word in ((device.model or "?").removeprefix("NVIDIA-"), device.profile or "") if word)
    more: tuple[str, ...] = (device.uuid or "?", "") if wide else ()
    cells: tuple[Cell | str, ...] = (
        Cell(f"{device.node}, {device.device}", "bold"),
        model,
        device.scheme,
        _share(device.busy),
        _bytes(device.memory_used_bytes, of=device.memory_bytes),
        format_bytes(device.memory_allocated_bytes),
        format_bytes(device.memory_bytes),
        *more,
    )
    yield Row(cells, note="" if device.condition == OK else f"{device.condition}: {device.reason}")
    for pod in device.pods:
        yield _pod_row(pod, wide=wide)


def _pod_row(pod: DeviceHolder, *, wide: bool) -> Row:
    mark = _ESTIMATE if pod.estimated else ""
    given = "all" if pod.exclusive else format_bytes(pod.memory_allocated_bytes) if pod.memory_allocated_bytes is not None else _part(pod)
    more: tuple[str, ...] = (pod.address or "?", f"{pod.confidence}; {pod.workload or 'bare pod'}") if wide else ()
    cells: tuple[Cell | str, ...] = (
        f"  {pod.namespace}/{pod.name}",
        pod.pod_class,
        pod.tenant or "",
        mark + format_percent(pod.busy),
        mark + format_bytes(pod.memory_used_bytes),
        given,
        "",
        *more,
    )
    return Row(cells, note="; ".join(pod.findings))


def _part(pod: DeviceHolder) -> str:
    """Where memory is not divided: the part of compute, or nothing is known."""
    return "?" if pod.compute is None else f"{format_percent(pod.compute)} of time"


def _share(value: float | None) -> Cell:
    return Cell(format_percent(value), "red" if value is not None and value >= _FULL else "")


def _bytes(value: float | None, *, of: float | None) -> Cell:
    full = value is not None and of is not None and value >= _FULL * of
    return Cell(format_bytes(value), "red" if full else "")


def _unplaced(sheet: Sheet, report: GpusReport, *, wide: bool) -> None:
    sheet.title(f"On some GPU of their node, nobody says which ({counted(len(report.unplaced), 'pod')})")
    shown = report.unplaced if wide else report.unplaced[:_SHOWN]
    sheet.grid(
        (Column("POD", least=24), Column("CLASS"), Column("NODE", least=12)),
        [Row((f"{pod.namespace}/{pod.name}", pod.pod_class, pod.node)) for pod in shown],
    )
