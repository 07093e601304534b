"""Node load annotations over several cycles of the real controller on a served village: there, fresh, few, and gone when they should be."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rebalancer.act.annotating_nodes import AnnotatingNodes, Kind, PatchResult
from rebalancer.act.annotation_owners import AnnotationOwners
from rebalancer.collect.bindings import BindingEvents
from rebalancer.collect.load_peaks import LoadPeaks
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.watch import Restart
from rebalancer.policy.model import Mode, Pool, Spec, Steering
from rebalancer.policy.quantities import LabelSelector
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.runtime.node_annotations import NodeAnnotations
from rebalancer.runtime.session import actuators
from rebalancer.runtime.store import ProcessStore
from rebalancer.simulate.world import updated
from rebalancer.steer.crane_policy import DEFAULT
from rebalancer.steer.dynamic import hot_in_force, usage_in_force
from rebalancer.steer.load_annotations import HOT_VALUE, SERIES, LoadColumns, read_nodes, zone_named
from rebalancer.steer.own_annotation import LOAD, read_node_loads
from tests.runtime.village import HOT, NODES, Village, orders, serving


class Silent:
    """Nobody asks how the watch of bindings is doing."""

    def restarted(self, resource: str, reason: Restart) -> None: ...

    def forbidden(self, resource: str, error: KubernetesError) -> None: ...

    def defect(self, resource: str, error: Exception) -> None: ...


class Annotated:
    """A village whose controller annotates."""

    def __init__(self, village: Village, annotations: NodeAnnotations, annotating: AnnotatingNodes) -> None:
        self.village, self.annotations, self.annotating = village, annotations, annotating
        self.controller = Controller(
            client=village.client,
            prometheus=village.prometheus,
            actuators=actuators(village.client, events=False, instance="test"),
            store=ProcessStore(),
            clock=village,
            annotations=annotations,
        )

    def cycle(self, given: Orders | None = None, *, allowed: Callable[[], str] = lambda: "") -> CycleResult:
        return self.controller.cycle(given or asking("both"), deadline=Deadline.after(60.0), allowed=allowed)

    def annotations_of(self, name: str) -> dict[str, str]:
        return self.village.world.get("nodes", name)["metadata"].get("annotations") or {}

    def everywhere(self) -> list[dict[str, str]]:
        return [self.annotations_of(name) for name in NODES]

    def crane(self, zone: str = "Asia/Shanghai") -> LoadColumns:
        return read_nodes(self.everywhere(), zone=zone_named(zone))

    def annotate(self, name: str, values: dict[str, str], *, manager: str) -> None:
        """As another writer does."""
        self.village.client.request(
            "PATCH",
            f"/api/v1/nodes/{name}",
            query=(("fieldManager", manager),),
            body={"metadata": {"annotations": values}},
            content_type="application/merge-patch+json",
            deadline=Deadline.after(5),
        )

    def node_patches(self) -> list[str]:
        """Nodes that were patched since the last call, in order, soft taints not counted."""
        requests = self.village.cluster.api.requests
        found = [
            r.path.rpartition("/")[2] for r in requests.all() if r.method == "PATCH" and b"annotations" in r.body and "/nodes/" in r.path
        ]
        requests.clear()
        return found


def asking(kind: str, mode: Mode = Mode.EVICT, **spec: object) -> Orders:
    return orders(mode, steering=Steering(annotate_nodes=kind, soft_taint=False), **spec)  # type: ignore[arg-type]


@contextlib.contextmanager
def annotated(village: Village) -> Iterator[Annotated]:
    """A controller that has just started."""
    with BindingEvents(village.client, watch=False, report=Silent()) as bindings:
        annotating = AnnotatingNodes(village.client)
        annotations = NodeAnnotations(
            annotating=annotating,
            owners=AnnotationOwners(village.client),
            peaks=LoadPeaks(village.prometheus, budget_s=60),
            bindings=bindings,
            crane=CranePolicySource(),
        )
        yield Annotated(village, annotations, annotating)


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def town(village: Village) -> Iterator[Annotated]:
    with annotated(village) as made:
        yield made


@pytest.mark.parametrize("mode", [Mode.ANNOTATE, Mode.EVICT])
def test_every_node_says_its_load_to_readers_of_the_default_zone(town: Annotated, mode: Mode) -> None:
    """What is written is read back fresh, as a fraction of the whole machine; our own value has the same numbers."""
    result = town.cycle(asking("both", mode))
    now = town.village.now()
    crane, own = town.crane(), read_node_loads(town.everywhere())
    assert np.isfinite(usage_in_force(DEFAULT, crane, now=now)).all()
    assert (crane.written_at == now).all()
    assert (own.written_at == now).all()
    assert (own.expires_at == now + 600).all()
    machine = float(town.village.world.get("nodes", HOT)["status"]["capacity"]["cpu"])
    state = result.verdict.state
    measured = state.nodes.usage[:, state.signal_index["cpu"]] / machine
    np.testing.assert_allclose(crane.usage[:, 0], measured, atol=5e-6)
    np.testing.assert_allclose(own.load[:, :2], crane.usage[:, [0, 3]], atol=1e-9)
    assert result.annotated.counts == {(Kind.OWN, PatchResult.WRITTEN): 6, (Kind.CRANE, PatchResult.WRITTEN): 6}


def test_a_reader_of_utc_needs_the_policy_to_say_so(town: Annotated) -> None:
    """The zone is the reader's; with the default a reader of UTC would believe values for eight hours too long."""
    town.cycle(orders(steering=Steering(annotate_nodes="crane", crane_time_zone="Etc/UTC")))
    assert (town.crane("Etc/UTC").written_at == town.village.now()).all()
    assert (town.crane().written_at == town.village.now() - 8 * 3600).all()


