"""`rebalancer demo`: see it work in a minute, with nothing but Python."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalancer.cli.options import NoColor, Output
from rebalancer.cli.output import print_document
from rebalancer.cli.progress import showing
from rebalancer.report.registry import Format

Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same cluster and the same result.", min=0)]
Cycles = Annotated[int, typer.Option("--cycles", help="How many cycles the controller makes.", min=1, max=100)]
Compare = Annotated[bool, typer.Option("--compare", help="Run the same cluster with and without soft taints, and show both.")]
Gpu = Annotated[bool, typer.Option("--gpu", help="A cluster with GPUs: shared and whole ones, training gangs, notebooks.")]

ForTenants = Annotated[bool, typer.Option("--tenants", help="A cluster that teams share: one wants back what another has borrowed.")]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    seed: Seed = 7,
    cycles: Cycles = 6,
    gpu: Gpu = False,
    tenants: ForTenants = False,
    compare: Compare = False,
    output: Output = Format.TABLE,
    no_color: NoColor = False,
) -> None:
    """Run the real controller against an embedded cluster, and show before and after. Touches no other cluster."""
    import logging

    import structlog

    from rebalancer.errors import UsageError
    from rebalancer.report.demo import DemoComparison
    from rebalancer.runtime.demo import run_demo

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if tenants and (gpu or compare):
        raise UsageError("--tenants shows a cluster of its own", remedy="leave out --gpu and --compare, or leave out --tenants")
    if tenants:
        _demo_of_tenants(seed=seed, cycles=cycles, output=output, no_color=no_color)
        return
    runs = (True, False) if compare else (True,)
    results = []
    with showing("making a cluster", of=cycles * len(runs)) as display:
        for place, soft_taints in enumerate(runs):

            def tell(done: int, words: str, before: int = place * cycles) -> None:
                display.count(before + done, cycles * len(runs))
                display.stage(words)

            results.append(run_demo(seed=seed, cycles=cycles, soft_taints=soft_taints, gpu=gpu, on_cycle=tell))
    if compare:
        print_document(DemoComparison(with_soft_taints=results[0], without_soft_taints=results[1]), output, no_color=no_color)
    else:
        print_document(results[0], output, no_color=no_color)


def _demo_of_tenants(*, seed: int, cycles: int, output: Format, no_color: bool) -> None:
    from rebalancer.runtime.demo_tenants import run_tenants_demo

    with showing("making a cluster", of=cycles) as display:

        def tell(done: int, words: str) -> None:
            display.count(done, cycles)
            display.stage(words)

        result = run_tenants_demo(seed=seed, cycles=cycles, on_cycle=tell)
    print_document(result, output, no_color=no_color)
