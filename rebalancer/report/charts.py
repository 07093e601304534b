"""Curves over time as the numbers of an inline SVG: nothing of it is text from a cluster but the names, which the template escapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 944, 14, 212
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#ff8ab7", "#9c6b4e")
_LINES = 4
_HOUR_STEPS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 192)


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Curve:
    """``pieces``: points of each stretch without a gap; an unknown value is a gap, not a zero."""

    name: str
    colour: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    ticks: tuple[Tick, ...]
    hours: tuple[Tick, ...]
    lines: tuple[Curve, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def chart(title: str, *, hours: float, lines: Sequence[tuple[str, Sequence[tuple[float, float | None]]]], percent: bool = False) -> Chart:
    """``lines``: name and (hours, value) points of each. Values begin at 0; the top is a round number above the highest."""
    highest = max((value for _, points in lines for _, value in points if value is not None), default=0.0)
    step = _round_up(max(highest, 1e-9) / _LINES)
    top = step * _LINES

    def place(at: float, value: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * min(at / hours, 1.0):.1f},{_height(value / top):.1f}"

    return Chart(
        title=title,
        ticks=tuple(Tick(_height(number / _LINES), _words(step * number, percent=percent)) for number in range(_LINES + 1)),
        hours=_hours(hours),
        lines=tuple(
            Curve(name, colour_of(number), tuple(" ".join(place(*point) for point in piece) for piece in _pieces(points)))
            for number, (name, points) in enumerate(lines)
        ),
    )


def _height(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * share, 1)


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for at, value in points:
        if value is None:
            found.append([])
        else:
            found[-1].append((at, value))
    return [piece for piece in found if piece]


def _round_up(value: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= value * (1 - 1e-9))


def _words(value: float, *, percent: bool) -> str:
    return f"{value * 100:g} %" if percent else f"{value:g}"


def _hours(hours: float) -> tuple[Tick, ...]:
    step = next((step for step in _HOUR_STEPS if hours / step <= 12), _HOUR_STEPS[-1])
    count = math.floor(hours / step + 1e-9)
    return tuple(Tick(round(LEFT + (RIGHT - LEFT) * number * step / hours, 1), f"{number * step:g} h") for number in range(count + 1))
