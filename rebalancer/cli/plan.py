"""`rebalancer plan`: which pods should move, where they would land, what it wins, and why everything else stays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.errors import warn
from rebalancer.cli.opening import opened
from rebalancer.cli.options import (
    Context,
    Kubeconfig,
    ModeChoice,
    NoColor,
    Output,
    PolicyFile,
    PrometheusUrl,
    SettingsFile,
    SnapshotFile,
    TenantsFile,
)
from rebalancer.cli.output import print_document, save
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

MOVES_PROPOSED = 1
OutFile = Annotated[Path | None, typer.Option("--out", help="Also write the plan to this file, for `rebalancer apply`.", metavar="FILE")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when moves are proposed, with 0 when nothing is to be done.")]


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


def plan(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    tenants: TenantsFile = None,
    mode: ModeChoice = None,
    snapshot: SnapshotFile = None,
    out: OutFile = None,
    exit_code: ExitCode = False,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Show the moves that a cycle would make now, and write nothing to the cluster."""
    from rebalancer.report.plan_file import plan_to_json
    from rebalancer.runtime.looking import look

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants, mode=mode
    )
    with showing("planning") as display:
        verdict = look(session, snapshot=snapshot, stage=display.stage)
    made = verdict.decision.plan
    for finding in verdict.breaker:
        warn(f"the breaker is open: {finding.words}")
    if out is not None:
        save(out, plan_to_json(made))
    print_document(made, output, no_color=no_color)
    if exit_code and made.moves:
        raise typer.Exit(MOVES_PROPOSED)
