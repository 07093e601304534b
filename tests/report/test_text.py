"""Foreign text is made harmless and short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.report.text import clean, counted, guard_formula, shorten, to_ascii, wrap


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jwiped", "wiped"),
        ("one\ntwo\tthree\rfour", "one two three four"),
        ("abc\u202edef\u200b", "abcdef"),
        ("bell\x07 back\x08", "bell back"),
        ("\x1bcreset", "reset"),
        ("plain grün", "plain grün"),
    ],
)
def test_control_sequences_are_taken_out(foreign: str, expected: str) -> None:
    """Escapes, control and direction characters go; words stay."""
    assert clean(foreign) == expected


@given(st.text())
def test_cleaned_text_is_always_printable(text: str) -> None:
    """Whatever comes in, nothing that a terminal obeys comes out."""
    assert clean(text).isprintable()


def test_endless_text_is_cut() -> None:
    """A message of a megabyte does not fill the screen."""
    assert len(clean("x" * 1_000_000)) <= 600


@given(st.text(alphabet="abcdefgh-./0123456789", max_size=120), st.integers(min_value=4, max_value=100))
def test_shortened_text_fits(text: str, width: int) -> None:
    """Shortening keeps to the width, and leaves what fits as it is."""
    short = shorten(text, width)
    assert len(short) <= width
    assert short == text or len(text) > width


def test_pods_of_one_workload_stay_distinguishable() -> None:
    """The suffix that tells pods apart and the start of namespace and name survive."""
    short = shorten("payments-production/checkout-service-canary-europe-7d9c8b6f5-x2x4z", 40)
    assert short.startswith("paym")
    assert "/check" in short
    assert short.endswith("-7d9c8b6f5-x2x4z"[-12:])


def test_nodes_named_by_address_keep_the_address() -> None:
    """The domain that all nodes share is what gives way."""
    assert shorten("ip-10-100-112-234.eu-central-1.compute.internal", 24).startswith("ip-10-100-112-234…")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx"])
def test_formulas_become_text(text: str) -> None:
    """A spreadsheet shows the cell, it does not run it."""
    assert guard_formula(text) == f"'{text}"


def test_a_number_keeps_its_unit() -> None:
    """No line begins with a lonely percent sign."""
    assert wrap("the load of the node is 91 % of 16.00 cores", 25) == ["the load of the node is", "91 % of 16.00 cores"]


def test_ascii_keeps_the_width() -> None:
    """One character for one character."""
    assert to_ascii("a…b→cü") == "a~b>c?"


def test_numbers_agree_with_their_noun() -> None:
    """One move, several moves."""
    assert (counted(1, "move"), counted(1200, "move")) == ("1 move", "1,200 moves")
