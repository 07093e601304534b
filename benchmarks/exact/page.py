"""What the yardstick came to, as Markdown: our distance a seed, and what each rule costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import fill

from benchmarks.exact.measuring import Beside
from benchmarks.scene import Machine

WIDTH = 150
RULES = ("gates only", "all rules", "cool places", "predicted places")


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One frozen world. ``unlimited``, ``policy``: by the budgets. ``rules``: the unlimited one under each of `RULES`."""

    seed: int
    nodes: int
    pods: int
    unlimited: Beside
    policy: Beside
    rules: tuple[Beside, ...]


DISTANCES = (
    "seed",
    "hot",
    "budgets",
    "our moves",
    "the same with",
    "distance",
    "we cure",
    "can be cured",
    "with",
    "worst before",
    "worst after ours",
    "lowest",
    "distance",
    "solver",
    "gap",
)


def markdown(results: Sequence[SeedResult], *, scenario: str, machine: Machine, version: str, solver: str, command: str) -> str:
    """The page."""
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    first = results[0]
    circumstances = (
        f"- machine: {machine.processor}, {machine.cores} cores, {machine.system}, load average at the start {machine.load_average:.1f}",
        f"- rebalancer {version}, Python {machine.python}, numpy {machine.numpy}, highspy {solver}",
        f"- scenario {scenario}: {first.nodes:,} nodes, {first.pods:,} pods; seeds {', '.join(str(one.seed) for one in results)}",
    )
    return template.format(
        command=command,
        circumstances="\n".join(circumstances),
        distances=distances(results),
        summary=summary(results),
        rules=rules(results),
    )


def distances(results: Sequence[SeedResult]) -> str:
    rows = [row for one in results for row in (_row(one.seed, "unlimited", one.unlimited), _row(one.seed, "policy", one.policy))]
    return _table(DISTANCES, rows)


def rules(results: Sequence[SeedResult]) -> str:
    rows = []
    for one in results:
        cells = [f"{each.most.count} of {each.hot}, {_percent(each.lowest.worst)}" for each in one.rules]
        own = one.unlimited
        rows.append((str(one.seed), str(len(own.ours.moves)), *cells, f"{own.ours.cured} of {own.hot}, {_percent(own.ours.worst)}"))
    return _table(("seed", "moves", *RULES, "our plan"), rows)


def summary(results: Sequence[SeedResult]) -> str:
    """Two sentences, one a kind of budgets."""
    unlimited = _sentence("With unlimited budgets", [one.unlimited for one in results])
    limited = _sentence("With the policy's budgets", [one.policy for one in results])
    return "\n\n".join(fill(each, WIDTH, break_long_words=False, break_on_hyphens=False) for each in (unlimited, limited))


def _sentence(words: str, rows: Sequence[Beside]) -> str:
    moves = [each.moves_distance for each in rows if each.moves_distance is not None]
    worst = [each.worst_distance for each in rows]
    near = sum(value <= 0.05 for value in worst)
    cured, most = sum(each.ours.cured for each in rows), sum(each.most.count for each in rows)
    extra = (
        f"{_percent(median(moves))} more moves than are needed for what they do (median)"
        if moves
        else "an unknown number of moves too many"
    )
    return (
        f"{words} our plans have {extra}, cure {cured} of the {most} hot nodes that can be cured, and leave a worst load that is "
        f"{_percent(median(worst))} over the lowest (median; within 5 % for {near} of {len(rows)} seeds)."
    )


def _row(seed: int, budgets: str, each: Beside) -> tuple[str, ...]:
    distance = each.moves_distance
    return (
        str(seed),
        str(each.hot),
        budgets,
        str(len(each.ours.moves)),
        _count(each.same.moves),
        "unknown" if distance is None else f"+{_percent(distance)}",
        str(each.ours.cured),
        str(each.most.count) if each.most.count == each.most.proven else f"{each.most.count} to {each.most.proven}",
        _count(each.cure.moves),
        _percent(each.worst_before),
        _percent(each.ours.worst),
        _percent(each.lowest.worst),
        f"+{_percent(each.worst_distance)}",
        f"{each.seconds:.1f} s",
        _gap(each),
    )


def _gap(each: Beside) -> str:
    gaps = [each.same.gap, each.lowest.gap]
    return "unknown" if None in gaps else _percent(max(gap for gap in gaps if gap is not None))


def _count(moves: tuple[tuple[int, int], ...] | None) -> str:
    return "unknown" if moves is None else str(len(moves))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = [titles, ["---:"] * len(titles)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows])
