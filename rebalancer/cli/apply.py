"""`rebalancer apply`: carry out a plan file that somebody has reviewed, as far as it still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, ModeChoice, PolicyFile, PrometheusUrl, SettingsFile
from rebalancer.cli.output import print_text
from rebalancer.cli.progress import showing
from rebalancer.errors import PartlyDone

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
    mode: ModeChoice = None,
) -> None:
    """Check every move of the plan against the cluster as it is now, and carry out what still holds.

    What is written depends on the mode, as everywhere: with the default, dry-run, it only says what would still hold.
    """
    from rebalancer.report.text import clean
    from rebalancer.runtime.applying import apply_plan, read_plan

    session = opened(kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, mode=mode)
    plan = read_plan(file, max_age=max_age)
    with showing("checking the plan") as display:
        applied = apply_plan(plan, session, origin=str(file), stage=display.stage)
    for note in applied.notes:
        print_text(clean(note))
    for outcome in applied.outcomes:
        name = f"{outcome.move.pod.namespace}/{outcome.move.pod.name}"
        print_text(clean(f"{outcome.result.value:<10} {name}  {outcome.move.source} -> {outcome.move.destination}: {outcome.reason}"))
    for move, reason in applied.dropped:
        print_text(clean(f"{'dropped':<10} {move.pod.namespace}/{move.pod.name}  {move.source} -> {move.destination}: {reason}"))
    done = sum(outcome.result.done for outcome in applied.outcomes)
    print_text(f"{done} of {len(plan.moves)} moves carried out in mode {applied.mode.value} (from {applied.mode_source})")
    if done < len(plan.moves):
        raise PartlyDone(
            f"{len(plan.moves) - done} of {len(plan.moves)} moves of {file} were not carried out",
            remedy="read the lines above, then make a new plan",
        )
