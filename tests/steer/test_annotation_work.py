"""Which annotations are written and which are not: only what its reader needs, never what is unknown, always before it runs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.steer.annotation_work import AnnotationWork, NodePatch, Wanted, annotation_work
from rebalancer.steer.crane_policy import DEFAULT, parse_crane_policy
from rebalancer.steer.dynamic import usage_in_force
from rebalancer.steer.load_annotations import HOT_VALUE, SERIES, read_nodes, zone_named
from rebalancer.steer.node_loads import NodeLoads
from rebalancer.steer.own_annotation import LOAD, parse_node_load, read_node_loads
from tests.steer.kit import NOW, SHANGHAI, crane, own

NAN = float("nan")
BOTH = Wanted(own=True, crane=True, zone=SHANGHAI, crane_policy=DEFAULT, expiry_s=600.0, interval_s=120.0)
CRANE, OWN, NONE = replace(BOTH, own=False), replace(BOTH, crane=False), replace(BOTH, own=False, crane=False)
LOADS = (0.30, 0.40, 0.50, 0.20, 0.25, 0.30)
HOUR, DAY = 3600.0, 86400.0


def loads(*series: float, at: float = NOW, hour_at: float | None = None, day_at: float | None = None, hot: float = 0.0) -> NodeLoads:
    """One node. ``series`` in crane's order; cpu and memory of SIGNALS come first."""
    found = NodeLoads.unknown(1)
    for signal in (0, 1):
        found.mean[0, signal], found.hour[0, signal], found.day[0, signal] = series[3 * signal : 3 * signal + 3]
    found.mean_at[:] = at
    found.hour_at[:] = at if hour_at is None else hour_at
    found.day_at[:] = at if day_at is None else day_at
    return replace(found, hot=np.array([hot]))


def work(
    present: Mapping[str, str],
    known: NodeLoads,
    *,
    wanted: Wanted = CRANE,
    at: float = NOW,
    cared: bool = True,
    left: bool = False,
    ours: bool = True,
) -> AnnotationWork:
    flags = {"cared_for": np.array([cared]), "leaving": np.array([left]), "crane_ours": np.array([ours])}
    return annotation_work(("n1",), (present,), known, wanted, at=at, **flags)


def values(*arguments: object, **options: object) -> dict[str, str | None]:
    """What is written on the node; empty when nothing is."""
    patches: tuple[NodePatch, ...] = work(*arguments, **options).patches  # type: ignore[arg-type]
    return dict(patches[0].values) if patches else {}


def test_a_bare_node_gets_all_series_and_our_own_in_one_patch() -> None:
    """And no hot value, since none is read as 0."""
    written = values({}, loads(*LOADS), wanted=BOTH)
    assert {key: value for key, value in written.items() if key != LOAD} == crane(*LOADS)
    mine = parse_node_load(written[LOAD] or "")
    assert mine is not None
    assert (mine.written_at, mine.expires_at) == (NOW, NOW + 600)
    assert mine.signals["cpu"].max_avg_1d == 0.5
    assert written.keys() == {*SERIES, LOAD}


@pytest.mark.parametrize("unknown", range(6))
def test_an_unknown_series_is_not_written_and_its_old_value_stays_while_it_is_fresh(unknown: int) -> None:
    """It was true of its time, and says of which."""
    known = list(LOADS)
    known[unknown] = NAN
    before = crane(*LOADS, at=NOW - 240)
    written = values(before, loads(*known))
    assert SERIES[unknown] not in written
    assert SERIES[0 if unknown else 3] in written


def test_an_unknown_series_is_taken_off_once_it_is_stale() -> None:
    """A reader whose clock or zone is off would go on believing it."""
    before = crane(*LOADS, at=NOW - 4 * HOUR)
    assert values(before, loads(*[NAN] * 6)) == dict.fromkeys(SERIES)
    assert values(own(expires_at=NOW - 1, cpu=0.3), loads(*[NAN] * 6), wanted=OWN) == {LOAD: None}
    assert values(own(expires_at=NOW + 1, cpu=0.3), loads(*[NAN] * 6), wanted=OWN) == {}


