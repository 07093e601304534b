"""The controller over several cycles: what it moves, what it then lets rest, what survives it, and what it never touches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.act.outcome import Result
from rebalancer.deadline import Deadline
from rebalancer.errors import ConfigurationError, KubernetesConflict, MetricsError
from rebalancer.policy.model import Anticipation, Cooldown, Mode
from rebalancer.policy.model import Quarantine as QuarantineRules
from rebalancer.runtime.memory import LandingResult
from rebalancer.runtime.store import CONFIG_MAP, KEY, ConfigMapStore, ProcessStore
from rebalancer.simulate.world import updated
from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_time
from tests.act.plans import FakeActuator
from tests.runtime.village import HOT, NAMESPACE, NODES, Village, cycle, evicted, orders, outcomes, refused, serving

WEB = WorkloadRef("Deployment", "shop", "web")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Village]:
    with serving(tmp_path) as village:
        yield village


def test_t8_after_a_plan_was_carried_out_the_next_one_is_empty(here: Village) -> None:
    """At once, while the means still show the old load, and when they have caught up."""
    controller = here.controller()
    assert evicted(cycle(controller)) == ["web-hot"]
    here.pass_time(0.5)
    for minutes in (0.5, 2, 10, 30):
        result = cycle(controller)
        assert result.verdict.decision.plan.moves == ()
        here.pass_time(minutes)


def test_t8_a_controller_without_any_memory_plans_nothing_more_either(here: Village) -> None:
    """The ledger, not the cooldown, is what makes the second plan empty."""
    cycle(here.controller(ProcessStore()))
    here.pass_time(1)
    assert cycle(here.controller(ProcessStore())).verdict.decision.plan.moves == ()


def test_a_replacement_is_followed_to_where_it_lands_and_what_it_brought(here: Village) -> None:
    """As planned, on the predicted node, with about all of the gain."""
    controller = here.controller()
    (move,) = cycle(controller).verdict.decision.plan.moves
    here.pass_time(2)
    (landing,) = cycle(controller).verdict.landings
    assert landing.result is LandingResult.AS_PLANNED
    assert landing.node in (move.destination, *move.alternatives)
    assert landing.realised_share == pytest.approx(1.0, abs=0.1)
    here.pass_time(2)
    assert cycle(controller).verdict.landings == ()


def home(here: Village) -> str:
    """The node of the heavy pod: that of the newest replacement, or of the one that is hot at first."""
    places = here.where("web")
    return places.get("web-hot") or next(on for name, on in places.items() if name not in ("web-1", "web-2"))


def test_cooldowns_survive_a_restart(here: Village) -> None:
    """A new controller with nothing but the ConfigMap lets the workload rest; one without it would move it again."""
    given = orders(gain={"min_relative": 30})
    cycle(here.controller(), given)
    here.pass_time(1)
    here.heat(home(here), 3.6)
    here.pass_time(13)
    (heavy,) = here.where("web").keys() - {"web-1", "web-2"}
    assert refused(cycle(here.controller(), given), heavy).startswith(f"cooldown-workload: {WEB} rests 15m after 1 move")
    forgetful = cycle(here.controller(ProcessStore()), orders(Mode.DRY_RUN, gain={"min_relative": 30}))
    assert [o.move.pod.name for o in outcomes(forgetful)] == [heavy]


def test_t3_a_workload_rests_after_a_move_and_twice_as_long_after_the_second(here: Village) -> None:
    """Its node is made hot again each time: refused until the cooldown is over, and the next cooldown is twice as long."""
    controller = here.controller()
    given = orders(cooldown=Cooldown(workload="15m", node="2m", max="6h"), gain={"min_relative": 30})
    assert evicted(cycle(controller, given)) == ["web-hot"]
    for moves, rest in ((1, 15), (2, 30)):
        here.pass_time(1)
        where = home(here)
        here.heat(where, 3.6)
        here.pass_time(rest - 2)
        result = cycle(controller, given)
        assert evicted(result) == []
        (heavy,) = [name for name, on in here.where("web").items() if on == where and name not in ("web-1", "web-2")]
        words = f"rests {rest}m after {moves} move{'s' if moves > 1 else ''} within 6h, 1m of it left"
        assert refused(result, heavy) == f"cooldown-workload: {WEB} {words} (policy cooldown.workload)"
        here.pass_time(1.5)
        assert evicted(cycle(controller, given)) == [heavy]
        here.heat(where, 1 / 3.6)


def test_t3_a_node_rests_after_a_move_while_the_windows_catch_up(here: Village) -> None:
    """Another workload's pod on the node that was just drained: not before cooldown.node is over."""
    controller, given = here.controller(), orders(cooldown=Cooldown(node="30m"))
    cycle(controller, given)
    here.pass_time(1)
    here.heat(HOT, 4.0)
    here.pass_time(15)
    result = cycle(controller, given)
    assert evicted(result) == []
    assert refused(result, "api-hot").startswith("cooldown-node: node n0 rests 30m after its last eviction")
    here.pass_time(15)
    assert evicted(cycle(controller, given)) != []


