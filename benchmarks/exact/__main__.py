"""Our distance to the optimum: `python -m benchmarks.exact`, or `make yardstick`.

    python -m benchmarks.exact [--seeds N ...] [--scenario FILE] [--hours H] [--seconds S] [--write benchmarks/YARDSTICK.md]

Nothing here judges; the numbers are for people.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cycle import this_machine
from benchmarks.exact.frozen import SCENARIO, Frozen, freeze_world, without_budgets
from benchmarks.exact.measuring import Beside, put_beside
from benchmarks.exact.page import SeedResult, distances, markdown, rules, summary
from benchmarks.exact.problem import Places
from rebalancer import __version__
from rebalancer.errors import RebalancerError

DEFAULT_SEEDS = (1, 2, 3, 4, 5, 6, 7, 8)
DEFAULT_SECONDS = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    machine, results, scenario = this_machine(), list[SeedResult](), ""
    try:
        for seed in options.seeds:
            print(f"solving seed {seed} ...", file=sys.stderr, flush=True)
            frozen = freeze_world(options.scenario, seed=seed, hours=options.hours)
            scenario = frozen.scenario
            results.append(measure(frozen, seconds=options.seconds))
    except RebalancerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    print("\n\n".join((distances(results), summary(results), rules(results))))
    if options.write is not None:
        command = shlex.join(["python", "-m", "benchmarks.exact", *given])
        solver = importlib.metadata.version("highspy")
        page = markdown(results, scenario=scenario, machine=machine, version=__version__, solver=solver, command=command)
        options.write.write_text(page, encoding="utf-8")
    return 0


def measure(frozen: Frozen, *, seconds: float) -> SeedResult:
    """Everything about one frozen world. ``seconds``: for each question to the solver."""
    free = without_budgets(frozen.policy)

    def under(*, limits: bool = True, places: Places = Places.FREE, narrower: Beside | None = None) -> Beside:
        return put_beside(frozen, free, limits=limits, places=places, narrower=narrower, seconds=seconds, seed=frozen.seed)

    cool = under(places=Places.UNDER_TARGET)
    unlimited = under(narrower=cool)
    return SeedResult(
        seed=frozen.seed,
        nodes=len(frozen.state.nodes.names),
        pods=len(frozen.state.pods.names),
        unlimited=unlimited,
        policy=put_beside(frozen, frozen.policy, seconds=seconds, seed=frozen.seed),
        rules=(
            under(limits=False),
            unlimited,
            cool,
            under(places=Places.PREDICTED),
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=DEFAULT_SEEDS, metavar="N", help="worlds of the scenario (1 to 8)")
    parser.add_argument("--scenario", type=Path, default=SCENARIO, metavar="FILE", help="config/scenarios/skewed.yaml if not given")
    parser.add_argument("--hours", type=float, default=0.0, metavar="H", help="simulated hours that pass before the world is frozen (0)")
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, metavar="S", help="for each question to the solver (20)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page to FILE, as Markdown")
    return parser


if __name__ == "__main__":
    sys.exit(main())
