"""Cycles of clusters of several sizes side by side, and how each number grows with the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.scene import Cycle, SteadyRun

MIB = 2**20


def steady_cycle(run: SteadyRun, number: Callable[[Cycle], float]) -> float:
    """The median over the cycles after the first."""
    return float(np.median([number(cycle) for cycle in run.cycles[1:] or run.cycles]))


def exponent(runs: Sequence[SteadyRun], numbers: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms: 1 grows as the number of pods does. NaN for less than two sizes."""
    pods = np.array([run.served.pods for run in runs], dtype=np.float64)
    if len(set(pods.tolist())) < 2 or min(numbers) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(pods), np.log(np.array(numbers, dtype=np.float64)), 1)[0])


def rows(runs: Sequence[SteadyRun]) -> Iterator[tuple[str, ...]]:
    """One row a number, one column a size, the growth in the last."""
    yield ("", *(f"{run.served.nodes:,} nodes, {run.served.pods:,} pods" for run in runs), "grows as pods to the")

    def row(name: str, numbers: Sequence[float], shown: str) -> tuple[str, ...]:
        power = exponent(runs, numbers)
        return (name, *(shown.format(number) for number in numbers), "" if np.isnan(power) else f"{power:.2f}")

    yield row("start (imports): CPU", [run.cycles[0].between_cpu_seconds for run in runs], "{:.2f} s")
    yield row("first cycle: CPU", [run.cycles[0].cpu_seconds for run in runs], "{:.2f} s")
    yield from _stages(runs, lambda run, stage: run.cycles[0].stages[stage].cpu_seconds, row)
    yield row("steady cycle: CPU", [steady_cycle(run, lambda cycle: cycle.cpu_seconds) for run in runs], "{:.2f} s")
    yield from _stages(runs, lambda run, stage: steady_cycle(run, lambda cycle: cycle.stages[stage].cpu_seconds), row)
    yield row(
        "between two cycles, by the watch: CPU", [steady_cycle(run, lambda cycle: cycle.between_cpu_seconds) for run in runs], "{:.2f} s"
    )
    yield row("three steady cycles, and what lies between: CPU", [_three_steady(run) for run in runs], "{:.2f} s")
    yield row("start, first and two steady cycles: CPU", [_start_and_three(run) for run in runs], "{:.2f} s")
    yield row("peak memory", [run.cycles[-1].peak_bytes / MIB for run in runs], "{:.0f} MiB")
    yield row("memory between cycles", [run.cycles[-1].resident_bytes / MIB for run in runs], "{:.0f} MiB")
    for name in ("kubernetes", "prometheus"):
        first = [getattr(run, name)[0] for run in runs]
        later = [getattr(run, name)[-1] for run in runs]
        yield row(f"{name}, first cycle: JSON", [each.json_bytes / MIB for each in first], "{:.2f} MiB")
        yield row(f"{name}, first cycle: on the wire", [each.wire_bytes / MIB for each in first], "{:.2f} MiB")
        yield row(f"{name}, steady cycle: JSON", [each.json_bytes / MIB for each in later], "{:.2f} MiB")
        yield row(f"{name}, steady cycle: on the wire", [each.wire_bytes / MIB for each in later], "{:.2f} MiB")
        yield row(f"{name}, steady cycle: requests", [each.requests for each in later], "{:.0f}")
    yield row("hot nodes", [run.cycles[-1].hot_nodes for run in runs], "{:.0f}")
    yield row("moves planned", [run.cycles[-1].moves for run in runs], "{:.0f}")


def _stages(
    runs: Sequence[SteadyRun],
    seconds: Callable[[SteadyRun, int], float],
    row: Callable[[str, Sequence[float], str], tuple[str, ...]],
) -> Iterator[tuple[str, ...]]:
    for number, stage in enumerate(runs[0].cycles[0].stages):
        yield row(f"- {stage.name}", [seconds(run, number) for run in runs], "{:.2f} s")


def _start_and_three(run: SteadyRun) -> float:
    """What the process has used from its birth to the end of its third cycle."""
    return sum(cycle.between_cpu_seconds + cycle.cpu_seconds for cycle in run.cycles[:3])


def _three_steady(run: SteadyRun) -> float:
    return 3 * steady_cycle(run, lambda cycle: cycle.cpu_seconds + cycle.between_cpu_seconds)


def text(runs: Sequence[SteadyRun]) -> str:
    """Columns of equal width."""
    table = list(rows(runs))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in table
    )