def test_dry_run_writes_nothing_asks_nothing_more_and_says_of_how_many(town: Annotated) -> None:
    """Neither maxima nor Events are asked for."""
    result = town.cycle(asking("both", Mode.DRY_RUN))
    assert town.everywhere() == [{}] * 6
    assert "dry run: load annotations (own and crane) would be written on 6 nodes" in result.notes
    assert not [r for r in town.village.cluster.api.requests.all() if "/events" in r.path]
    assert town.node_patches() == []


def test_the_nodes_of_the_plan_are_annotated_before_anything_is_evicted(town: Annotated) -> None:
    """Whoever places the replacement knows better."""
    result = town.cycle()
    (move,) = result.verdict.decision.plan.moves
    writes = [(r.method, r.path.rpartition("/")[2]) for r in town.village.cluster.api.requests.all() if r.method in ("PATCH", "POST")]
    evicted = writes.index(("POST", "eviction"))
    assert {("PATCH", move.source), ("PATCH", move.destination)} <= set(writes[:evicted])
    assert len([name for method, name in writes if method == "PATCH" and name in NODES]) == 6


def test_quiet_nodes_are_patched_only_as_often_as_their_values_need(town: Annotated) -> None:
    """Twelve looks, two minutes apart, over loads that do not change: every second one writes; all is fresh all the time."""
    calm = asking("crane", Mode.ANNOTATE)
    patches: list[int] = []
    for _ in range(12):
        town.cycle(calm)
        patches.append(len([name for name in town.node_patches() if name != HOT]))
        town.village.pass_time(2)
        assert np.isfinite(usage_in_force(DEFAULT, town.crane(), now=town.village.now())).all()
    assert patches == [5, 0] * 6


def test_an_unknown_node_is_not_written_and_loses_only_what_is_stale(town: Annotated) -> None:
    """Its exporter falls silent: nobody says 0."""
    town.cycle()
    before = town.annotations_of("n1")
    town.village.cluster.sample_faults.silent_nodes["n1"] = town.village.now()
    spec = {"metrics": Spec().metrics.model_copy(update={"min_coverage": 50})}
    town.village.pass_time(7)
    town.cycle(asking("both", **spec))
    assert town.annotations_of("n1") == before
    town.village.pass_time(4)
    town.cycle(asking("both", **spec))
    left = town.annotations_of("n1")
    assert left.keys() == {name for name in SERIES if "max" in name}
    assert left.items() <= before.items()


@pytest.mark.parametrize(("kind", "left"), [("none", set()), ("own", {LOAD}), ("crane", set(SERIES))])
def test_switching_it_off_takes_off_what_is_no_longer_asked_for(town: Annotated, kind: str, left: set[str]) -> None:
    """In the next cycle, by the policy alone."""
    town.cycle()
    town.cycle(asking(kind))
    assert {key for there in town.everywhere() for key in there} == left


def test_a_process_that_starts_with_it_switched_off_finds_what_the_one_before_has_left(village: Village) -> None:
    """It crashed, and the policy was changed meanwhile."""
    with annotated(village) as crashed:
        crashed.cycle()
    with annotated(village) as town:
        town.cycle(asking("none"))
        assert town.everywhere() == [{}] * 6


def test_a_restart_goes_on_with_what_is_there(village: Village) -> None:
    """It asks whose it is, and writes nothing that is right already."""
    calm = asking("both", Mode.ANNOTATE)
    with annotated(village) as before:
        before.cycle(calm)
    with annotated(village) as town:
        town.village.cluster.api.requests.clear()
        town.cycle(calm)
        assert town.node_patches() == []


def test_a_node_outside_of_every_pool_is_not_annotated_and_one_that_left_is_cleaned(town: Annotated) -> None:
    """As with taints: what no pool claims is another controller's."""
    town.cycle(asking("both", Mode.ANNOTATE))
    world = town.village.world
    labels = world.get("nodes", "n1")["metadata"].get("labels", {})
    world.replace("nodes", updated(world.get("nodes", "n1"), "metadata", {"labels": {**labels, "pool": "other"}}))
    expression = {"key": "pool", "operator": "NotIn", "values": ("other",)}
    pool = Pool(name="p", node_selector=LabelSelector(match_expressions=(expression,)), signals=Spec().pools[0].signals)  # type: ignore[arg-type]
    town.cycle(asking("both", Mode.ANNOTATE, pools=(pool,)))
    assert town.annotations_of("n1") == {}
    assert town.annotations_of("n2").keys() == {LOAD, *SERIES}


