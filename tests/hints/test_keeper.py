"""The keeper of hints against an API server: replacements get their node, and whatever happens no pod is kept at the gate."""

from __future__ import annotations

from rebalancer.deadline import Deadline
from rebalancer.runtime.hint_keeper import HintKeeper
from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.simulate.kinds import Json
from rebalancer.steer.hinting import GATE, LABEL, Ungated
from tests.hints.kit import NODES, OWNER, SHOP, Notes, Shop, leading, move
from tests.simulate.cluster_kit import stateful_set
from tests.support.embedded import eventually


def carry_out(town: Shop, keeper: HintKeeper, *moves: tuple[Json, OpenMove]) -> None:
    """As a cycle does: announce all, then write down and evict one after the other."""
    assert keeper.announce([each for _, each in moves], deadline=Deadline.after(10)) == ""
    for pod, each in moves:
        keeper.expect(each)
        town.evict(pod)
    keeper.carried_out()


def plan(town: Shop, *targets: tuple[str, ...]) -> list[tuple[Json, OpenMove]]:
    return [(pod, move(pod, *nodes, at=town.world.now)) for pod, nodes in zip(town.pods(), targets, strict=False)]


def all_bound(town: Shop) -> bool:
    town.cluster.advance(0.1)
    return not town.gated() and all(pod["spec"].get("nodeName") for pod in town.pods())


def test_replacements_land_on_their_planned_nodes(town: Shop) -> None:
    """Each on its own, however many at once; and then nothing of ours is left on any of them, nor the announcement."""
    notes, before = Notes(), town.pods()
    keeper = town.keeper(term=leading(), notes=notes)
    carry_out(town, keeper, *plan(town, ("node-d",), ("node-d",), ("node-c",)))
    assert sorted(town.landed(before, 3)) == ["node-c", "node-d", "node-d"]
    assert eventually(lambda: notes.results == [Ungated.HINTED] * 3)
    assert eventually(lambda: not town.traces() and not town.announced())


def test_a_pod_that_nobody_awaits_is_let_go_at_once(town: Shop) -> None:
    """The workload is announced, but the pod of the plan is still there: what comes now is a scale-up."""
    notes = Notes()
    keeper = town.keeper(term=leading(), notes=notes)
    keeper.announce([plan(town, ("node-d",))[0][1]], deadline=Deadline.after(10))
    deployment = town.world.get("deployments", "web", SHOP)
    town.world.replace("deployments", {**deployment, "spec": {**deployment["spec"], "replicas": 8}})
    eventually(lambda: all_bound(town) and len(town.pods()) == 8)
    assert eventually(lambda: notes.results == [Ungated.NOT_AWAITED] * 5)


