"""Measurements of devices narrow the choice, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.steer.gpushare.choice import choose_device
from rebalancer.steer.gpushare.device_load import (
    GPU_LOAD,
    AnnotatedLoads,
    Ceilings,
    DeviceLoad,
    NothingMeasured,
    Shares,
    format_gpu_load,
    parse_gpu_load,
    shares_of,
)
from tests.gpushare.kit import EACH, NOW, held, ledger

NODE = ledger("n", held("a", 0, 4000), held("b", 1, 2000), devices=3)
"""Best fit takes device 0, then 1, then 2."""


def loads(busy: list[float], memory: list[float]) -> Shares:
    return Shares(np.array(busy), np.array(memory))


@pytest.mark.parametrize(
    ("busy", "memory", "device"),
    [
        ([0.0] * 3, [0.0] * 3, 0),
        ([0.95, 0.0, 0.0], [0.0] * 3, 1),
        ([0.0] * 3, [0.95, 0.95, 0.0], 2),
        ([0.95, math.nan, 0.0], [0.0, math.nan, 0.0], 1),
        ([math.nan] * 3, [math.nan] * 3, 0),
        ([0.95] * 3, [0.0] * 3, 0),
        ([0.9] * 3, [0.9] * 3, 0),
    ],
    ids=["idle", "busy", "full", "unknown is not avoided", "all unknown", "all busy: best fit", "at the ceiling"],
)
def test_devices_that_are_measured_to_be_busy_or_full_are_avoided(busy: list[float], memory: list[float], device: int) -> None:
    """While another one fits."""
    assert choose_device(NODE, 100, loads=loads(busy, memory)) == device


SHARE = st.one_of(st.just(math.nan), st.floats(0, 1.5))


@given(st.lists(SHARE, min_size=3, max_size=3), st.lists(SHARE, min_size=3, max_size=3), st.integers(1, EACH + 10))
def test_loads_never_refuse_and_never_choose_what_does_not_fit(busy: list[float], memory: list[float], asked: int) -> None:
    """Property: a device is found exactly when one is found without them."""
    chosen = choose_device(NODE, asked, loads=loads(busy, memory))
    assert (chosen is None) == (choose_device(NODE, asked) is None)
    assert chosen is None or NODE.free(chosen) >= asked


def test_the_annotation_to_the_byte() -> None:
    """What is unknown is null."""
    written = [DeviceLoad(0, busy=0.3, memory_used=2.0**31, memory=17066622976), DeviceLoad(1)]
    text = format_gpu_load(written, at=NOW + 0.7, expires=NOW + 240)
    assert text == (
        '{"devices":[{"index":0,"busy":0.3,"memoryUsedBytes":2147483648,"memoryBytes":17066622976},'
        '{"index":1,"busy":null,"memoryUsedBytes":null,"memoryBytes":null}],'
        '"at":"2026-01-02T03:04:05Z","expires":"2026-01-02T03:08:05Z"}'
    )
    assert parse_gpu_load(text) is not None
    assert GPU_LOAD == "rebalancer.dev/gpu-load"


def test_shares_of_a_node_are_unknown_without_fresh_measurements() -> None:
    """Expired, absent, of another device, of no number: never 0."""
    text = format_gpu_load([DeviceLoad(1, busy=0.5, memory_used=EACH * 2.0**19), DeviceLoad(9, busy=1.0)], at=NOW, expires=NOW + 60)
    each_bytes = EACH * 2.0**20
    fresh = shares_of(parse_gpu_load(text), count=2, each_bytes=each_bytes, now=NOW + 59)
    np.testing.assert_equal((fresh.busy, fresh.memory), ([math.nan, 0.5], [math.nan, 0.5]))
    for late in (shares_of(parse_gpu_load(text), count=2, each_bytes=each_bytes, now=NOW + 60), Shares.unknown(2)):
        np.testing.assert_equal((late.busy, late.memory), ([math.nan] * 2, [math.nan] * 2))


def test_the_size_that_a_collector_has_seen_counts_before_the_figure_of_the_ledger() -> None:
    """Unequal devices are only known to whoever measures them."""
    text = format_gpu_load([DeviceLoad(0, memory_used=8e9, memory=32e9)], at=NOW, expires=NOW + 60)
    assert shares_of(parse_gpu_load(text), count=1, each_bytes=16e9, now=NOW).memory.tolist() == [0.25]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[" * 50_000,
        '{"devices":[],"at":"yesterday","expires":"2026-01-02T03:08:05Z"}',
        '{"devices":[{"busy":1}],"at":"2026-01-02T03:04:05Z","expires":"2026-01-02T03:08:05Z"}',
        "x" * 100_000,
    ],
)
def test_an_annotation_that_makes_no_sense_is_unknown(text: str) -> None:
    """And harms nobody."""
    assert parse_gpu_load(text) is None
    found = AnnotatedLoads({"n": text}).of("n", count=2, each_bytes=1.0, now=NOW)
    assert np.isnan(found.busy).all()
    assert np.isnan(found.memory).all()


def test_sources_of_measurements_are_interchangeable() -> None:
    """One that measures nothing, and one that reads annotations."""
    text = format_gpu_load([DeviceLoad(0, busy=0.95)], at=NOW, expires=NOW + 60)
    for source, device in ((NothingMeasured(), 0), (AnnotatedLoads({"n": text}), 1)):
        shares = source.of("n", count=3, each_bytes=NODE.devices.each_bytes, now=NOW)
        assert choose_device(NODE, 100, loads=shares, ceilings=Ceilings(busy=0.9)) == device
