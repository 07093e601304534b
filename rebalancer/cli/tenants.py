"""`rebalancer tenants`: who shares the cluster, who holds what of it, and what a file of tenants would mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, NoColor, Output, PolicyFile, PrometheusUrl, SettingsFile, SnapshotFile, TenantsFile
from rebalancer.cli.output import print_document, print_text
from rebalancer.cli.progress import showing
from rebalancer.cli.tenants_import import import_quotas
from rebalancer.cli.tenants_simulate import simulate
from rebalancer.cli.tenants_validate import validate
from rebalancer.report.registry import Format

if TYPE_CHECKING:
    from rebalancer.report.tenants import TenantsReport

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a tenant.", show_default=False)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Show who shares the cluster and who holds what of it.", invoke_without_command=True)
    group.callback()(tenants)
    group.command("explain")(explain)
    group.command("import")(import_quotas)
    group.command("validate")(validate)
    group.command("simulate")(simulate)
    app.add_typer(group, name="tenants")


def tenants(
    context_of_command: typer.Context,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    tenants: TenantsFile = None,
    snapshot: SnapshotFile = None,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Show what each tenant requests, uses, is guaranteed and entitled to, borrows and wastes."""
    if context_of_command.invoked_subcommand is not None:
        return
    report = _report(kubeconfig, context, prometheus_url, settings, policy, tenants, snapshot)
    print_document(report, output, no_color=no_color)


def explain(
    name: Name,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    tenants: TenantsFile = None,
    snapshot: SnapshotFile = None,
) -> None:
    """Say in sentences what a tenant holds, waits for, borrows and wastes."""
    from rebalancer.errors import UsageError
    from rebalancer.policy.mistakes import nearest
    from rebalancer.report.writers.tenants_table import explained

    report = _report(kubeconfig, context, prometheus_url, settings, policy, tenants, snapshot)
    names = [one.name for one in report.tenants]
    if name not in names:
        meant = nearest(name, names)
        remedy = f"did you mean {meant}?" if meant else f"known are {', '.join(names[:10])}" if names else "give a file with --tenants"
        raise UsageError(f"there is no tenant {name}", remedy=remedy)
    for line in explained(report, name):
        print_text(line)


def _report(
    kubeconfig: Path | None,
    context: str | None,
    prometheus_url: str | None,
    settings: Path | None,
    policy: Path | None,
    tenants: Path | None,
    snapshot: Path | None,
) -> TenantsReport:
    from rebalancer.report.tenants import tenants_report
    from rebalancer.runtime.looking import look

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants
    )
    with showing("adding up the tenants") as display:
        verdict = look(session, snapshot=snapshot, stage=display.stage, strict=False)
    return tenants_report(state=verdict.state, quotas=session.tenants.current(), gpus=verdict.decision.plan.gpus)
