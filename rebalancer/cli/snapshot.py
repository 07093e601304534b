"""`rebalancer snapshot`: the cluster as the decisions see it, in one file, for a colleague, a bug report or a replay."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, PolicyFile, PrometheusUrl, SettingsFile, SnapshotFile
from rebalancer.cli.output import print_text, save
from rebalancer.cli.progress import showing

OutArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.", show_default=False)]
Anonymize = Annotated[
    bool, typer.Option("--anonymize", help="Replace the names of namespaces, pods, workloads and nodes, and label values.")
]


def register(app: typer.Typer) -> None:
    app.command("snapshot")(snapshot)


def snapshot(
    file: OutArgument,
    anonymize: Anonymize = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    source: SnapshotFile = None,
) -> None:
    """Write a snapshot of the cluster, or an anonymous copy of a snapshot; plan, explain and skew read it with --snapshot."""
    from rebalancer.runtime.looking import observe_now, read_snapshot
    from rebalancer.state.snapshot import anonymize as anonymized
    from rebalancer.state.snapshot import dump_snapshot

    session = opened(kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings, policy=policy)
    with showing("reading") as display:
        state = read_snapshot(source) if source is not None else observe_now(session, stage=display.stage)[0]
    if anonymize:
        state = anonymized(state, salt=secrets.token_hex(16))
    data = dump_snapshot(state)
    save(file, data)
    nodes, pods = len(state.nodes.names), len(state.pods.names)
    print_text(f"wrote {file}: {nodes} nodes, {pods} pods, {len(data) / 1024:.0f} KiB{', anonymous' if anonymize else ''}")
