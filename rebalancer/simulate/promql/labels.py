"""Label sets of many series as columns: each label a vector of codes into a list of words, the empty word for absent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.promql.syntax import Matcher

Codes = NDArray[np.int64]
Rows = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """``codes``: (series,) positions in ``words``. Words may repeat nowhere."""

    codes: Codes
    words: tuple[str, ...]

    @classmethod
    def constant(cls, word: str, size: int) -> Column:
        return cls(np.zeros(size, dtype=np.int64), (word,))

    @classmethod
    def of(cls, values: Sequence[str]) -> Column:
        known: dict[str, int] = {}
        codes = np.fromiter((known.setdefault(value, len(known)) for value in values), dtype=np.int64, count=len(values))
        return cls(codes, tuple(known))

    def take(self, rows: Rows) -> Column:
        return Column(self.codes[rows], self.words)

    def mapped(self, words: Sequence[str]) -> Column:
        """The column with word ``i`` replaced by ``words[i]``; equal new words share one code."""
        known: dict[str, int] = {}
        table = np.fromiter((known.setdefault(word, len(known)) for word in words), dtype=np.int64, count=len(words))
        return Column(table[self.codes] if len(words) else self.codes, tuple(known))

    def value(self, row: int) -> str:
        return self.words[int(self.codes[row])]


def together(columns: Sequence[Column]) -> Column:
    """One column under the other, with one list of words."""
    known: dict[str, int] = {}
    parts = []
    for column in columns:
        table = np.fromiter((known.setdefault(word, len(known)) for word in column.words), dtype=np.int64, count=len(column.words))
        parts.append(table[column.codes] if len(column.words) else column.codes)
    return Column(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), tuple(known))


@dataclass(frozen=True, slots=True)
class Labels:
    size: int
    columns: Mapping[str, Column]

    @classmethod
    def from_dicts(cls, sets: Sequence[Mapping[str, str]]) -> Labels:
        names = sorted({name for labels in sets for name in labels})
        return cls(len(sets), {name: Column.of([labels.get(name, "") for labels in sets]) for name in names})

    def column(self, name: str) -> Column:
        return self.columns[name] if name in self.columns else Column.constant("", self.size)

    def take(self, rows: Rows) -> Labels:
        return Labels(len(rows), {name: column.take(rows) for name, column in self.columns.items()})

    def only(self, names: Iterable[str]) -> Labels:
        return Labels(self.size, {name: self.columns[name] for name in names if name in self.columns})

    def without(self, names: Iterable[str]) -> Labels:
        dropped = set(names)
        return Labels(self.size, {name: column for name, column in self.columns.items() if name not in dropped})

    def with_column(self, name: str, column: Column) -> Labels:
        return Labels(self.size, {**self.columns, name: column})

    def admitted(self, matchers: Iterable[Matcher]) -> Bools:
        """(series,) True where every matcher holds; each distinct word is looked at once."""
        mask = np.ones(self.size, dtype=bool)
        for matcher in matchers:
            column = self.column(matcher.name)
            fine = np.fromiter((matcher.admits(word) for word in column.words), dtype=bool, count=len(column.words))
            if len(column.words):
                mask &= fine[column.codes]
        return mask

    def as_dicts(self) -> list[dict[str, str]]:
        """One dictionary a series, absent labels left out."""
        sets: list[dict[str, str]] = [{} for _ in range(self.size)]
        for name in sorted(self.columns):
            column = self.columns[name]
            for labels, code in zip(sets, column.codes.tolist(), strict=True):
                if word := column.words[code]:
                    labels[name] = word
        return sets


def stacked(several: Sequence[Labels]) -> Labels:
    """The series of all, one after the other."""
    names = sorted({name for labels in several for name in labels.columns})
    return Labels(sum(labels.size for labels in several), {name: together([labels.column(name) for labels in several]) for name in names})


def group_numbers(labels: Labels) -> tuple[Codes, int]:
    """(series,) the number of the label set of each series, from 0, and how many there are."""
    numbers, count = np.zeros(labels.size, dtype=np.int64), 1 if labels.size else 0
    for column in labels.columns.values():
        if len(column.words) > 1:
            _, numbers = np.unique(numbers * len(column.words) + column.codes, return_inverse=True)
            numbers = numbers.astype(np.int64).reshape(-1)
            count = int(numbers.max()) + 1 if labels.size else 0
    return numbers, count


def joint_numbers(left: Labels, right: Labels) -> tuple[Codes, Codes, int]:
    """Numbers of the label sets of both sides, equal where the sets are equal, and how many there are."""
    numbers, count = group_numbers(stacked([left, right]))
    return numbers[: left.size], numbers[left.size :], count


def first_rows(numbers: Codes, count: int) -> Rows:
    """(groups,) a row of each group."""
    rows = np.zeros(count, dtype=np.intp)
    rows[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return rows
