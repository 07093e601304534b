"""What is lost of free GPUs, and who gets in after all: `python -m benchmarks.fragmentation --traces DIR`, or `make fragmentation`.

    python -m benchmarks.fragmentation --traces DIR [--nodes N] [--seed N] [--write benchmarks/FRAGMENTATION.md]

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
from rebalancer.policy.model import Budgets, Mode, RebalancePolicy, Spec
from rebalancer.state.history import NOTHING_HAPPENED

RATIO = 0.05
ROUNDS = 40
"""Plans of this project at most, one pod helped by each."""
GENEROUS = Budgets(total=100_000, per_node=100, per_namespace=100_000)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    lost: float
    free: float
    waiting: int
    waiting_gpus: float
    moves: int
    homeless: int
    """Pods that were taken out and found no place."""
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="benchmarks.fragmentation")
    parser.add_argument("--traces", type=Path, default=Path(os.environ.get("REBALANCER_TRACES", "traces")))
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(given)
    if not (options.traces / "openb_pod_list_default.csv").is_file():
        print(f"skipped: no openb_pod_list_default.csv in {options.traces}; name its directory by --traces", file=sys.stderr)
        return 0
    fleet = read_fleet(options.traces, nodes=options.nodes, seed=options.seed)
    waiting = fill(fleet, allocated=0.97, most_waiting=60)
    rows = compete(fleet, waiting)
    filled = f"{len(fleet.machines)} nodes, {fleet.devices} GPUs, {len(fleet.places)} pods, {1 - fleet.free / fleet.devices:.1%} given away"
    page = "\n".join([f"{filled}, {len(waiting)} pods wait; seed {options.seed}; {this_machine()}", "", *table(rows)])
    print(page)
    if options.write is not None:
        options.write.write_text(f"# GPU fragmentation\n\n{__doc__.split(chr(10) * 2)[2].strip()}\n\n{page}\n\n{LEGEND}", encoding="utf-8")
    return 0


LEGEND = """Lost: free parts of GPUs that typical pods cannot use (FGD measure), in devices. The two baselines take out at most 5 % of the
pods by what their leaving does to the node they leave, and the stock scheduler places them again, after the pods that wait have had their
turn. `defragment` plans with generous budgets, a plan for each pod that waits, until it has nothing to propose or 40 plans were made. GPU
use is taken from requests here; CPU and memory use are fixed parts of what was asked for.
"""


def compete(fleet: Fleet, waiting: list[int]) -> list[Row]:
    measure = fleet.measure()
    rows = []
    for name in ("nothing", "fragOnePod", "fragMultiPod", "defragment"):
        print(f"{name} ...", file=sys.stderr, flush=True)
        own, left, began = fleet.copy(), list(waiting), time.perf_counter()
        moves, homeless = 0, 0
        if name == "defragment":
            moves = _defragment(own, left)
        elif name != "nothing":
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
    policy = RebalancePolicy(spec=Spec(defragment=Rules(enabled=True, max_moves=4), budgets=GENEROUS))
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
    gpus = sum(fleet.asks[row].devices * fleet.asks[row].share for row in waiting)
    return Row(name, lost, fleet.free, len(waiting), gpus, moves, homeless, seconds)


def table(rows: Sequence[Row]) -> list[str]:
    head = ("", "GPUs lost", "GPUs free", "pods still waiting", "GPUs they ask for", "moves", "moved without a place", "seconds")
    cells = [
        (
            row.name,
            f"{row.lost:.1f}",
            f"{row.free:.1f}",
            str(row.waiting),
            f"{row.waiting_gpus:.1f}",
            str(row.moves),
            str(row.homeless),
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in (head, ("---", *["---:"] * (len(head) - 1)), *cells)]


if __name__ == "__main__":
    sys.exit(main())