def test_a_node_that_takes_no_pods_any_more_is_passed_over(town: Shop) -> None:
    """Gone, cordoned, not Ready or hot: the next node of the plan gets it."""
    cordoned = town.world.get("nodes", "node-c")
    town.world.replace("nodes", {**cordoned, "spec": {**cordoned["spec"], "unschedulable": True}})
    sick = town.world.get("nodes", "node-b")
    town.world.replace("nodes", {**sick, "status": {**sick["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}})
    before = town.pods()
    keeper = town.keeper(term=leading())
    keeper.show([], hot=("node-d",))
    carry_out(town, keeper, *plan(town, ("node-gone", "node-d", "node-c", "node-b", "node-a")))
    assert town.landed(before) == ["node-a"]


def test_without_a_node_that_is_fit_the_pod_goes_where_the_scheduler_likes(town: Shop) -> None:
    """No hint is better than a bad one, and it waits for nothing."""
    notes, before = Notes(), town.pods()
    keeper = town.keeper(term=leading(), notes=notes)
    keeper.show([], hot=NODES)
    carry_out(town, keeper, *plan(town, ("node-d", "node-a")))
    town.landed(before)
    assert eventually(lambda: notes.results == [Ungated.NO_NODE])


def test_a_hint_that_is_refused_keeps_no_pod(town: Shop) -> None:
    """The right to write the status is missing: the gate opens all the same."""
    notes, before = Notes(), town.pods()
    keeper = town.keeper(term=leading(), notes=notes)
    town.cluster.api.rights.deny("patch", "pods/status")
    carry_out(town, keeper, *plan(town, ("node-d",)))
    town.landed(before)
    assert eventually(lambda: notes.results == [Ungated.REFUSED])


def test_a_gate_that_does_not_open_is_tried_again(town: Shop) -> None:
    """The server fails for a while; the hint is kept meanwhile, and the pod lands on its node."""
    notes, before = Notes(), town.pods()
    keeper = town.keeper(term=leading(), notes=notes)
    town.cluster.faults.status(503, method="PATCH", path="/pods/", count=3)
    carry_out(town, keeper, *plan(town, ("node-d",)))
    town.landed(before)
    eventually(lambda: len(notes.results) == 1)
    assert not town.traces()


def test_before_a_cycle_has_looked_pods_wait_and_then_run(town: Shop) -> None:
    """A new leader does not know yet whose replacement a pod is: it waits as long as it may, and is let go without a hint."""
    notes, before = Notes(), town.pods()
    gate_one(town)
    town.keeper(term=leading(), notes=notes, wait_s=1.0, shown=False)
    town.landed(before)
    assert eventually(lambda: notes.results == [Ungated.LATE])


def for_ever(town: Shop) -> Json:
    (controller,) = {owner["uid"] for pod in town.pods() for owner in pod["metadata"]["ownerReferences"]}
    return {controller: {"until": "2099-01-01T00:00:00Z", "pods": []}}


def gate_one(town: Shop) -> None:
    """A pod is gated, and whoever announced it is gone."""
    town.announce(for_ever(town))
    town.evict(town.pods()[0])
    assert len(town.gated()) == 1


def test_a_standby_lets_late_pods_go(town: Shop) -> None:
    """It gives no hints and writes no announcement, but opens gates that nobody opens."""
    notes, before = Notes(), town.pods()
    gate_one(town)
    town.keeper(term=None, notes=notes, wait_s=0.5)
    town.landed(before)
    assert eventually(lambda: notes.results == [Ungated.LATE])
    assert town.announced() == for_ever(town)


def test_a_leader_whose_lease_ends_gives_no_hint_any_more(town: Shop) -> None:
    """It is a standby then: nothing but an open gate."""
    notes, before, refused = Notes(), town.pods(), []
    term = Term(lambda term: "the lease was lost" if refused else "", reserve_s=0.0)
    keeper = town.keeper(term=term, notes=notes, wait_s=1.0)
    (pod, each), *_ = plan(town, ("node-d",))
    keeper.announce([each], deadline=Deadline.after(10))
    keeper.expect(each)
    refused.append(True)
    town.evict(pod)
    town.landed(before)
    assert eventually(lambda: notes.results == [Ungated.LATE])


def test_the_replacement_of_a_stateful_set_gets_the_hint_of_its_own_name(town: Shop) -> None:
    """It comes when the old pod is gone, under its name; another pod of the set takes no hint that is not its own."""
    stateful_set(town.world, "db", 2, namespace=SHOP)
    town.cluster.advance(60)
    notes = Notes()
    keeper = town.keeper(term=leading(), notes=notes)
    (first, second) = town.pods("db")
    both = [(first, move(first, "node-d", at=town.world.now)), (second, move(second, "node-c", at=town.world.now))]
    carry_out(town, keeper, *reversed(both))

    def nodes() -> list[str]:
        town.cluster.advance(2)
        found = town.pods("db")
        fresh = {pod["metadata"]["uid"] for pod in found} - {first["metadata"]["uid"], second["metadata"]["uid"]}
        return [pod["spec"].get("nodeName", "") for pod in found] if len(fresh) == 2 and not town.gated() else []

    assert eventually(nodes, seconds=30) == ["node-d", "node-c"]
    assert eventually(lambda: notes.results == [Ungated.HINTED] * 2)


def test_without_the_right_to_watch_gated_pods_are_found_by_lists(town: Shop) -> None:
    """Somewhat later, and said once."""
    notes, before = Notes(), town.pods()
    town.cluster.api.rights.deny("watch", "pods")
    keeper = town.keeper(term=leading(), notes=notes)
    eventually(lambda: notes.forbidden_ones)
    carry_out(town, keeper, *plan(town, ("node-d",)))
    assert town.landed(before) == ["node-d"]
    assert len(notes.forbidden_ones) == 1


def test_a_server_that_is_away_for_a_while_keeps_pods_no_longer_than_that(town: Shop) -> None:
    """Lists and watches fail; once the server answers again the pod gets its hint."""
    notes, before = Notes(), town.pods()
    keeper = town.keeper(term=leading(), notes=notes)
    ((pod, each),) = plan(town, ("node-d",))[:1]
    assert keeper.announce([each], deadline=Deadline.after(10)) == ""
    keeper.expect(each)
    town.cluster.faults.drop(path="/api/v1/pods", count=4)
    town.evict(pod)
    assert town.landed(before) == ["node-d"]
    assert eventually(lambda: notes.results == [Ungated.HINTED])


def test_a_pod_that_lost_its_label_is_not_lost(town: Shop) -> None:
    """Somebody takes the label off while the gate is shut: the watch loses the pod, the keeper does not."""
    notes, before = Notes(), town.pods()
    gate_one(town)
    town.keeper(term=None, notes=notes, wait_s=1.0)
    eventually(lambda: notes.seen == 1)
    (pod,) = town.gated()
    labels = {key: value for key, value in pod["metadata"]["labels"].items() if key != LABEL}
    town.world.replace("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}})
    town.landed(before)
    assert not town.gated()


def test_a_foreign_gate_is_left_shut(town: Shop) -> None:
    """Ours goes, that of somebody else stays."""
    keeper = town.keeper(term=leading())
    keeper.show([], hot=())
    value = {**town.pods()[0]}
    held = {
        "metadata": {"name": "held", "namespace": SHOP, "labels": {LABEL: OWNER}},
        "spec": {**value["spec"], "nodeName": "", "schedulingGates": [{"name": GATE}, {"name": "team.example/hold"}]},
        "status": {"phase": "Pending"},
    }
    town.world.create("pods", held)
    eventually(lambda: LABEL not in town.world.get("pods", "held", SHOP)["metadata"]["labels"])
    assert town.world.get("pods", "held", SHOP)["spec"]["schedulingGates"] == [{"name": "team.example/hold"}]


def test_the_pods_of_another_controller_are_left_to_it(town: Shop) -> None:
    """Two controllers share a cluster: each knows its own gated pods by the value of the label."""
    town.keeper(term=leading())
    foreign = {
        "metadata": {"name": "theirs", "namespace": SHOP, "labels": {LABEL: "other.rebalancer"}},
        "spec": {"containers": [], "schedulingGates": [{"name": GATE}]},
        "status": {"phase": "Pending"},
    }
    town.world.create("pods", foreign)
    town.cluster.advance(1)
    ours = {**foreign, "metadata": {**foreign["metadata"], "name": "ours", "labels": {LABEL: OWNER}}}
    town.world.create("pods", ours)
    eventually(lambda: not town.world.get("pods", "ours", SHOP)["spec"].get("schedulingGates"))
    assert town.world.get("pods", "theirs", SHOP)["spec"]["schedulingGates"] == [{"name": GATE}]


def test_when_hints_are_switched_off_nothing_of_them_is_left(town: Shop) -> None:
    """No announcement, no gate, no label; a new pod is not gated any more."""
    before = town.pods()
    keeper = town.keeper(term=leading(), shown=False)
    keeper.lead(leading())
    gate_one(town)
    keeper.follow(hints=False, wait_s=60.0)
    assert not keeper.on
    assert town.announced() == {}
    town.landed(before)
    assert not town.traces()


def test_a_hint_is_given_after_a_change_of_the_leader(town: Shop) -> None:
    """The replacement comes late: the next leader knows of the move by the memory, and by the announcement that it waits."""
    before, notes = town.pods(), Notes()
    (pod, each), (other, hinted), *_ = plan(town, ("node-d",), ("node-c",))
    first = town.keeper(term=leading())
    first.announce([each], deadline=Deadline.after(10))
    said = town.announced()
    first.close(within_s=0.0)
    if not town.announced():
        town.announce(said)
    term = leading()
    second = town.keeper(term=term, notes=notes, shown=False)
    second.lead(term)
    second.show([hinted, each], hot=())
    town.evict(pod)
    assert town.landed(before) == ["node-d"]
    assert eventually(lambda: notes.results == [Ungated.HINTED])
    assert other["metadata"]["uid"] in {live["metadata"]["uid"] for live in town.pods()}
