"""What a cycle tells those who give hints, whether there are any or not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from rebalancer.deadline import Deadline
from rebalancer.runtime.memory import OpenMove


class Hints(Protocol):
    def unready(self, *, deadline: Deadline) -> str:
        """Why a plan may not count on hints now, in words; empty when it may. Raises Interrupted."""
        ...

    def show(self, moves: Sequence[OpenMove], *, hot: Collection[str]) -> None:
        """These moves wait for their replacements, and these nodes are hot."""
        ...

    def announce(self, moves: Sequence[OpenMove], *, deadline: Deadline) -> str:
        """These moves are carried out now; why their replacements get no hints, in words, empty when they do. Raises Interrupted."""
        ...

    def expect(self, move: OpenMove) -> None:
        """The pod is evicted in the next moment."""
        ...

    def withdraw(self, move: OpenMove) -> None:
        """It was not."""
        ...

    def carried_out(self) -> None:
        """The plan is through."""
        ...


class NoHints:
    """Nobody gives hints: the command does not stay to give them."""

    def unready(self, *, deadline: Deadline) -> str:
        return "placement hints are given by the service alone, so this plan does without"

    def show(self, moves: Sequence[OpenMove], *, hot: Collection[str]) -> None:
        pass

    def announce(self, moves: Sequence[OpenMove], *, deadline: Deadline) -> str:
        return ""

    def expect(self, move: OpenMove) -> None:
        pass

    def withdraw(self, move: OpenMove) -> None:
        pass

    def carried_out(self) -> None:
        pass
