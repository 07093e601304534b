"""The landings of earlier moves, for people: planned node and real one, how soon, and how often the two agree.

A replacement on one of the nodes that the plan named beside the planned one is a hit as well, and is marked, so that both are seen.
"""

from __future__ import annotations

from rebalancer.plan.model import EarlierMove, LandingReport, Plan
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.text import counted
from rebalancer.units import format_duration, format_percent

_SHOWN = 10
_AS_PLANNED, _ALTERNATIVE = "as-planned", "alternative"


def landings(sheet: Sheet, plan: Plan, *, wide: bool) -> None:
    """What became of the moves before this plan: where each landed, how soon, and what of its promise came true."""
    moves = plan.earlier
    if not moves:
        return
    shown = moves if wide else moves[:_SHOWN]
    sheet.title(f"Landings ({len(moves)})")
    if plan.landings is not None:
        sheet.sentence(rate_words(plan.landings))
    columns = [
        Column("AT"),
        Column("WORKLOAD"),
        *([Column("SOURCE")] if wide else []),
        Column("PLANNED"),
        Column("LANDED"),
        Column("RESULT"),
    ]
    columns += [Column(name, right=True) for name in ("READY", "PROMISED", "CAME")]
    sheet.grid(columns, [_row(move, wide=wide) for move in shown])
    if len(shown) < len(moves):
        sheet.sentence(f"and {len(moves) - len(shown)} more; -o wide shows them.")


def rate_words(report: LandingReport) -> str:
    """One sentence with the rate that the breaker judges, and the stricter one beside it."""
    if not report.moves:
        return "No move of late tells whether replacements land where they are planned."
    return (
        f"{report.named} of the last {counted(report.moves, 'replacement')} landed on a node that the plan named "
        f"({format_percent(report.hit_ratio)}), {report.planned} on the planned one."
    )


def _row(move: EarlierMove, *, wide: bool) -> Row:
    result = _ALTERNATIVE if move.result == _AS_PLANNED and move.landed != move.planned else move.result
    return Row(
        (
            move.at[11:19],
            f"{move.pod.namespace}/{move.workload.name}" if move.workload else f"{move.pod.namespace}/{move.pod.name}",
            *([move.source] if wide else []),
            move.planned,
            move.landed or "",
            result,
            "" if move.ready_after_seconds is None else format_duration(round(move.ready_after_seconds)),
            format_percent(move.predicted_fall),
            format_percent(move.realised_share),
        )
    )