def test_t5_a_replacement_that_came_back_quarantines_its_workload(here: Village) -> None:
    """Every other node was cordoned while it was placed: the second eviction is refused with an end time, and told once."""
    controller, given = here.controller(), orders(cooldown=Cooldown(workload="1m", node="1m", max="6h"))
    cycle(controller, given)
    here.cordon(*NODES[1:])
    here.pass_time(2)
    here.cordon(*NODES[1:], on=False)
    result = cycle(controller, given)
    (landing,) = result.verdict.landings
    assert landing.result is LandingResult.SOURCE
    sentence = (
        f"{WEB} came back to node {HOT} once and rests until {format_time(landing.at + given.policy.spec.quarantine.hold)} "
        "(policy quarantine.hold)"
    )
    assert sentence in result.notes
    here.pass_time(12)
    later = cycle(controller, given)
    (back,) = [name for name, on in here.where("web").items() if on == HOT]
    assert refused(later, back) == f"quarantine: {sentence}"
    assert sentence not in later.notes
    told = [event for event in here.events() if event["note"] == sentence]
    assert [(event["regarding"]["kind"], event["regarding"]["name"], event["reason"]) for event in told] == [
        ("Deployment", "web", "RebalanceRefused")
    ]


def test_t6_a_quarantine_survives_a_restart_and_ends(here: Village) -> None:
    """It never gives up for good, and never forgets early."""
    given = orders(cooldown=Cooldown(workload="1m", node="1m", max="6h"), quarantine=QuarantineRules(hold="20m"))
    cycle(here.controller(), given)
    here.cordon(*NODES[1:])
    here.pass_time(2)
    here.cordon(*NODES[1:], on=False)
    cycle(here.controller(), given)
    here.pass_time(10)
    assert WEB in cycle(here.controller(), given).verdict.history.quarantine
    here.pass_time(11)
    assert cycle(here.controller(), given).verdict.history.quarantine == {}


def test_dry_run_plans_the_same_and_writes_nothing_anywhere(here: Village) -> None:
    """No eviction, taint, Event or ConfigMap, however often."""
    controller = here.controller()
    for _ in range(2):
        result = cycle(controller, orders(Mode.DRY_RUN))
        assert [(o.move.pod.name, o.result) for o in outcomes(result)] == [("web-hot", Result.RECORDED)]
        here.pass_time(2)
    assert here.writes() == []


def test_a_dry_run_sees_the_cooldowns_of_the_controller_that_acts(here: Village) -> None:
    """Also those of evictions that happen after its own first cycle."""
    acting, watching = here.controller(), here.controller()
    cycle(watching, orders(Mode.DRY_RUN))
    cycle(acting)
    here.pass_time(2)
    assert [past.pod for past in cycle(watching, orders(Mode.DRY_RUN)).verdict.history.evictions] == ["web-hot"]


def test_a_service_that_began_as_a_dry_run_remembers_once_it_evicts(here: Village) -> None:
    """The policy was reloaded with another mode: what is evicted is written down from then on."""
    controller = here.controller()
    cycle(controller, orders(Mode.DRY_RUN))
    cycle(controller, orders(Mode.EVICT))
    stored = here.world.get("configmaps", CONFIG_MAP, NAMESPACE)
    assert '"pod":"web-hot"' in stored["data"][KEY]


def test_annotate_mode_marks_and_neither_evicts_nor_remembers(here: Village) -> None:
    """The mark is on the pod; the next cycle proposes it again."""
    controller = here.controller()
    for _ in range(2):
        result = cycle(controller, orders(Mode.ANNOTATE))
        assert [(o.move.pod.name, o.result) for o in outcomes(result)] == [("web-hot", Result.ANNOTATED)]
        here.pass_time(2)
    assert "rebalancer.dev/candidate" in here.world.get("pods", "web-hot", "shop")["metadata"]["annotations"]
    assert {write.split()[0] for write in here.writes()} == {"PATCH"}


def test_soft_taints_come_with_the_plan_and_go_when_the_node_has_cooled(here: Village) -> None:
    """Put before the eviction, off in a later cycle that finds the node at or under target."""
    controller = here.controller()
    cycle(controller)
    assert here.taints() == {HOT: ["rebalancer.dev/hot"]}
    writes = here.writes()
    assert writes.index(f"PATCH /api/v1/nodes/{HOT}") < writes.index("POST /api/v1/namespaces/shop/pods/web-hot/eviction")
    here.pass_time(2)
    cycle(controller)
    assert here.taints() == {}


