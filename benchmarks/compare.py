"""This project beside its peers, in the same worlds: `python -m benchmarks.compare`, or `make compare`.

    python -m benchmarks.compare [--hours H] [--scenarios skewed bursts ...] [--traces DIR] [--seed N] [--write benchmarks/PEERS.md]

Every scenario is lived through by doing nothing, by this project and by each peer, all from the same seed. Nothing here judges.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from benchmarks.comparison import OWN, OWN_DEFAULTS, markdown, section
from benchmarks.cycle import this_machine
from benchmarks.peers import LOW_NODE_LOAD, LOW_NODE_UTILIZATION_1, LOW_NODE_UTILIZATION_5, REDUCE_HIGH_LOAD_NODE
from rebalancer import __version__
from rebalancer.errors import RebalancerError
from rebalancer.policy.loader import load_policy
from rebalancer.policy.model import RebalancePolicy
from rebalancer.report.simulation import SimulationReport
from rebalancer.runtime.own_strategy import REBALANCER
from rebalancer.runtime.simulating import open_world, simulate
from rebalancer.simulate.forward.running import Contestant
from rebalancer.simulate.forward.strategy import DO_NOTHING

SCENARIOS = Path(__file__).resolve().parents[1] / "config" / "scenarios"
EARLY = SCENARIOS.parent / "policy-early.yaml"
DEFAULT_SCENARIOS = ("skewed", "diurnal", "bursts", "node-failures", "balanced-noise")
TRACED = "planetlab"
"""Joins the default scenarios when there are traces."""
DEFAULT_HOURS = 6.0
WHOLE_DAY = ("diurnal",)
"""Scenarios of which six hours from midnight show nothing."""
SHORT_INTERVAL_S = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    machine, reports = this_machine(), list[SimulationReport]()
    try:
        for path in _paths(options.scenarios, options.traces):
            print(f"simulating {path.stem} ...", file=sys.stderr, flush=True)
            reports.append(compare_in(path, hours=options.hours or _default_hours(path), seed=options.seed, traces=options.traces))
            print(section(reports[-1]), flush=True)
            print(flush=True)
    except RebalancerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    if options.write is not None:
        shown = ["DIR" if before == "--traces" else word for before, word in zip(["", *given], given, strict=False)]
        command = shlex.join(["python", "-m", "benchmarks.compare", *shown])
        options.write.write_text(markdown(reports, machine=machine, version=__version__, command=command), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hours", type=_hours, metavar="H", help="simulated hours of each scenario (6; a day for diurnal)")
    parser.add_argument("--scenarios", nargs="+", metavar="NAME", help="files of config/scenarios without .yaml, or paths")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="directory of the traces; adds the scenario planetlab")
    parser.add_argument("--seed", type=int, metavar="N", help="instead of the seed of each scenario")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page to FILE, as Markdown")
    return parser


def _default_hours(path: Path) -> float:
    return 24.0 if path.stem in WHOLE_DAY else DEFAULT_HOURS


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= 744:
        raise argparse.ArgumentTypeError("give more than 0 and at most 744 hours")
    return hours


def _paths(names: Sequence[str] | None, traces: Path | None) -> list[Path]:
    chosen = list(names or (*DEFAULT_SCENARIOS, *((TRACED,) if traces is not None else ())))
    return [Path(name) if name.endswith((".yaml", ".yml")) else SCENARIOS / f"{name}.yaml" for name in chosen]


def compare_in(path: Path, *, hours: float, seed: int | None = None, traces: Path | None = None) -> SimulationReport:
    """One scenario with everybody in it. Raises ScenarioError and UsageError."""
    opened = open_world(path, policies=(), seed=seed, hours=hours, traces=traces)
    contestants = line_up_peers(opened.policies[0])
    return simulate(opened.setting, contestants, hours=opened.hours, description=opened.description)


def line_up_peers(policy: RebalancePolicy) -> tuple[Contestant, ...]:
    """Nothing, this project by its early policy and by its defaults, and the peers; all with the scenario's marks and interval.

    LowNodeLoad is also there with the short interval that it is made for.
    """
    peers = (LOW_NODE_UTILIZATION_1, LOW_NODE_UTILIZATION_5, LOW_NODE_LOAD, REDUCE_HIGH_LOAD_NODE)
    early = load_policy(EARLY).spec
    own = policy.spec.model_copy(update={"confirm": early.confirm, "risk": early.risk, "budgets": early.budgets})
    often = policy.model_copy(update={"spec": policy.spec.model_copy(update={"interval": SHORT_INTERVAL_S})})
    shorter = Contestant(f"{LOW_NODE_LOAD.name}, every {SHORT_INTERVAL_S:g} s", LOW_NODE_LOAD, often)
    return (
        Contestant(DO_NOTHING.name, DO_NOTHING, policy),
        Contestant(OWN, REBALANCER, policy.model_copy(update={"spec": own})),
        Contestant(OWN_DEFAULTS, REBALANCER, policy),
        *(Contestant(kind.name, kind, policy) for kind in peers),
        shorter,
    )


if __name__ == "__main__":
    sys.exit(main())
