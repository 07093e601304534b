"""Distinct clues of pods by number, so that each is read once, however many pods carry it."""

from __future__ import annotations

from rebalancer.gpu.clues import PodClues


class ClueTable:
    def __init__(self) -> None:
        self._numbers: dict[PodClues, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, clues: PodClues) -> int:
        return self._numbers.setdefault(clues, len(self._numbers))
