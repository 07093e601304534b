"""The closed list of gates."""

from __future__ import annotations

import re

import pytest

from rebalancer.guard.catalogue import gate_names
from rebalancer.guard.gate import Gate, all_gates


def test_names_are_unique_and_kebab_case() -> None:
    """They are metric labels and words of reports."""
    names = gate_names()
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


def test_orders_are_unique_steps_of_ten() -> None:
    """Which refusal is shown never depends on anything but the order, and a new gate fits between two."""
    orders = [gate.order for gate in all_gates()]
    assert orders == sorted(set(orders))
    assert all(order % 10 == 0 for order in orders)


@pytest.mark.parametrize("gate", all_gates(), ids=lambda gate: gate.name)
def test_every_gate_describes_itself_in_one_sentence(gate: Gate) -> None:
    """The sentence begins with a capital, ends with a full stop and fits a table cell."""
    assert gate.describe[0].isupper()
    assert gate.describe.endswith(".")
    assert "\n" not in gate.describe
    assert "|" not in gate.describe


@pytest.mark.parametrize("gate", all_gates(), ids=lambda gate: gate.name)
def test_a_gate_lives_in_the_file_of_its_name(gate: Gate) -> None:
    """Whoever reads a refusal finds the rule."""
    assert gate.check.__module__.rsplit(".", 1)[-1] == gate.name.replace("-", "_")
