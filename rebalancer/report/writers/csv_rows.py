"""Every document as one flat CSV table: a header, raw numbers (ratios, base units), an empty cell for what is unknown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from msgspec import UNSET, UnsetType

from rebalancer.plan.model import Plan
from rebalancer.report.checks import CheckReport
from rebalancer.report.demo import DemoResult
from rebalancer.report.explanation import Explanation
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.skew import SkewReport
from rebalancer.report.text import clean, guard_formula, to_ascii

CsvCell = str | float | int | bool | None


def csv_text(header: Sequence[str], rows: Iterable[Sequence[CsvCell]], page: Page) -> str:
    stream = io.StringIO()
    out = csv.writer(stream, lineterminator="\n")
    out.writerow([_cell(title) for title in header])
    out.writerows([_cell(cell) for cell in row] for row in rows)
    return to_ascii(stream.getvalue()) if page.ascii else stream.getvalue()


def _cell(value: CsvCell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return guard_formula(clean(guard_formula(value), limit=None))
    return repr(value) if math.isfinite(value) else ""


@writer(Plan, Format.CSV)
def plan_csv(plan: Plan, page: Page, _: Format) -> str:
    """Moves in their order, then the refused candidates; ``decision`` tells them apart."""
    signals = list(dict.fromkeys(name for move in plan.moves for name in move.signals))
    header = ["decision", "namespace", "pod", "uid", "workload_kind", "workload", "source", "destination", "action", "gain", "gate"]
    header += ["retryable", "reason"]
    header += [f"{name}_{end}_{moment}" for name in signals for end in ("source", "destination") for moment in ("before", "after")]
    rows: list[list[CsvCell]] = []
    for move in plan.moves:
        owner = (None, None) if move.workload is None else (move.workload.kind, move.workload.name)
        row: list[CsvCell] = ["move", move.pod.namespace, move.pod.name, move.pod.uid, *owner, move.source, move.destination]
        row += [move.action, move.gain, None, None, move.reason]
        for name in signals:
            one = move.signals.get(name)
            loads = (None,) * 4 if one is None else (one.source_before, one.source_after, one.destination_before, one.destination_after)
            row += loads
        rows.append(row)
    for refused in plan.refused:
        pod = refused.pod
        row = ["refused", pod.namespace, pod.name, pod.uid, None, None, refused.source, None, None, None, refused.gate]
        rows.append([*row, refused.retryable, refused.reason, *[None] * (4 * len(signals))])
    return csv_text(header, rows, page)


@writer(SkewReport, Format.CSV)
def skew_csv(report: SkewReport, page: Page, _: Format) -> str:
    """One row a subject and signal; nodes fill packing and load, workloads and namespaces fill request and usage."""
    header = ["subject", "kind", "namespace", "name", "class", "quadrant", "pods", "unmeasured", "signal", "unit"]
    header += ["packing", "load", "request", "measured_request", "usage", "ratio", "skew"]
    rows: list[list[CsvCell]] = []
    for node in report.nodes:
        for name, load in node.signals.items():
            start: list[CsvCell] = ["node", "Node", None, node.name, node.node_class, node.quadrant, None, None, name, "ratio"]
            rows.append([*start, load.packing, load.load, None, None, None, None, load.skew])
    for subject, groups in (("workload", report.workloads), ("namespace", report.namespaces)):
        for group in groups:
            for name, one in group.signals.items():
                start = [subject, group.kind, group.namespace, group.name, None, None, group.pods, one.unmeasured, name, one.unit]
                rows.append([*start, None, None, one.request, one.measured_request, one.usage, one.ratio, one.skew])
    return csv_text(header, rows, page)


@writer(Explanation, Format.CSV)
def explanation_csv(explanation: Explanation, page: Page, _: Format) -> str:
    """The conclusion, the facts and the verdicts, one row each."""
    rows: list[list[CsvCell]] = [["conclusion", explanation.subject, None, None, None, explanation.conclusion]]
    rows += [["fact", fact.topic, None, None, None, fact.sentence] for fact in explanation.facts]
    rows += [["verdict", one.subject, one.ruling.value, one.gate, one.retryable, one.sentence] for one in explanation.verdicts]
    rows += [["query", name, None, None, None, text] for name, text in explanation.queries.items()]
    return csv_text(["section", "subject", "ruling", "gate", "retryable", "sentence"], rows, page)


@writer(CheckReport, Format.CSV)
def check_csv(report: CheckReport, page: Page, _: Format) -> str:
    rows = [[check.name, check.status.value, check.sentence, check.remedy] for check in report.checks]
    return csv_text(["check", "status", "sentence", "remedy"], rows, page)


@writer(DemoResult, Format.CSV)
def demo_csv(result: DemoResult, page: Page, _: Format) -> str:
    """The course of the cluster: before, each cycle, after; with GPUs, what became of them."""
    moments = [("before", 0, result.before), *((str(one.cycle), one.moves, one.state) for one in result.course)]
    moments.append(("after", result.evictions, result.after))
    rows: list[list[CsvCell]] = [[moment, moves, state.hot_nodes, state.max_load, state.stddev] for moment, moves, state in moments]
    header = ["moment", "moves", "hot_nodes", "max_load", "stddev"]
    if result.gpus is not UNSET:
        header += ["gpu_hot_nodes", "overfull_devices", "worst_device_memory", "gangs_broken"]
        for row, (*_moment, state) in zip(rows, moments, strict=True):
            of_gpus = (state.gpu_hot_nodes, state.overfull_devices, state.worst_device_memory, state.gangs_broken)
            row += [None if isinstance(value, UnsetType) else value for value in of_gpus]
    return csv_text(header, rows, page)
