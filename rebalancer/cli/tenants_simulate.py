"""`rebalancer tenants simulate`: what would change if another tenants file were in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, NoColor, Output, PolicyFile, PrometheusUrl, SettingsFile, SnapshotFile, TenantsFile
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The tenants file that would be in force.", show_default=False)]


def simulate(
    file: NewFile,
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
    """Show what FILE would change against the tenants file that is in force: shares, and what would be given back at once."""
    from rebalancer.policy.tenants_loader import load_tenants
    from rebalancer.runtime.looking import observe_now, read_snapshot
    from rebalancer.runtime.memory import Memory
    from rebalancer.runtime.other_tenants import under_other_tenants

    quotas = load_tenants(file)
    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants
    )
    with showing("adding up the tenants") as display:
        if snapshot is None:
            state, memory = observe_now(session, stage=display.stage)
        else:
            state, memory = read_snapshot(snapshot), Memory()
        report = under_other_tenants(state, memory, session.orders, present=session.tenants.current(), other=quotas)
    print_document(report, output, no_color=no_color)
