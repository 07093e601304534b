"""Pods make way for one that waits for GPUs: as few as will do, all or nothing, and for no other reason."""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.plan.defragment import move_aside
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.plan.room import where_it_fits, without
from rebalancer.policy.defragment import Defragment
from rebalancer.policy.model import Budgets, Mode, RebalancePolicy, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from rebalancer.state.tables import Phase
from tests.plan.deciding import moved, planned
from tests.plan_devices.test_moves import GI, machine, shared, sharer, spec, state_of, worker
from tests.support.builder import PodSpec, pod
from tests.support.gpus import gpu, memory_of, whole

ON = Defragment(enabled=True)


def rules(**fields: object) -> Spec:
    given = spec(defragment=ON)
    return given.model_copy(update=fields)


def waits(name: str = "big", *, gpus: int = 2, age_s: float = 3600, priority: int = 0, cpu: float = 1.0) -> PodSpec:
    return pod(
        name,
        workload=name,
        phase=Phase.PENDING,
        age_s=age_s,
        priority=priority,
        cpu=cpu,
        gpu=whole(gpus),
        extended={"nvidia.com/gpu": gpus},
    )


def fleet(*holders: tuple[str, int], nodes: int = 2, devices: int = 2, pending: PodSpec | None = None) -> ClusterState:
    """Nodes n0, n1, ... with devices, pods on some of them by (node, place), and one that waits."""
    pods = [worker(f"{on}-{place}", on, place=place, busy=0.1, cpu=0.1) for on, place in holders]
    return state_of([machine(f"n{row}", *[gpu()] * devices, busy=0.1) for row in range(nodes)], [*pods, pending or waits()])


def test_n6_one_pod_makes_way_where_the_waiting_pod_then_fits() -> None:
    """Two GPUs are free, one on each of two nodes, and a pod waits for two on one."""
    plan = planned(fleet(("n0", 0), ("n1", 0)), rules())
    assert (plan.method, moved(plan)) == ("defragment", ["n0-0"])
    (move,) = plan.moves
    assert move.destination == "n1"
    assert move.makes_room_for is not None
    assert move.makes_room_for.name == "big"
    assert move.reason == ("default/big has waited 1h for 2 GPUs and fits on no node; once this pod went to other places it fits on n0")


def test_nothing_is_moved_unless_the_policy_says_so() -> None:
    """It is off by default."""
    assert planned(fleet(("n0", 0), ("n1", 0)), spec()).moves == ()


def test_nobody_makes_way_for_a_pod_that_has_not_waited_long() -> None:
    """kube-scheduler may have yet to look at it."""
    assert planned(fleet(("n0", 0), ("n1", 0), pending=waits(age_s=60)), rules()).moves == ()


def test_nobody_makes_way_for_a_pod_that_fits_as_it_is() -> None:
    """Another reason keeps it waiting."""
    assert planned(fleet(("n0", 0)), rules()).moves == ()


def test_n6_nobody_makes_way_for_a_pod_that_would_not_fit_all_the_same() -> None:
    """It asks for more CPU than a node has; and the plan says so."""
    plan = planned(fleet(("n0", 0), ("n1", 0), pending=waits(cpu=99)), rules())
    assert plan.moves == ()
    assert "default/big has waited 1h for 2 GPUs, and would fit on no node without the 2 pods that may be moved" in plan.outcome


def test_nobody_makes_way_without_a_place_of_its_own() -> None:
    """Of three GPUs one is free: whoever left would wait instead."""
    state = fleet(("n0", 0), ("n0", 1), ("n1", 0))
    plan = planned(state, rules())
    assert plan.moves == ()
    assert "cannot make way: no-feasible-node" in plan.outcome


def test_budgets_that_allow_a_part_allow_nothing() -> None:
    """Two pods would have to leave the node, and one may."""
    holders = [(f"n{row}", place) for row in range(4) for place in (0, 1)]
    state = fleet(*holders, nodes=4, devices=4, pending=waits(gpus=4))
    assert len(planned(state, rules()).moves) == 2
    plan = planned(state, rules(budgets=Budgets(per_node=1)))
    assert plan.moves == ()
    assert "cannot make way: budget" in plan.outcome


