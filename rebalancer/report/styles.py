"""Colours, the same in every table, and never the only carrier of a meaning."""

from __future__ import annotations

from rebalancer.report.checks import CheckStatus
from rebalancer.report.explanation import Ruling
from rebalancer.report.sheet import Cell

_CLASS = {"hot": "bold red", "unknown": "yellow", "cold": "cyan"}
_RULING = {Ruling.MOVES: "bold red", Ruling.ARRIVES: "cyan", Ruling.REFUSED: "yellow", Ruling.ALLOWED: "green"}
_STATUS = {CheckStatus.OK: "green", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "bold red"}


def class_cell(node_class: str) -> Cell:
    return Cell(node_class, _CLASS.get(node_class, ""))


def ruling_cell(ruling: Ruling) -> Cell:
    return Cell(ruling.value, _RULING[ruling])


def status_cell(status: CheckStatus) -> Cell:
    return Cell(status.value, _STATUS[status])
