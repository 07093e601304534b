"""`rebalancer tenants validate`: is a tenants file right, in itself and for a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer.cli.errors import warn
from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, PrometheusUrl, SettingsFile, SnapshotFile
from rebalancer.cli.output import print_text

if TYPE_CHECKING:
    from rebalancer.policy.document import Document, Mistake
    from rebalancer.state.cluster import ClusterState

QuotasFile = Annotated[Path, typer.Argument(metavar="FILE", help="The tenants file.", show_default=False)]
Live = Annotated[bool, typer.Option("--live", help="Hold it against the cluster.")]


def validate(
    file: QuotasFile,
    live: Live = False,
    snapshot: SnapshotFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
) -> None:
    """Check a tenants file; with --live or --snapshot also against what a cluster has."""
    from rebalancer.detect.tenants.checking import check_tenants
    from rebalancer.errors import PolicyError
    from rebalancer.policy.document import parse_document, read_text
    from rebalancer.policy.mistakes import failure_of
    from rebalancer.policy.tenants_loader import WHAT, parse_tenants

    text = read_text(file, what=WHAT, error=PolicyError)
    try:
        quotas = parse_tenants(text, origin=str(file))
        if not quotas.spec.tenants:
            print_text(f"OK: {file}: no tenants, so nobody is evicted for a quota")
            return
        document = parse_document(text, origin=str(file), what=WHAT, error=PolicyError)
        state = _state(live, snapshot, kubeconfig, context, prometheus_url, settings)
        found = check_tenants(quotas.spec, state)
        if found.mistakes:
            raise failure_of([_located(each, document) for each in found.mistakes], origin=str(file), error=PolicyError)
    except PolicyError as error:
        for mistake in error.mistakes[1:]:
            warn(f"also {mistake}")
        raise
    for each in found.warnings:
        warn(f"{file}, line {document.line_of(each.path)}: {each.message}: {each.remedy}")
    leaves = sum(1 for _ in quotas.spec.leaves())
    against = "" if state is None else f", held against {len(state.nodes.names)} nodes and {len(state.pods.names)} pods"
    print_text(f"OK: {file}: tenants {quotas.metadata.name}, {leaves} with pods of their own{against}")


def _located(mistake: Mistake, document: Document) -> Mistake:
    return replace(mistake, line=document.line_of(mistake.path))


def _state(
    live: bool, snapshot: Path | None, kubeconfig: Path | None, context: str | None, prometheus_url: str | None, settings: Path | None
) -> ClusterState | None:
    if snapshot is None and not live:
        return None
    from rebalancer.runtime.looking import observe_now, read_snapshot

    if snapshot is not None:
        return read_snapshot(snapshot)
    return observe_now(opened(kubeconfig=kubeconfig, context=context, prometheus_url=prometheus_url, settings=settings))[0]