@pytest.mark.parametrize(
    ("age", "change", "written"),
    [
        (120, 0.0, False),
        (120, 0.004, False),
        (120, 0.02, False),
        (181, 0.004, False),
        (181, 0.006, True),
        (120, 0.06, True),
        (250, 0.0, True),
    ],
)
def test_a_mean_is_written_on_change_at_its_period_on_a_jump_at_once_and_near_its_end_anyway(
    age: float, change: float, written: bool
) -> None:
    """3 minutes is the period of the five-minute means, 8 minutes their life, 4 of which are left to two more looks."""
    before = crane(*LOADS, at=NOW - age)
    known = loads(LOADS[0] + change, *LOADS[1:], hour_at=NOW - age, day_at=NOW - age)
    assert (SERIES[0] in values(before, known)) is written


def test_crossing_a_limit_of_the_policy_does_not_wait() -> None:
    """At 0.65 a node is refused or not."""
    before = crane(0.649, *LOADS[1:], at=NOW - 60)
    assert SERIES[0] in values(before, loads(0.651, *LOADS[1:], hour_at=NOW - 60, day_at=NOW - 60))


def test_a_maximum_is_not_written_again_before_it_was_measured_again() -> None:
    """Its time is that of the measurement: written later it would look fresher than it is."""
    measured = NOW - 600
    before = crane(*LOADS, at=measured)
    written = values(before, loads(*LOADS, hour_at=measured, day_at=measured))
    assert SERIES[0] in written
    assert not {SERIES[1], SERIES[2], SERIES[4], SERIES[5]} & written.keys()


def test_every_series_stays_fresh_when_looks_come_at_the_interval_and_some_fail() -> None:
    """Looks every two minutes for a day, every fourth lost; maxima are measured at their periods."""
    present: dict[str, str] = {}
    hour_at = day_at = at = NOW
    for look in range(720):
        at = NOW + 120.0 * look
        hour_at = at if at - hour_at >= 900 - 60 or look == 0 else hour_at
        day_at = at if at - day_at >= 3 * HOUR - 60 or look == 0 else day_at
        if look % 4 != 3:
            patches = work(present, loads(*LOADS, at=at, hour_at=hour_at, day_at=day_at), wanted=BOTH, at=at).patches
            for patch in patches:
                present |= {key: value for key, value in patch.values.items() if value is not None}
        read = read_nodes((present,), zone=SHANGHAI)
        assert np.isfinite(usage_in_force(DEFAULT, read, now=at)).all()
        assert read_node_loads((present,)).expires_at[0] > at
    assert at > NOW + DAY - 300


def test_the_default_zone_of_readers_finds_what_was_written_fresh_and_utc_would_not() -> None:
    """The trap: a Z that is no UTC."""
    written = values({}, loads(*LOADS))
    there = {key: value for key, value in written.items() if value is not None}
    assert np.isfinite(usage_in_force(DEFAULT, read_nodes((there,), zone=zone_named("Asia/Shanghai")), now=NOW + 300)).all()
    trapped = values({}, loads(*LOADS), wanted=replace(CRANE, zone=zone_named("Etc/UTC")))
    there = {key: value for key, value in trapped.items() if value is not None}
    read = read_nodes((there,), zone=zone_named("Asia/Shanghai"))
    assert not np.isfinite(usage_in_force(DEFAULT, read, now=NOW + 1)).any()


def test_values_of_another_zone_are_replaced_whichever_way_they_are_off() -> None:
    """The operator has corrected the zone: what lies ahead would look fresh for hours."""
    ahead, behind = crane(*LOADS, at=NOW + 8 * HOUR), crane(*LOADS, at=NOW - 8 * HOUR)
    assert values(ahead, loads(*LOADS)).keys() == set(SERIES) == values(behind, loads(*LOADS)).keys()


@pytest.mark.parametrize(
    ("there", "hot", "written"),
    [
        (None, 0.0, None),
        (None, 2.0, "2,2026-01-02T11:04:05Z"),
        ("2", 2.0, None),
        ("2", 0.0, "0,2026-01-02T11:04:05Z"),
        ("0", NAN, None),
    ],
)
def test_a_hot_value_is_written_when_a_reader_would_read_another(there: str | None, hot: float, written: str | None) -> None:
    """None and stale are read as 0."""
    before = crane(*LOADS, at=NOW - 60)
    if there is not None:
        before[HOT_VALUE] = f"{there},2026-01-02T11:03:05Z"
    known = loads(*LOADS, hot=hot, hour_at=NOW - 60, day_at=NOW - 60)
    assert values(before, known).get(HOT_VALUE) == written


def test_a_hot_value_that_still_holds_is_renewed_before_its_five_minutes_are_over() -> None:
    """Half of them are left to the next looks."""
    before = crane(*LOADS, at=NOW) | {HOT_VALUE: "1,2026-01-02T11:01:05Z"}
    assert values(before, loads(*LOADS, hot=1.0))[HOT_VALUE] == "1,2026-01-02T11:04:05Z"


