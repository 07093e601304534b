"""Idle holders and over-users of GPUs, and what of the free GPUs nobody can use, as a part of the pages of a plan."""

from __future__ import annotations

from rebalancer.plan.gpu_report import FragmentationReport, GpuPod, GpuReport
from rebalancer.plan.model import Plan
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.text import counted

_SHOWN = 10


def gpu_holders(sheet: Sheet, plan: Plan, *, wide: bool) -> None:
    """Nothing for a cluster without GPUs, and nothing where there is nothing to say."""
    report = plan.gpus
    if report is None:
        return
    if report.idle:
        told = [each.gpus for each in report.idle if each.gpus is not None]
        total = f"{'' if len(told) == len(report.idle) else 'at least '}{sum(told):g}"
        sheet.title(f"GPUs held idle ({total} by {counted(len(report.idle), 'pod')})")
        rows = [
            Row((f"{one.pod.namespace}/{one.pod.name}", one.pod.pod_class, one.pod.node, _gpus(one.gpus), one.reason))
            for one in report.idle
        ]
        _grid(sheet, ("POD", "CLASS", "NODE", "GPUS", "WHY"), rows, wide=wide)
    if report.over_users:
        sheet.title(f"More GPU memory than asked for ({counted(len(report.over_users), 'pod')})")
        rows = [
            Row((f"{one.pod.namespace}/{one.pod.name}", one.pod.pod_class, _place(one.pod), "", one.reason)) for one in report.over_users
        ]
        _grid(sheet, ("POD", "CLASS", "NODE, DEVICE", "", "WHY"), rows, wide=wide)
    if report.fragmentation is not None:
        _fragments(sheet, report.fragmentation, wide=wide)
    if words := _gaps(report):
        sheet.blank()
        sheet.sentence(words, style="dim")


def _fragments(sheet: Sheet, found: FragmentationReport, *, wide: bool) -> None:
    if not found.nodes or found.free is None or found.lost is None:
        return
    sheet.title(f"Free GPUs that typical pods cannot use ({found.lost:.2f} of {found.free:.2f})")
    shown = found.nodes if wide else found.nodes[:_SHOWN]
    columns = [Column("NODE"), Column("FREE", right=True), Column("LOST", right=True)]
    sheet.grid(columns, [Row((one.node, f"{one.free:.2f}", f"{one.lost:.2f}")) for one in shown])
    if len(shown) < len(found.nodes):
        sheet.sentence(f"{len(found.nodes) - len(shown):,} more; -o wide shows every node.", style="dim")


def _grid(sheet: Sheet, heads: tuple[str, ...], rows: list[Row], *, wide: bool) -> None:
    columns = [Column(head, right=head == "GPUS", wrap=head == "WHY") for head in heads]
    shown = rows if wide else rows[:_SHOWN]
    sheet.grid(columns, shown)
    if len(shown) < len(rows):
        sheet.sentence(f"{len(rows) - len(shown):,} more; -o wide shows every pod.", style="dim")


def _gpus(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _place(pod: GpuPod) -> str:
    return f"{pod.node}, {', '.join(pod.devices)}"


def _gaps(report: GpuReport) -> str:
    parts = []
    if report.measured < report.devices:
        parts.append(f"{report.devices - report.measured:,} of {report.devices:,} GPUs are not measured")
    if report.fragmentation is not None and report.fragmentation.unknown_devices:
        parts.append(f"of {counted(report.fragmentation.unknown_devices, 'GPU')} it is not known what is free")
    if report.idle_unknown:
        parts.append(f"of {counted(report.idle_unknown, 'pod')} with GPUs it is not known whether they are idle")
    return f"{'; '.join(parts)}." if parts else ""
