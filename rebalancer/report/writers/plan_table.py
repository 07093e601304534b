"""A plan for people: what it is based on, what it would change, the moves, the refusals by gate, the nodes that matter.

The narrow table shows every move and sums up the rest; ``wide`` shows every node, every refusal and the alternatives of each move, in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rebalancer.plan.hinting import UNSTEERED
from rebalancer.plan.model import Move, NodeReport, Plan, ShareReport, Summary
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.styles import class_cell
from rebalancer.report.text import counted
from rebalancer.report.writers.gpu_holders import gpu_holders
from rebalancer.report.writers.landings import landings
from rebalancer.report.writers.move_devices import move_devices, moved_by_gpu
from rebalancer.units import format_duration, format_percent

_NODES_SHOWN = 20
_TAINTS_SHOWN = 5
_MODE_MEANS = {
    "dry-run": ", nothing in the cluster is changed",
    "annotate": ", pods are marked and stay where they are",
    "evict": ", pods are evicted when the plan is carried out",
}
_NAME_LEAST = 18


@writer(Plan, Format.TABLE, Format.WIDE)
def plan_table(plan: Plan, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.facts(_header(plan))
    _before_and_after(sheet, plan.summary)
    sheet.blank()
    sheet.sentence(conclusion(plan), style="bold")
    if plan.moves:
        sheet.title(f"Moves ({len(plan.moves)})")
        _moves(sheet, plan.moves, wide=wide)
    if plan.soft_taints:
        sheet.blank()
        sheet.sentence(_soft_taints(plan, wide=wide))
    if plan.refused:
        sheet.title(f"Refused candidates ({len(plan.refused)})")
        _all_refused(sheet, plan) if wide else _refused_by_gate(sheet, plan)
    gpu_holders(sheet, plan, wide=wide)
    landings(sheet, plan, wide=wide)
    _nodes(sheet, plan, wide=wide)
    return sheet.render()


def conclusion(plan: Plan) -> str:
    """One sentence: what is proposed, or why nothing is."""
    if plan.outcome:
        return plan.outcome
    summary = plan.summary
    if plan.moves:
        left = f"{summary.hot_nodes_after} hot" if summary.hot_nodes_after else "none hot"
        return f"{counted(len(plan.moves), 'move')} for {counted(summary.hot_nodes, 'hot node')}, of which {left} afterwards."
    unknown = f" {counted(summary.unknown_nodes, 'node')} of unknown load judged neither way." if summary.unknown_nodes else ""
    if not summary.hot_nodes:
        return f"Nothing to do: no node is hot, the worst load is {format_percent(summary.max_load)}.{unknown}"
    if plan.refused:
        return f"Nothing is moved: {counted(summary.hot_nodes, 'hot node')}, and {_all_refused_words(plan)}.{unknown}"
    return f"Nothing is moved: {counted(summary.hot_nodes, 'hot node')}, and no pod that could leave.{unknown}"


def _all_refused_words(plan: Plan) -> str:
    return "the only candidate is refused" if len(plan.refused) == 1 else f"all {len(plan.refused):,} candidates are refused"


def _header(plan: Plan) -> Iterator[tuple[str, str]]:
    coverage = plan.coverage
    source = f" (source: {plan.mode_source})" if plan.mode_source else ""
    yield "Mode", f"{plan.mode}{source}{_MODE_MEANS.get(plan.mode, '')}"
    yield "Policy", f"{plan.policy}, method {plan.method}"
    yield "Cluster", f"{plan.cluster}, read at {plan.created_at}"
    age = coverage.oldest_sample_seconds
    oldest = "age of samples unknown" if age is None else f"oldest sample {format_duration(round(age))}"
    yield "Metrics", f"{_share('nodes', coverage.nodes)}, {_share('pods', coverage.pods)}, {oldest}"
    if coverage.dropped:
        yield "Dropped", ", ".join(f"{count:,} {reason}" for reason, count in sorted(coverage.dropped.items())) + " samples"
    for number, note in enumerate(coverage.notes):
        yield "Notes" if number == 0 else "", note


def _share(noun: str, share: ShareReport) -> str:
    return f"{share.known:,} of {share.of:,} {noun} known"


def _before_and_after(sheet: Sheet, summary: Summary) -> None:
    columns = (Column(""), Column("BEFORE", right=True), Column("AFTER", right=True))
    rows = [
        Row(("hot nodes", Cell(f"{summary.hot_nodes:,}", "red" if summary.hot_nodes else ""), f"{summary.hot_nodes_after:,}")),
        Row(("worst load", format_percent(summary.max_load), format_percent(summary.max_load_after))),
        Row(("spread", format_percent(summary.stddev, digits=1), format_percent(summary.stddev_after, digits=1))),
    ]
    if summary.unknown_nodes:
        rows.append(Row(("unknown nodes", Cell(f"{summary.unknown_nodes:,}", "yellow"), f"{summary.unknown_nodes:,}")))
    sheet.blank()
    sheet.grid(columns, rows)


def _soft_taints(plan: Plan, *, wide: bool) -> str:
    """Which nodes are written to besides pods; the hot ones by name where they carry more than the others."""
    several = {node.name for node in plan.nodes if len(node.soft_taints) > 1}
    both = tuple(name for name in plan.soft_taints if name in several)
    hot = f"; both grades, as they are hot: {_names(both, wide=wide)}" if both else ""
    return f"{counted(len(plan.soft_taints), 'node')} to carry the soft taint meanwhile: {_names(plan.soft_taints, wide=wide)}{hot}."


def _names(names: tuple[str, ...], *, wide: bool) -> str:
    shown = names if wide else names[:_TAINTS_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else "")


def _moves(sheet: Sheet, moves: tuple[Move, ...], *, wide: bool) -> None:
    """Three lines a move, so that no name has to be cut: the pod, the source, the destination, each end with its loads; then why."""
    signals = list(dict.fromkeys(name for move in moves for name in move.signals))
    columns = [Column("#", right=True), Column("GAIN", right=True), Column("POD, SOURCE -> DESTINATION", least=_NAME_LEAST)]
    columns += [Column(name.upper(), right=True) for name in signals]
    rows: list[Row] = []
    for number, move in enumerate(moves, start=1):
        pod = Cell(f"{move.pod.namespace}/{move.pod.name}", "bold", spill=True)
        ends = [(move.signals.get(name), format_percent) for name in signals]
        source = [f"{show(one.source_before)} -> {show(one.source_after)}" if one else "" for one, show in ends]
        destination = [f"{show(one.destination_before)} -> {show(one.destination_after)}" if one else "" for one, show in ends]
        rows.append(Row((str(number), f"{round(move.gain, 4) + 0.0:.4f}", pod, *([""] * len(signals)))))
        rows.append(Row(("", "", f"   {move.source}", *source)))
        rows.append(Row(("", "", f"-> {_whither(move)}", *destination), note=_why(move, wide=wide)))
    sheet.grid(columns, rows, notes_under=2)


def _whither(move: Move) -> str:
    if move.destination:
        return f"{move.destination} (it comes back)" if move.destination == move.source else move.destination
    waits = move.makes_room_for
    return "" if waits is None else f"(room for {waits.namespace}/{waits.name})"


def _why(move: Move, *, wide: bool) -> str:
    parts = [move.reason]
    if (wide or moved_by_gpu(move)) and (devices := move_devices(move)):
        parts.append(devices)
    if move.action != "evict":
        parts.append(f"it is only marked ({move.action}), not evicted")
    if wide:
        parts.append("no workload" if move.workload is None else f"{move.workload.kind} {move.workload.name}")
        if move.pod_class:
            parts.append(f"class {move.pod_class}")
        parts.append(f"destination by {move.prediction}{'' if move.steered_by == UNSTEERED else f', steered by {move.steered_by}'}")
        parts.append(f"alternatives {', '.join(move.alternatives)}" if move.alternatives else "no alternative")
        if move.tenant is not None:
            parts.append(f"tenant {move.tenant}")
    return "; ".join(parts)


def _refused_by_gate(sheet: Sheet, plan: Plan) -> None:
    counts = Counter(refused.gate for refused in plan.refused)
    examples = {refused.gate: refused for refused in reversed(plan.refused)}
    columns = (Column("GATE"), Column("COUNT", right=True), Column("FOR EXAMPLE", wrap=True))
    rows = [
        Row((gate, f"{count:,}", f"{example.pod.namespace}/{example.pod.name}: {example.reason}"))
        for gate, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        for example in [examples[gate]]
    ]
    sheet.grid(columns, rows)


def _all_refused(sheet: Sheet, plan: Plan) -> None:
    columns = (Column("POD"), Column("SOURCE"), Column("GATE"), Column("LATER"), Column("REASON", wrap=True))
    rows = [
        Row((f"{one.pod.namespace}/{one.pod.name}", one.source, one.gate, "perhaps" if one.retryable else "no", one.reason))
        for one in plan.refused
    ]
    sheet.grid(columns, rows)


def _nodes(sheet: Sheet, plan: Plan, *, wide: bool) -> None:
    touched = {move.destination for move in plan.moves}
    matters = [node for node in plan.nodes if wide or node.node_class in ("hot", "unknown") or node.name in touched]
    if not matters:
        return
    shown = sorted(matters, key=_urgency) if wide else sorted(matters, key=_urgency)[:_NODES_SHOWN]
    sheet.title(f"All nodes ({len(shown)})" if wide else f"Hot, unknown and receiving nodes ({len(matters)} of {len(plan.nodes):,})")
    signals = list(dict.fromkeys(name for node in plan.nodes for name in node.signals))
    columns = [Column("NODE", least=_NAME_LEAST), Column("CLASS"), *([Column("POOL"), Column("QUADRANT")] if wide else [])]
    columns += [Column(f"{name.upper()} LOAD (PACKED)", right=True) for name in signals]
    if wide:
        columns.append(Column("WHY", wrap=True))
    sheet.grid(columns, [_node_row(node, signals, wide=wide) for node in shown])
    if len(shown) < len(matters):
        sheet.sentence(f"{len(matters) - len(shown):,} more; -o wide shows every node.", style="dim")


def _urgency(node: NodeReport) -> tuple[int, float, str]:
    worst = max((signal.load for signal in node.signals.values() if signal.load is not None), default=0.0)
    return ("hot", "unknown", "normal", "cold").index(node.node_class) if node.node_class in _ORDER else 9, -worst, node.name


_ORDER = ("hot", "unknown", "normal", "cold")


def _node_row(node: NodeReport, signals: list[str], *, wide: bool) -> Row:
    cells: list[Cell | str] = [node.name, class_cell(node.node_class)]
    if wide:
        cells += [node.pool or "none", node.quadrant or "unknown"]
    for name in signals:
        signal = node.signals.get(name)
        if signal is None:
            cells.append("")
            continue
        before, after = format_percent(signal.load), format_percent(signal.load_after)
        load = before if before == after else f"{before} -> {after}"
        cells.append(load if signal.packing is None else f"{load} ({format_percent(signal.packing)})")
    if wide:
        cells.append(node.reason)
        return Row(tuple(cells))
    return Row(tuple(cells), note=node.reason if node.node_class in ("hot", "unknown") else "")
