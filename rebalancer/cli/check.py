"""`rebalancer check`: would it work here? Rights, Prometheus, queries, coverage, clocks, each with its remedy."""

from __future__ import annotations

import typer

from rebalancer.cli.options import Context, Kubeconfig, ModeChoice, NoColor, Output, PolicyFile, PrometheusUrl, SettingsFile
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    mode: ModeChoice = None,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Try everything that the first cycle depends on, and write nothing. Exits with the status of the first failure."""
    from rebalancer.runtime.checking import check as run_checks
    from rebalancer.runtime.session import open_session

    flags = {
        "kubeconfig": kubeconfig,
        "context": context,
        "prometheus.url": prometheus_url,
        "policy_file": policy,
        "mode": mode,
    }
    session = open_session(settings_file=settings, flags=flags)
    with showing("checking") as display:
        report, status = run_checks(session, stage=display.stage)
    print_document(report, output, no_color=no_color)
    if status:
        raise typer.Exit(status)
