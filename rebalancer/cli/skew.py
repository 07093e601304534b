"""`rebalancer skew`: where requests and use disagree, by node, workload and namespace."""

from __future__ import annotations

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, NoColor, Output, PolicyFile, PrometheusUrl, SettingsFile, SnapshotFile, TenantsFile
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format


def register(app: typer.Typer) -> None:
    app.command("skew")(skew)


def skew(
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
    """Show packing against load for nodes, and request against use for workloads and namespaces."""
    from rebalancer.report.skew import skew_report
    from rebalancer.runtime.looking import look

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants
    )
    with showing("measuring skew") as display:
        verdict = look(session, snapshot=snapshot, stage=display.stage, strict=False)
    print_document(skew_report(state=verdict.state, findings=verdict.findings), output, no_color=no_color)