def test_both_grades_come_in_one_patch_and_go_together(here: Village) -> None:
    """The hot node repels more than a warm one would; no scheduler sees it with half of its taints."""
    controller, two = here.controller(), orders(steering={"grades": 2})
    cycle(controller, two)
    assert here.taints() == {HOT: ["rebalancer.dev/hot", "rebalancer.dev/warm"]}
    assert here.writes().count(f"PATCH /api/v1/nodes/{HOT}") == 1
    here.pass_time(2)
    cycle(controller, two)
    assert here.taints() == {}
    assert here.writes().count(f"PATCH /api/v1/nodes/{HOT}") == 2


def test_a_node_that_an_earlier_version_tainted_is_brought_in_step(here: Village) -> None:
    """It carries the one taint that version knew; the first cycle adds the second, once."""
    node = here.world.get("nodes", HOT)
    older = {"key": "rebalancer.dev/hot", "value": "true", "effect": "PreferNoSchedule"}
    here.world.replace("nodes", updated(node, "spec", {"taints": [older]}))
    cycle(here.controller(), orders(steering={"grades": 2}))
    assert here.taints() == {HOT: ["rebalancer.dev/hot", "rebalancer.dev/warm"]}
    assert here.writes().count(f"PATCH /api/v1/nodes/{HOT}") == 1


def test_a_policy_without_soft_taints_puts_none_and_takes_off_those_of_before(here: Village) -> None:
    """The switch works from one cycle to the next, without a restart."""
    controller = here.controller(ProcessStore())
    cycle(controller)
    assert here.taints() == {HOT: ["rebalancer.dev/hot"]}
    cycle(controller, orders(steering={"soft_taint": False}))
    assert here.taints() == {}


def test_metrics_that_are_missing_end_the_cycle_before_anything_is_written(here: Village) -> None:
    """Not even the memory."""
    here.cluster.sample_faults.missing_nodes.update(NODES)
    with pytest.raises(MetricsError):
        cycle(here.controller())
    assert here.writes() == []


def test_a_damaged_memory_ends_the_cycle_before_anything_is_decided(here: Village) -> None:
    """No cooldown is forgotten in silence."""
    here.world.create("configmaps", {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": {KEY: "{"}})
    with pytest.raises(ConfigurationError, match=f"ConfigMap {NAMESPACE}/{CONFIG_MAP}"):
        cycle(here.controller())
    assert here.writes() == []


class Meddled(ConfigMapStore):
    """Another controller writes right after each load."""

    other: ConfigMapStore

    def load(self, *, deadline: Deadline):  # type: ignore[no-untyped-def]
        memory = super().load(deadline=deadline)
        self.other.load(deadline=deadline)
        self.other.save(memory, deadline=deadline)
        return memory


def test_two_controllers_on_one_memory_do_not_both_evict(here: Village) -> None:
    """The one whose memory was changed meanwhile does nothing in this cycle."""
    store = Meddled(here.client, namespace=NAMESPACE)
    store.other = ConfigMapStore(here.client, namespace=NAMESPACE)
    with pytest.raises(KubernetesConflict, match="run only one controller in evict mode"):
        cycle(here.controller(store))
    assert not [write for write in here.writes() if write.endswith("/eviction")]


def test_an_eviction_that_a_budget_refused_starts_no_cooldown(here: Village) -> None:
    """Struck out in the cluster's memory too."""
    controller = here.controller(evict=FakeActuator(results={"web-hot": Result.BLOCKED}))
    result = cycle(controller)
    assert [o.result for o in outcomes(result)] == [Result.BLOCKED]
    assert result.memory.evictions == ()
    assert cycle(here.controller(), orders(Mode.DRY_RUN)).verdict.history.evictions == ()


def test_each_stage_of_a_cycle_is_timed(here: Village) -> None:
    """From reading to acting, each once."""
    assert list(cycle(here.controller()).seconds) == ["kubernetes", "prometheus", "assemble", "detect", "plan", "act"]


def test_where_prometheus_does_not_reach_back_to_yesterday_nothing_is_anticipated(here: Village) -> None:
    """The plan is the one that is made without looking, and a note says that nothing is known."""
    asking = orders(Mode.DRY_RUN, anticipation=Anticipation(horizon=1800))
    result = cycle(here.controller(), asking)
    assert [o.move.pod.name for o in outcomes(result)] == ["web-hot"]
    assert "signal cpu: yesterday at this time is known of 0 of 6 nodes" in result.verdict.state.coverage.notes
    assert cycle(here.controller(), orders(Mode.DRY_RUN)).verdict.state.yesterday is None