def test_what_is_no_longer_asked_for_is_taken_off() -> None:
    """None, or the other kind alone."""
    there = crane(*LOADS, hot=1) | own(cpu=0.3)
    gone = dict.fromkeys((LOAD, *SERIES, HOT_VALUE))
    assert values(there, NodeLoads.unknown(1), wanted=NONE) == gone
    assert {key for key, value in values(there, loads(*LOADS), wanted=OWN).items() if value is None} == {*SERIES, HOT_VALUE}
    assert values(there, NodeLoads.unknown(1), wanted=NONE, ours=False) == {LOAD: None}


def test_a_series_that_the_policy_of_crane_does_not_read_is_not_written() -> None:
    """Nobody would read it."""
    spec = "spec: {syncPolicy: [{name: mem_usage_avg_5m, period: 1m}]}"
    text = f"apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\n{spec}\n"
    wanted = replace(CRANE, crane_policy=parse_crane_policy(text, origin="test"))
    assert values(crane(*LOADS), loads(*LOADS), wanted=wanted) == dict.fromkeys(name for name in SERIES if name != "mem_usage_avg_5m")


def test_another_writers_keys_are_not_touched() -> None:
    """Our own annotation is ours all the same."""
    assert values(crane(*LOADS, at=NOW - 400), loads(*LOADS), wanted=BOTH, ours=False).keys() == {LOAD}


def test_nodes_of_nobody_are_left_alone_and_those_that_left_their_pool_are_cleaned() -> None:
    """Only of what this process has put there."""
    there = crane(*LOADS, at=NOW - 400) | own(cpu=0.3)
    assert values(there, loads(*LOADS), wanted=BOTH, cared=False) == {}
    assert values(there, loads(*LOADS), wanted=BOTH, cared=False, left=True) == dict.fromkeys((LOAD, *SERIES))


def test_our_annotation_says_when_a_signal_becomes_unknown_or_known() -> None:
    """It is one value: what is unknown in it is null, at once."""
    there = own(cpu=0.3, memory=0.2)
    written = values(there, loads(0.3, 0.3, 0.3, NAN, NAN, NAN, at=NOW + 60), wanted=OWN, at=NOW + 60)
    mine = parse_node_load(written[LOAD] or "")
    assert mine is not None
    assert np.isnan(mine.signals["memory"].avg_5m)


def test_those_that_run_out_first_come_first() -> None:
    """A node without any before all others."""
    present = ({}, crane(*LOADS, at=NOW - 250), crane(*LOADS, at=NOW - 470), crane(*LOADS, at=NOW - 10))
    known = loads(*LOADS)
    many = NodeLoads(
        *(
            np.repeat(getattr(known, name), 4, axis=0)
            for name in ("mean", "mean_at", "hour", "hour_at", "day", "day_at", "deviation", "hot")
        )
    )
    flags = {"cared_for": np.ones(4, bool), "leaving": np.zeros(4, bool), "crane_ours": np.ones(4, bool)}
    done = annotation_work(("none", "soon", "now", "fresh"), present, many, CRANE, at=NOW, **flags)
    assert [patch.node for patch in done.patches] == ["none", "now", "soon"]
    assert done.oldest_s["crane"] == 470


@given(
    series=st.lists(st.one_of(st.sampled_from((NAN, np.inf, -0.5, 1e6)), st.floats(0, 2)), min_size=6, max_size=6),
    age=st.floats(0, 40000),
    hot=st.one_of(st.just(NAN), st.integers(0, 50).map(float)),
)
def test_whatever_is_known_what_is_written_can_be_read_and_nothing_else_is(series: list[float], age: float, hot: float) -> None:
    """A number that is no load leaves no text behind; a second look at once has nothing to add."""
    clean = [value if np.isfinite(value) and value >= 0 else NAN for value in series]
    written = values(crane(*LOADS, at=NOW - age), loads(*clean, hot=hot), wanted=BOTH)
    read = read_nodes(({key: value for key, value in written.items() if value is not None},), zone=SHANGHAI)
    assert not read.odd
    for column, name in enumerate(SERIES):
        if written.get(name) is not None:
            assert read.usage[0, column] == pytest.approx(clean[column], abs=5e-6)
    after = {key: value for key, value in {**crane(*LOADS, at=NOW - age), **written}.items() if value is not None}
    assert values(after, loads(*clean, hot=hot), wanted=BOTH) == {}
