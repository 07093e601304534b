"""`rebalancer gpus`: every GPU, how busy and how full it is, and who is on it."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    NoColor,
    Output,
    PolicyFile,
    PrometheusUrl,
    SettingsFile,
    SnapshotFile,
    TenantsFile,
)
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

_WHICH = "Which GPUs"
Node = Annotated[str | None, typer.Option("--node", help="Those of this node.", rich_help_panel=_WHICH)]
Pod = Annotated[str | None, typer.Option("--pod", help="Those that this pod is on; also NAMESPACE/NAME.", rich_help_panel=_WHICH)]
Address = Annotated[
    str | None, typer.Option("--ip", help="Those that the pod of this IP, which its containers share, is on.", rich_help_panel=_WHICH)
]


def register(app: typer.Typer) -> None:
    app.command("gpus")(gpus)


def gpus(
    node: Node = None,
    pod: Pod = None,
    ip: Address = None,
    namespace: Namespace = None,
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
    """Show every GPU: busy share, memory used, given away and in all, and the pods that are on it."""
    from rebalancer.plan.gpu_report import gpu_report
    from rebalancer.report.gpus import Chosen, gpus_report
    from rebalancer.runtime.looking import look

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants
    )
    with showing("looking at GPUs") as display:
        state = look(session, snapshot=snapshot, stage=display.stage, strict=False).state
    chosen = Chosen(node=node, pod=pod, namespace=namespace, address=ip)
    holders = gpu_report(state, session.orders.policy.spec.gpu)
    print_document(gpus_report(state=state, holders=holders, chosen=chosen), output, no_color=no_color)
