"""`rebalancer apply`: carry out a plan file that somebody has reviewed, as far as it still holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, ModeChoice, PolicyFile, PrometheusUrl, SettingsFile, TenantsFile
from rebalancer.cli.output import print_text
from rebalancer.cli.progress import showing
from rebalancer.errors import PartlyDone
from rebalancer.policy.model import Mode

if TYPE_CHECKING:
    from rebalancer.plan.model import Move, Plan
    from rebalancer.runtime.applying import Applied

PlanArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file that `rebalancer plan --out` wrote.", show_default=False)]
MaxAge = Annotated[str, typer.Option("--max-age", help="Refuse a plan that is older.", metavar="DURATION")]


def register(app: typer.Typer) -> None:
    app.command("apply")(apply)


def apply(
    file: PlanArgument,
    max_age: MaxAge = "15m",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    tenants: TenantsFile = None,
    mode: ModeChoice = None,
) -> None:
    """Check every move of the plan against the cluster as it is now, and carry out what still holds.

    What is written depends on the mode, as everywhere: with the default, dry-run, it only says what would still hold.
    """
    from rebalancer.act.outcome import Result
    from rebalancer.report.text import clean
    from rebalancer.runtime.applying import apply_plan, read_plan

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants, mode=mode
    )
    plan = read_plan(file, max_age=max_age)
    with showing("checking the plan") as display:
        applied = apply_plan(plan, session, origin=str(file), stage=display.stage)
    for note in applied.notes:
        print_text(clean(note))
    for outcome in applied.outcomes:
        dry = outcome.result is Result.RECORDED
        print_text(_line("holds" if dry else outcome.result.value, outcome.move, "" if dry else outcome.reason))
    for move, reason in applied.dropped:
        print_text(_line("dropped", move, reason))
    _conclude(plan, applied, file)


def _conclude(plan: Plan, applied: Applied, file: Path) -> None:
    from rebalancer.report.text import counted

    done, moves = sum(outcome.result.done for outcome in applied.outcomes), counted(len(plan.moves), "move")
    left = len(plan.moves) - done
    if applied.mode is Mode.DRY_RUN:
        words, otherwise = "would be carried out; nothing is written", "does not hold any more" if left == 1 else "do not hold any more"
    else:
        words, otherwise = "carried out", f"{'was' if left == 1 else 'were'} not carried out"
    print_text(f"{done} of {moves} {words} in mode {applied.mode.value} (from {applied.mode_source})")
    if left:
        raise PartlyDone(f"{left} of {moves} of {file} {otherwise}", remedy="read the lines above, then make a new plan")


def _line(word: str, move: Move, reason: str) -> str:
    from rebalancer.report.text import clean

    return clean(f"{word:<10} {move.pod.namespace}/{move.pod.name}  {move.source} -> {move.destination}{f': {reason}' if reason else ''}")
