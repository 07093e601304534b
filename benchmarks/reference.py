"""The reference scenario on the real control plane: `python -m benchmarks.reference`, or `make reference`.

    python -m benchmarks.reference [--nodes N --pods M] [--seconds S] [--seed N] [--write benchmarks/REFERENCE.md]

Each contender begins with every pod on the same node and lives through the same minutes; a seed is a start. Nothing here judges.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.cycle import this_machine
from benchmarks.reference_page import markdown, table
from tests.e2e import binaries
from tests.e2e.plane import Plane
from tests.e2e.reference_course import Course
from tests.e2e.reference_run import NOTHING, REBALANCER, WITHOUT_TAINTS, live
from tests.e2e.reference_town import NODES, PODS, SEED, Town, arranged, build_town

SECONDS = 240.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    machine = this_machine()
    town = build_town(nodes=options.nodes, pods=options.pods, seed=options.seed)
    if not shutil.which("prometheus"):
        print("error: no prometheus on the PATH: apt-get install prometheus", file=sys.stderr)
        return 2
    try:
        found = binaries.find()
    except binaries.Unavailable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with folder_for(options.keep) as folder, Plane(found, folder / "plane") as plane:
        courses = list(compete(plane, folder, town, seconds=options.seconds))
    for line in table(courses):
        print(line)
    if options.write is not None:
        command = shlex.join(["python", "-m", "benchmarks.reference", *given])
        page = markdown(courses, town=town, machine=machine, kubernetes=found.version, seconds=options.seconds, command=command)
        options.write.write_text(page, encoding="utf-8")
    return 0


def compete(plane: Plane, folder: Path, town: Town, *, seconds: float) -> Iterator[Course]:
    """One after the other, each on a cluster of its own that is filled alike."""
    start = arranged(town)
    for number, contender in enumerate((NOTHING, WITHOUT_TAINTS, REBALANCER)):
        print(f"{contender.name} ...", file=sys.stderr, flush=True)
        yield live(plane, folder / str(number), town, contender, seconds=seconds, placement=start)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=NODES, metavar="N", help=f"hollow nodes of 32 cores ({NODES})")
    parser.add_argument("--pods", type=int, default=PODS, metavar="M", help=f"pods of Deployments ({PODS:,})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help=f"measured time of each contender ({SECONDS:g})")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"the same seed makes the same town ({SEED})")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page to FILE, as Markdown")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave logs, policies and data there")
    return parser


@contextmanager
def folder_for(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="rebalancer-benchmark-") as made:
        yield Path(made)


if __name__ == "__main__":
    sys.exit(main())
