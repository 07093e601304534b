"""The cyclic garbage collector rests while a cycle reads and decides, and is as it was afterwards."""

from __future__ import annotations

import gc

import pytest

from rebalancer.runtime.collector import collector_at_rest


def test_nothing_is_collected_within_and_the_collector_is_back_afterwards() -> None:
    """Nested rests end with the outermost."""
    assert gc.isenabled()
    with collector_at_rest():
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_cycle_that_fails_wakes_the_collector() -> None:
    """An error leaves it as it was, too."""
    with pytest.raises(RuntimeError), collector_at_rest():
        raise RuntimeError
    assert gc.isenabled()