def test_crane_annotations_of_somebody_else_are_neither_overwritten_nor_removed(town: Annotated) -> None:
    """Our own annotation is written beside them; that there is another writer is said once."""
    theirs = {"cpu_usage_avg_5m": "0.11000,2026-01-01T08:00:00Z"}
    town.annotate("n1", theirs, manager="crane-controller")
    first, second = town.cycle(), town.cycle()
    assert town.annotations_of("n1").keys() == {LOAD, *theirs}
    assert len([note for note in first.notes if "are written by crane-controller" in note]) == 1
    assert not [note for note in second.notes if "are written by" in note]
    assert first.annotated.counts[Kind.CRANE, PatchResult.FOREIGN] == 1
    notes = town.annotations.clean_up(deadline=Deadline.after(10), pools=None)
    assert town.annotations_of("n1") == theirs
    assert [town.annotations_of(name) for name in NODES if name != "n1"] == [{}] * 5
    assert "crane annotations of 1 node stay: crane-controller wrote them" in notes


def test_a_writer_that_comes_later_is_not_fought(town: Annotated) -> None:
    """It overwrites ours: from then on it has the node."""
    town.cycle()
    theirs = dict.fromkeys(SERIES, "0.99000,2026-01-01T08:00:30Z")
    town.annotate("n2", theirs, manager="crane-controller")
    town.village.pass_time(10)
    town.cycle()
    assert {key: town.annotations_of("n2")[key] for key in SERIES} == theirs


def event(town: Annotated, number: int, node: str, *, ago: float, note: str | None = None) -> None:
    at = town.village.now() - ago
    moment = datetime.datetime.fromtimestamp(at, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    text = note or f"Successfully assigned shop/web-{number} to {node}"
    value = {
        "metadata": {"name": f"e{number}", "namespace": "shop"},
        "reason": "Scheduled",
        "type": "Normal",
        "note": text,
        "eventTime": moment,
    }
    town.village.world.create("events", value)


def test_the_hot_value_counts_bindings_as_the_code_of_crane_does(town: Annotated) -> None:
    """Five in five minutes and two in one minute: 5 // 5 + 2 // 2 on one node, nothing on the others."""
    for number, ago in enumerate((290, 200, 100, 30, 10)):
        event(town, number, "n3", ago=ago)
    event(town, 9, "n4", ago=400)
    event(town, 10, "n5", ago=5, note="something else was said")
    town.cycle()
    hot = hot_in_force(town.crane(), now=town.village.now())
    assert dict(zip(NODES, hot.tolist(), strict=True)) == {**dict.fromkeys(NODES, 0.0), "n3": 2.0}
    assert town.annotations_of("n3")[HOT_VALUE].startswith("2,")
    town.village.pass_time(6)
    town.cycle()
    assert hot_in_force(town.crane(), now=town.village.now())[3] == 0.0


def test_without_the_right_to_read_events_there_is_no_hot_value_and_it_is_said_once(town: Annotated) -> None:
    """The loads are written all the same."""
    town.village.cluster.api.rights.deny("list", "events")
    first, second = town.cycle(), town.cycle()
    assert [note for note in first.notes if note.startswith("node_hot_value is not written, for bindings are not known: ")]
    assert not [note for note in second.notes if "node_hot_value" in note]
    assert town.annotations_of("n1").keys() == {LOAD, *SERIES}


def test_without_the_right_to_patch_nodes_the_moves_go_on(town: Annotated) -> None:
    """An annotation is no reason to hold up a move."""
    town.village.cluster.api.rights.deny("patch", "nodes")
    result = town.cycle()
    assert len([outcome for outcome in result.outcomes if outcome.result.done]) == 1
    assert result.annotated.counts[Kind.OWN, PatchResult.REFUSED] >= 1
    assert [note for note in result.notes if note.startswith("load annotations of ")]


def test_a_replica_that_may_write_nothing_any_more_writes_no_annotation(town: Annotated) -> None:
    """The lease is lost."""
    town.cycle(allowed=lambda: "the lease was lost")
    assert town.node_patches() == []


def test_the_deviation_is_told_where_the_policy_keeps_room_for_swings(town: Annotated) -> None:
    """Of the node's load, as a share of the machine."""
    town.cycle(asking("own", risk=Spec().risk.model_copy(update={"deviations": 1.0})))
    assert np.isfinite(read_node_loads(town.everywhere()).deviation[:, 0]).all()
    town.village.pass_time(6)
    town.cycle(asking("own"))
    assert np.isnan(read_node_loads(town.everywhere()).deviation).all()