def test_nobody_of_a_higher_priority_makes_way() -> None:
    """The room could not be kept from its replacement."""
    assert planned(fleet(("n0", 0), ("n1", 0), pending=waits(priority=-10)), rules()).moves == ()


def test_who_helps_is_found_among_many_small_ones_where_no_resource_counts_devices() -> None:
    """Twelve pods share one device and leave 4 GiB, one of 10 GiB is on the next: it goes, since 16 GiB - 4 GiB are asked for."""
    small = [sharer(f"small-{number:02}", "n0", asks=GI, memory=GI, busy=0.01) for number in range(12)]
    large = sharer("large", "n0", asks=10 * GI, memory=GI, busy=0.01, place=1)
    other = sharer("other", "n1", asks=5 * GI, memory=GI, busy=0.01)
    big = pod("big", workload="big", phase=Phase.PENDING, age_s=3600, gpu=memory_of(12 * GI))
    devices = machine("n0", shared(), shared(), busy=0.1, count=0), machine("n1", shared(), busy=0.1, count=0)
    plan = planned(state_of(list(devices), [*small, large, other, big]), rules())
    assert (plan.method, moved(plan), [move.destination for move in plan.moves]) == ("defragment", ["large"], ["n1"])


def still(plan: Plan, state: ClusterState) -> tuple[list[str], list[str]]:
    """Pods of the moves that hold on the state, and why the others do not."""
    policy = RebalancePolicy(spec=rules())
    bench = lay_bench(state=state, findings=detect(state, policy.spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)
    proposal, dropped = recheck(plan, bench)
    return [state.pods.names[move.pod] for move in proposal.moves], [why for _, why in dropped]


def test_a_plan_from_a_file_holds_while_nothing_has_changed() -> None:
    """On the very same cluster."""
    state = fleet(("n0", 0), ("n1", 0))
    assert still(planned(state, rules()), state) == (["n0-0"], [])


def test_a_plan_from_a_file_falls_as_a_whole() -> None:
    """One of two has no place any more, so the other stays too."""
    holders = [(f"n{row}", place) for row in range(2) for place in (0, 1)]
    plan = planned(fleet(*holders, nodes=2, devices=4, pending=waits(gpus=4)), rules())
    assert len(plan.moves) == 2
    kept, dropped = still(plan, fleet(*holders, ("n1", 2), nodes=2, devices=4, pending=waits(gpus=4)))
    assert kept == []
    assert len(dropped) == 2


HELD = st.lists(st.integers(1, 3), min_size=4, max_size=4).map(
    lambda counts: [(f"n{row}", place) for row, count in enumerate(counts) for place in range(count)]
)
"""Of four devices on each of four nodes."""


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(HELD, st.integers(2, 4), st.integers(1, 4))
def test_n6_whoever_makes_way_the_waiting_pod_then_fits_and_all_find_places(places: list[tuple[str, int]], gpus: int, most: int) -> None:
    """On fleets of any filling: the moves are carried out, no device is given twice, and the pod fits on the node; or nothing moves."""
    state = fleet(*places, nodes=4, devices=4, pending=waits(gpus=gpus))
    plan = planned(state, rules(budgets=Budgets(per_node=most)))
    event(f"{len(plan.moves)} moves")
    if not plan.moves:
        return
    rows = {state.pod_index[move.pod.uid]: state.node_index[move.destination] for move in plan.moves}
    assert len({move.source for move in plan.moves}) == 1
    assert len(rows) <= most
    then = without(state, rows, placed=rows)
    assert where_it_fits(then, state.pods.names.index("big"))[state.node_index[plan.moves[0].source]]
    counts = [sum(1 for pod in range(len(then.pods.names)) if then.pods.node[pod] == row) for row in range(4)]
    assert max(counts) <= 4


def test_what_was_tried_in_vain_leaves_no_trace_in_the_books() -> None:
    """The room on the node, and the budget, are as they were."""
    state, policy = fleet(("n0", 0), ("n0", 1), ("n1", 0)), RebalancePolicy(spec=rules())
    bench = lay_bench(state=state, findings=detect(state, policy.spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)
    before = bench.placements.free.copy()
    pods = tuple(state.pods.names.index(name) for name in ("n0-0", "n0-1"))
    assert isinstance(move_aside(bench, pods, state.pods.names.index("big"), 0, reason=""), str)
    assert (bench.placements.free == before).all()
