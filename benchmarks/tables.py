"""The numbers of a benchmark as tables: plain for a terminal, Markdown for the file that keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import growth
from benchmarks.scene import Report, Run

MIB = 2**20


def rows(report: Report) -> Iterator[tuple[str, ...]]:
    """One row a number, one column a run, and in the last one how the second run compares with the first."""
    runs = report.runs
    yield ("", *(f"{run.served.nodes:,} nodes" for run in runs))
    yield ("", *(f"{run.served.pods:,} pods" for run in runs))
    yield ("hot nodes found", *(str(run.measured.hot_nodes) for run in runs))
    for number, stage in enumerate(runs[0].measured.stages):
        cells = [(run.measured.stages[number].cpu_seconds, run.measured.stages[number].wall_seconds) for run in runs]
        yield (f"{stage.name}: CPU / wall", *(f"{cpu:.2f} s / {wall:.2f} s" for cpu, wall in cells))
    yield ("whole cycle: CPU / wall", *(f"{run.measured.cpu_seconds:.2f} s / {run.measured.wall_seconds:.2f} s" for run in runs))
    yield ("peak memory", *(f"{run.measured.peak_bytes / MIB:.0f} MiB" for run in runs))
    yield ("of that after imports", *(f"{run.measured.baseline_bytes / MIB:.0f} MiB" for run in runs))
    for number, stage in enumerate(runs[0].measured.stages):
        yield (f"peak until {stage.name}", *(f"{run.measured.stages[number].peak_bytes / MIB:.0f} MiB" for run in runs))
    for name in ("kubernetes", "prometheus"):
        traffic = [getattr(run, name) for run in runs]
        yield (f"{name}: requests", *(str(one.requests) for one in traffic))
        yield (f"{name}: JSON / on the wire", *(f"{one.json_bytes / MIB:.1f} / {one.wire_bytes / MIB:.1f} MiB" for one in traffic))
    yield ("moves planned", *(str(run.measured.moves) for run in runs))
    yield ("candidates refused", *(f"{run.measured.refused:,}" for run in runs))
    yield ("plan document", *(f"{run.measured.plan_bytes / MIB:.2f} MiB" for run in runs))


def text(report: Report) -> str:
    """Columns of equal width."""
    table = [tuple(row) for row in rows(report)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in table
    ]
    steady = ["", growth.text(report.steady)] if report.steady else []
    return "\n".join([*_circumstances(report), "", *lines, *_growth(report.runs), *steady])


def markdown(report: Report) -> str:
    """The same as a page."""
    first, second, *rest = rows(report)
    head = tuple(f"{a}, {b}" if a else "" for a, b in zip(first, second, strict=True))
    steady = _table(list(growth.rows(report.steady))) if report.steady else "Not measured in this run."
    page = Path(__file__).with_name("results_page.md").read_text(encoding="utf-8")
    circumstances = "\n".join(f"- {line}" for line in _circumstances(report))
    return page.format(
        circumstances=circumstances, table=_table([head, *rest]), growth="\n".join(_growth(report.runs)).strip(), steady=steady
    )


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join([_cells(head), _cells(["---", *["---:"] * (len(head) - 1)]), *(_cells(row) for row in rest)])


def _cells(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def _circumstances(report: Report) -> list[str]:
    machine, seeds = report.machine, sorted({run.scene.seed for run in report.runs})
    return [
        f"machine: {machine.processor}, {machine.cores} cores, {machine.system}, load average at the start {machine.load_average:.1f}",
        f"Python {machine.python}, numpy {machine.numpy}, msgspec {machine.msgspec}",
        f"seed {', '.join(map(str, seeds))}",
    ]


def _growth(runs: Sequence[Run]) -> list[str]:
    """How CPU and memory grow beside the number of pods, from the smallest run to each larger one."""
    first, lines = runs[0], []
    for run in runs[1:]:
        own, base = run.measured, first.measured
        pods = run.served.pods / first.served.pods
        cpu = own.cpu_seconds / base.cpu_seconds
        memory = (own.peak_bytes - own.baseline_bytes) / (base.peak_bytes - base.baseline_bytes)
        lines.append(f"{run.scene.words}: {pods:.1f} times the pods, {cpu:.1f} times the CPU, {memory:.1f} times the memory above imports")
    return ["", *lines] if lines else []
