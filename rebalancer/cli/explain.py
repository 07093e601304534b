"""`rebalancer explain`: everything that is known about one node, pod or workload, and the word of every rule about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
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
from rebalancer.runtime.considering import Verdict
from rebalancer.runtime.session import Session

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name; for pods and workloads also NAMESPACE/NAME.", show_default=False)]
Kind = Annotated[str | None, typer.Option("--kind", help="Kind of the workload, when the name alone is not enough.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Say why a node is hot, why a pod moves or stays, how a workload fares.", no_args_is_help=True)
    group.command("node")(node)
    group.command("pod")(pod)
    group.command("workload")(workload)
    app.add_typer(group, name="explain")


def node(
    name: Name,
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
    """Load, packing and windows of a node, why it is hot or not, and what becomes of its pods."""
    from rebalancer.report.explain import explain_node

    verdict, queries = _looked(kubeconfig, context, prometheus_url, settings, policy, tenants, snapshot)
    made = explain_node(state=verdict.state, findings=verdict.findings, plan=verdict.decision.plan, name=name, queries=queries)
    print_document(made, output, no_color=no_color)


def pod(
    name: Name,
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
    """Use and place of a pod, whether it moves, and what each gate says of it."""
    from rebalancer.report.explain import explain_pod

    verdict, queries = _looked(kubeconfig, context, prometheus_url, settings, policy, tenants, snapshot)
    made = explain_pod(
        scene=verdict.fresh_scene,
        findings=verdict.findings,
        plan=verdict.decision.plan,
        name=name,
        namespace=namespace,
        queries=queries,
    )
    print_document(made, output, no_color=no_color)


def workload(
    name: Name,
    namespace: Namespace = None,
    kind: Kind = None,
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
    """Replicas, disruption budgets and past moves of a workload, and the verdict on each of its pods."""
    from rebalancer.report.explain import explain_workload

    verdict, queries = _looked(kubeconfig, context, prometheus_url, settings, policy, tenants, snapshot)
    made = explain_workload(
        scene=verdict.fresh_scene,
        findings=verdict.findings,
        plan=verdict.decision.plan,
        name=name,
        namespace=namespace,
        kind=kind,
        queries=queries,
    )
    print_document(made, output, no_color=no_color)


def _looked(
    kubeconfig: Path | None,
    context: str | None,
    prometheus_url: str | None,
    settings: Path | None,
    policy: Path | None,
    tenants: Path | None,
    snapshot: Path | None,
) -> tuple[Verdict, Mapping[str, str]]:
    from rebalancer.runtime.looking import look

    session = opened(
        kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy, tenants=tenants
    )
    with showing("explaining") as display:
        verdict = look(session, snapshot=snapshot, stage=display.stage, strict=False)
    return verdict, {} if snapshot is not None else _queries(session)


def _queries(session: Session) -> Mapping[str, str]:
    """Name -> text of what is asked of Prometheus."""
    from rebalancer.collect.signal_plan import describe_queries

    recorded = session.settings.prometheus.recording_rules
    return {query.name: query.text for query in describe_queries(session.orders.policy.spec, recorded=recorded)}
