"""What is lost of free GPUs, and who gets in after all: `python -m benchmarks.fragmentation --traces DIR`, or `make fragmentation`.

    python -m benchmarks.fragmentation --traces DIR [--nodes N] [--seed N ...] [--write benchmarks/FRAGMENTATION.md]

A fleet from the openb trace is filled; then pods wait. Everybody begins with the same fleet. Nothing here judges.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cycle import this_machine
from benchmarks.frag_baselines import frag_multi_pod, frag_one_pod
from benchmarks.fragmented_fleet import Fleet, Measure, fill, read_fleet
from rebalancer.detect.classify import detect
from rebalancer.plan.defragment import Defragment
from rebalancer.plan.planner import decide
from rebalancer.policy.defragment import Defragment as Rules
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.model import Budgets, Mode, RebalancePolicy, Spec
from rebalancer.state.history import NOTHING_HAPPENED

RATIO = 0.05
ROUNDS = 70
"""Plans of this project at most, one pod helped by each."""
GENEROUS = Budgets(total=100_000, per_node=100, per_namespace=100_000)
BY_REQUEST = Gpu(same_model=False, unmeasured="by-request")
"""What the others go by as well: the trace measures no memory of devices, and its pods name the models that they need."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    lost: float
    free: float
    waiting: int
    moves: int
    homeless: int
    """Pods that were taken out and found no place."""
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="benchmarks.fragmentation")
    parser.add_argument("--traces", type=Path, default=Path(os.environ.get("REBALANCER_TRACES", "traces")))
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--seed", type=int, nargs="+", default=[7, 8, 9])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(given)
    if not (options.traces / "openb_pod_list_default.csv").is_file():
        print(f"skipped: no openb_pod_list_default.csv in {options.traces}; name its directory by --traces", file=sys.stderr)
        return 0
    machine = this_machine()
    lines = [f"- machine: {machine.processor}, {machine.cores} cores, {machine.system}; Python {machine.python}, numpy {machine.numpy}"]
    for seed in options.seed:
        fleet = read_fleet(options.traces, nodes=options.nodes, seed=seed)
        waiting = fill(fleet, allocated=0.97, most_waiting=60)
        given_away = f"{1 - fleet.free / fleet.devices:.1%} of them given away"
        lines += ["", f"## Seed {seed}", ""]
        lines += [
            f"{len(fleet.machines)} nodes, {fleet.devices:,} GPUs, {given_away}, {len(fleet.places):,} pods; {len(waiting)} pods wait.",
            "",
        ]
        lines += table(compete(fleet, waiting))
    page = "\n".join(lines)
    print(page)
    if options.write is not None:
        options.write.write_text(f"# GPU fragmentation\n\n{ABOUT}\n{page}\n", encoding="utf-8")
    return 0


ABOUT = """A fleet of nodes, drawn from the openb trace, is filled by the stock scheduler's scores; then pods wait. Everybody begins with
the same fleet. This file is written by

    python -m benchmarks.fragmentation --traces DIR --write benchmarks/FRAGMENTATION.md

- **GPUs lost**: free parts of GPUs that typical pods cannot use, by the FGD measure, in devices.
- **Wait in the end**: pods that waited and got no place, and pods that were taken out for them and found none.
- `fragOnePod` and `fragMultiPod` take out at most 5 % of the pods by what their leaving does to the node they leave; the stock scheduler
  places them again, after the pods that wait have had their turn. They never ask whether there is another place.
- `defragment` is this project's method, with generous budgets and at most four moves for one waiting pod: a plan for each pod that waits.
  A pod makes way only if it has another place, so nobody is left without one.
- GPU use is taken from requests, CPU and memory use are fixed parts of what was asked for: the trace has none. So the policy is
  `gpu: {sameModel: false, unmeasured: by-request}` here, which are the terms of the others.
- Seconds are of all plans together.

"""


def compete(fleet: Fleet, waiting: list[int]) -> list[Row]:
    measure = fleet.measure()
    rows = []
    for name in ("nothing done", "fragOnePod", "fragMultiPod", "defragment"):
        print(f"{name} ...", file=sys.stderr, flush=True)
        own, left, began = fleet.copy(), list(waiting), time.perf_counter()
        moves, homeless = 0, 0
        if name == "defragment":
            moves = _defragment(own, left)
        elif name != "nothing done":
            choose = frag_one_pod if name == "fragOnePod" else frag_multi_pod
            victims = choose(own, measure, ratio=RATIO)
            for row in victims:
                own.remove(row)
            left = [row for row in left if not own.place(row)]
            moves, homeless = len(victims), sum(not own.place(row) for row in victims)
        rows.append(_row(name, own, left, measure, moves, homeless, time.perf_counter() - began))
    return rows


def _defragment(fleet: Fleet, waiting: list[int]) -> int:
    """Carry out plans; how many moves it took."""
    policy = RebalancePolicy(spec=Spec(defragment=Rules(enabled=True, max_moves=4), budgets=GENEROUS, gpu=BY_REQUEST))
    moves, by_name = 0, {ask.name: row for row, ask in enumerate(fleet.asks)}
    node = {machine.name: row for row, machine in enumerate(fleet.machines)}
    vain: set[int] = set()
    for _ in range(ROUNDS):
        turn = [row for row in waiting if row not in vain][:1]
        if not turn:
            break
        state = fleet.state(turn)
        plan = decide(
            state=state,
            findings=detect(state, policy.spec),
            policy=policy,
            history=NOTHING_HAPPENED,
            mode=Mode.EVICT,
            methods=(Defragment(),),
        ).plan
        if not plan.moves:
            vain.update(turn)
            continue
        for move in plan.moves:
            fleet.remove(by_name[move.pod.name])
        fleet.put(turn[0], node[plan.moves[0].source])
        for move in plan.moves:
            fleet.put(by_name[move.pod.name], node[move.destination])
        waiting.remove(turn[0])
        moves += len(plan.moves)
    return moves


def _row(name: str, fleet: Fleet, waiting: list[int], measure: Measure, moves: int, homeless: int, seconds: float) -> Row:
    lost = float(measure.of(fleet.cpu, fleet.left).sum())
    return Row(name, lost, fleet.free, len(waiting), moves, homeless, seconds)


def table(rows: Sequence[Row]) -> list[str]:
    head = ("", "GPUs lost", "GPUs free", "wait in the end", "of them taken out", "moves", "seconds")
    cells = [
        (
            row.name,
            f"{row.lost:.1f}",
            f"{row.free:.1f}",
            str(row.waiting + row.homeless),
            str(row.homeless),
            str(row.moves),
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in (head, ("---", *["---:"] * (len(head) - 1)), *cells)]


if __name__ == "__main__":
    sys.exit(main())
