"""Does steering steer: the ways side by side on the real control plane: `python -m benchmarks.steering`, or `make steering`.

    python -m benchmarks.steering [--seconds S] [--seed N] [--write benchmarks/STEERING.md]

Each way lives through the closed loop of the same town with every pod on the same node at the start, then through a burst of new pods
while nodes are hot. Then kube-scheduler works with extenders that fail. Nothing here judges.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.cycle import this_machine
from benchmarks.reference import folder_for
from benchmarks.steering_page import Findings, markdown, tables
from tests.e2e import binaries
from tests.e2e.ground import ground
from tests.e2e.hollow import HollowNode
from tests.e2e.plane import Plane
from tests.e2e.reference_course import Course
from tests.e2e.reference_town import Town
from tests.e2e.steering_failures import Latency, latencies
from tests.e2e.steering_run import SECONDS, SEED, Burst, burst, half_hot, small_town, steered
from tests.e2e.steering_ways import WAYS

PROBED = "e2e-probed"


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    machine = this_machine()
    town = small_town(seed=options.seed)
    if not shutil.which("prometheus"):
        print("error: no prometheus on the PATH: apt-get install prometheus", file=sys.stderr)
        return 2
    try:
        found = binaries.find()
    except binaries.Unavailable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with folder_for(options.keep) as folder, Plane(found, folder / "plane") as plane:
        findings = Findings(
            courses=tuple(_loops(plane, folder, town, seconds=options.seconds)),
            bursts=tuple(_bursts(plane, folder)),
            latencies=tuple(_failures(plane, folder)),
        )
    for line in tables(findings):
        print(line)
    if options.write is not None:
        command = shlex.join(["python", "-m", "benchmarks.steering", *given])
        page = markdown(findings, town=town, machine=machine, kubernetes=found.version, seconds=options.seconds, command=command)
        options.write.write_text(page, encoding="utf-8")
    return 0


def _loops(plane: Plane, folder: Path, town: Town, *, seconds: float) -> Iterator[Course]:
    for number, way in enumerate(WAYS):
        _say(f"closed loop: {way.name} ...")
        yield steered(plane, folder / f"loop-{number}", town, way, seconds=seconds)


def _bursts(plane: Plane, folder: Path) -> Iterator[Burst]:
    with half_hot(plane, folder / "burst") as own:
        for way in WAYS:
            if way.hinted:  # hints are for replacements
                continue
            _say(f"burst: {way.name} ...")
            yield burst(own, way)


def _failures(plane: Plane, folder: Path) -> Iterator[Latency]:
    _say("extenders that fail ...")
    nodes = [HollowNode(f"node-{number}") for number in range(4)]
    with ground(plane, folder / "failures", nodes, monitored=False) as own:
        own.namespace(PROBED)
        yield from latencies(own, PROBED)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steering", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help=f"measured time of each closed loop ({SECONDS:g})")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"the same seed makes the same town ({SEED})")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page to FILE, as Markdown")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave logs, policies and data there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
