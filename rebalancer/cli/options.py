"""The flags that several commands share, so that they are spelt and explained alike everywhere.

Every one of them defaults to None, which means "not given": environment, settings file and defaults decide then, in that order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.policy.model import Mode
from rebalancer.report.registry import Format

_WHERE = "Where things are"
_WHAT = "What is wanted"
_SHOWN = "What is shown"

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Kubeconfig file; default: in-cluster, else the usual rules.", rich_help_panel=_WHERE),
]
Context = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig.", rich_help_panel=_WHERE)]
PrometheusUrl = Annotated[
    str | None, typer.Option("--prometheus-url", help="Prometheus, for example http://prometheus:9090.", rich_help_panel=_WHERE)
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="YAML file that says where things are.", metavar="FILE", rich_help_panel=_WHERE)
]
SnapshotFile = Annotated[
    Path | None, typer.Option("--snapshot", help="Read this snapshot instead of a cluster.", metavar="FILE", rich_help_panel=_WHERE)
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", help="Policy file; default: the built-in, safe policy.", metavar="FILE", rich_help_panel=_WHAT),
]
TenantsFile = Annotated[
    Path | None, typer.Option("--tenants", help="Tenants file; default: there are no tenants.", metavar="FILE", rich_help_panel=_WHAT)
]
ModeChoice = Annotated[
    Mode | None, typer.Option("--mode", help="What may be written to the cluster; default: what the policy says.", rich_help_panel=_WHAT)
]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the thing that is named.", rich_help_panel=_WHAT)]
Output = Annotated[Format, typer.Option("--output", "-o", help="Format of the output.", case_sensitive=False, rich_help_panel=_SHOWN)]
NoColor = Annotated[
    bool, typer.Option("--no-color", help="Plain text; so is piped output, and all of it with NO_COLOR set.", rich_help_panel=_SHOWN)
]
