"""`rebalancer simulate`: policies and strategies side by side in a simulated world, before a cluster sees them. Touches no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.options import NoColor, Output
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

DEFAULT_STRATEGIES = ("none", "rebalancer")
DEFAULT_SEED = 7
MOST_HOURS = 744.0

World = Annotated[
    Path,
    typer.Argument(metavar="SCENARIO|SNAPSHOT", help="A scenario file (YAML), or what `rebalancer snapshot` wrote.", show_default=False),
]
Policies = Annotated[
    list[Path] | None,
    typer.Option("--policy", help="Policy file to try; may be given several times. Default: the scenario's own.", metavar="FILE"),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        help="Strategy to try: none, rebalancer, or package.module:NAME; may be given several times. Default: none and rebalancer.",
        metavar="NAME",
    ),
]
Hours = Annotated[
    float | None, typer.Option("--hours", help="How long to simulate. Default: the scenario's, or 24.", min=0.01, max=MOST_HOURS)
]
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same world. Default: the scenario's, or 7.", min=0)]
Traces = Annotated[
    Path | None, typer.Option("--traces", help="Directory of the traces that the scenario replays.", metavar="DIR", show_default=False)
]


def register(app: typer.Typer) -> None:
    app.command("simulate")(simulate)


def simulate(
    world: World,
    policy: Policies = None,
    strategy: Strategies = None,
    hours: Hours = None,
    seed: Seed = None,
    traces: Traces = None,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Compare policies and strategies in a simulated world: hot nodes, evictions and what they did, side by side. Touches no cluster."""
    import logging

    import structlog

    from rebalancer.policy.loader import load_policy
    from rebalancer.runtime.own_strategy import find_strategy
    from rebalancer.runtime.simulating import open_world
    from rebalancer.runtime.simulating import simulate as run
    from rebalancer.simulate.forward.running import Contestant, line_up

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    kinds = [find_strategy(name) for name in dict.fromkeys(strategy or DEFAULT_STRATEGIES)]
    policies = [load_policy(path) for path in policy or ()]
    with showing("making a world", of=100) as display:
        opened = open_world(world, policies=policies, seed=seed, hours=hours, traces=traces)
        contestants = line_up(kinds, opened.policies)

        def tell(contestant: Contestant, share: float) -> None:
            display.stage(contestant.label)
            display.count(round((contestants.index(contestant) + share) / len(contestants) * 100), 100)

        report = run(opened.setting, contestants, hours=opened.hours, description=opened.description, on_progress=tell)
    print_document(report, output, no_color=no_color)
