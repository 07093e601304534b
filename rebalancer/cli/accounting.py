"""`rebalancer accounting`: what tenants requested, used, wasted and borrowed in a period, in hours and money."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.options import Kubeconfig, NoColor, Output, PrometheusUrl, SettingsFile
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

Since = Annotated[str, typer.Option("--since", help="How far back the period reaches: 24h, 7d, 30d.")]
Until = Annotated[str, typer.Option("--until", help="How long ago it ended.")]
By = Annotated[
    str,
    typer.Option(
        "--by", help="What to show, by commas: cpu, memory, gpu, model (each GPU model), or other resources; default: all.", metavar="WHAT"
    ),
]
PricesFile = Annotated[Path | None, typer.Option("--prices", help="Price list (kind Prices), for costs.", metavar="FILE")]


def register(app: typer.Typer) -> None:
    app.command("accounting")(accounting)


def accounting(
    since: Since = "7d",
    until: Until = "0s",
    by: By = "",
    prices: PricesFile = None,
    kubeconfig: Kubeconfig = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Add up what each tenant requested, used, wasted and borrowed, from the metrics that the controller leaves in Prometheus."""
    from rebalancer.cli.opening import opened
    from rebalancer.deadline import Deadline
    from rebalancer.policy.prices import load_prices
    from rebalancer.runtime.accounting import account
    from rebalancer.runtime.clock import SystemClock
    from rebalancer.runtime.session import connected_prometheus

    session = opened(kubeconfig=kubeconfig, prometheus_url=prometheus_url, settings=settings)
    lists = None if prices is None else load_prices(prices)
    wanted = tuple("gpu" if each == "model" else each for each in by.replace("tenant", "").replace(" ", "").split(",") if each)
    now = SystemClock().now()
    with connected_prometheus(session) as prometheus, showing("adding up"):
        report = account(
            prometheus,
            since=now - _seconds(since, "--since"),
            until=now - _seconds(until, "--until"),
            deadline=Deadline.after(session.settings.cycle_timeout),
            prices=lists,
            by=wanted,
        )
    print_document(report, output, no_color=no_color)


def _seconds(text: str, flag: str) -> float:
    from rebalancer.errors import UsageError
    from rebalancer.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}", remedy="write a duration such as 24h or 7d") from error
