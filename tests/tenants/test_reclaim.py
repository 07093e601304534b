"""Giving tenants back what they are guaranteed: from whom, how few, and when not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.detect.tenants.accounts import accounts_of, in_force
from rebalancer.detect.tenants.membership import with_tenants
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import decide
from rebalancer.plan.room import where_it_fits, without
from rebalancer.policy.model import Budgets, Cooldown, Mode, RebalancePolicy, Spec, Victims
from rebalancer.policy.reclaim import Reclaim
from rebalancer.policy.tenants import Members, Tenant, TenantSpec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.tables import Budget, Phase
from tests.support.builder import PodSpec, cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, whole

SPEC = Spec(
    reclaim=Reclaim(enabled=True, after=60),
    budgets=Budgets(total=50, per_node=50, per_namespace=50, per_workload=50, per_tenant=50),
    cooldown=Cooldown(workload=0, node=0),
    victims=Victims(min_replicas=1),
)


def leaf(name: str, cpu: float | None = None, **more: object) -> Tenant:
    guaranteed = None if cpu is None else {"cpu": cpu}
    return Tenant(name=name, members=(Members(namespaces=(name,)),), **{"guaranteed": guaranteed, **more})  # type: ignore[arg-type]


def runs(name: str, of: str, *, on: str = "n1", cpu: float = 2.0, **more: object) -> PodSpec:
    return pod(name, on=on, namespace=of, workload=name, cpu=cpu, uses={"cpu": cpu / 2, "memory": 1}, **more)  # type: ignore[arg-type]


def waits(name: str, of: str, *, cpu: float = 2.0, age_s: float = 600.0, **more: object) -> PodSpec:
    return pod(name, namespace=of, workload=name, cpu=cpu, phase=Phase.PENDING, age_s=age_s, **more)  # type: ignore[arg-type]


def town(*pods: PodSpec, nodes: Sequence[str] = ("n1",), budgets: Sequence[Budget] = ()) -> ClusterState:
    """Nodes of eight cores."""
    return cluster(nodes=[node(name, cpu=8) for name in nodes], pods=list(pods), budgets=list(budgets))


def planned(state: ClusterState, *tenants: Tenant, spec: Spec = SPEC) -> Plan:
    quotas = TenantSpec(tenants=tenants)
    own = with_tenants(state, quotas)
    policy = RebalancePolicy(spec=spec)
    findings = detect(own, spec)
    return decide(state=own, findings=findings, policy=policy, history=History(), mode=Mode.EVICT, tenants=in_force(own, quotas)).plan


def evicted(plan: Plan) -> list[str]:
    return sorted(move.pod.name for move in plan.moves)


def test_a_starved_tenant_gets_its_guarantee_back() -> None:
    """One borrower leaves, on the node where the waiting pod then fits, and the reason has the numbers."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    plan = planned(state, leaf("big", 4), leaf("small", 4))
    (move,) = plan.moves
    assert plan.method == "reclaim"
    assert move.makes_room_for is not None
    assert (move.makes_room_for.name, move.source, move.destination, move.signals) == ("w", "n1", "", {})
    assert move.reason.startswith("tenant small holds 0 of 4 cpu guaranteed, and small/w has waited 10m for 2 cpu")
    assert "tenant big holds 8 of 4 cpu guaranteed" in move.reason


def test_q2_a_tenant_within_its_guarantee_loses_nothing() -> None:
    """Whoever waits: the room is its own."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 8), leaf("small", 4))) == []


def test_who_is_guaranteed_nothing_takes_nothing_back() -> None:
    """Waiting alone is no claim."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 4), leaf("small"))) == []


def test_a_pod_that_would_be_beyond_the_guarantee_has_no_claim() -> None:
    """Its tenant holds three of four, and it asks for two."""
    state = town(runs("s", "small", cpu=3), *(runs(f"b{row}", "big") for row in range(2)), runs("b2", "big", cpu=1), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 1), leaf("small", 4))) == []


def test_one_that_has_waited_for_a_moment_waits_on() -> None:
    """kube-scheduler gets its time."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small", age_s=30.0))
    assert evicted(planned(state, leaf("big", 4), leaf("small", 4))) == []


def test_where_there_is_room_nobody_is_evicted() -> None:
    """The scheduler can place it."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"), nodes=("n1", "n2"))
    assert evicted(planned(state, leaf("big", 4), leaf("small", 4))) == []


def test_no_tenant_falls_under_its_guarantee() -> None:
    """A pod that is larger than what is borrowed stays."""
    state = town(runs("b", "big", cpu=7), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 4), leaf("small", 4))) == []


def test_the_one_furthest_over_what_it_is_entitled_to_comes_first() -> None:
    """Both borrow; the one with the larger part of it loses."""
    pods = [
        runs("a1", "a", cpu=1),
        runs("a2", "a", cpu=1),
        runs("b1", "b", cpu=1),
        *(runs(f"b{row}", "b", cpu=1) for row in (2, 3, 4, 5, 6)),
    ]
    plan = planned(town(*pods, waits("w", "small", cpu=1)), leaf("a", 1), leaf("b", 1), leaf("small", 2))
    assert [name[0] for name in evicted(plan)] == ["b"]


def test_q4_priorities_order_pods_within_a_tenant_only() -> None:
    """The borrower's pod of high priority goes, not the low one of a tenant within its guarantee."""
    state = town(*(runs(f"b{row}", "big", priority=100) for row in range(3)), runs("own", "calm", priority=0), waits("w", "small"))
    plan = planned(state, leaf("big", 2), leaf("calm", 2), leaf("small", 2))
    assert [name[0] for name in evicted(plan)] == ["b"]
    mixed = town(*(runs(f"b{row}", "big", priority=row) for row in (3, 1, 2, 4)), waits("w", "small"))
    assert evicted(planned(mixed, leaf("big", 2), leaf("small", 2))) == ["b1"]


def test_idle_pods_go_before_busy_ones() -> None:
    """By measurement."""
    busy = [runs(f"b{row}", "big") for row in range(3)]
    idle = pod("z", on="n1", namespace="big", workload="z", cpu=2, uses={"cpu": 0.0, "memory": 1})
    assert evicted(planned(town(*busy, idle, waits("w", "small")), leaf("big", 2), leaf("small", 2))) == ["z"]


def test_a_share_of_a_capacity_that_is_not_known_takes_nothing_from_anybody() -> None:
    """One of two nodes does not tell its cores: half of the rest is not half of the cluster."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"), nodes=("n1", "n2"))
    unready = replace(state.nodes, ready=np.array([True, False]))
    allocatable = state.nodes.allocatable.copy()
    allocatable[1, state.resource_index["cpu"]] = np.nan
    tenants = Tenant(name="big", guaranteed={"cpu": "50%"}, members=(Members(namespaces=("big",)),)), leaf("small", 2)
    known = replace(state, nodes=unready)
    assert len(evicted(planned(known, *tenants))) == 0  # half of sixteen cores is what it holds
    unknown = replace(state, nodes=replace(unready, allocatable=allocatable))
    assert evicted(planned(unknown, *tenants)) == []


def test_the_newest_of_equals_goes() -> None:
    """It has the least to lose."""
    state = town(*(runs(f"b{row}", "big", age_s=86400.0 - row) for row in range(4)), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 2), leaf("small", 2))) == ["b3"]


def test_as_few_as_make_the_room() -> None:
    """One of four cores where four of one would do as well, on another node."""
    few = [runs("large", "big", on="n2", cpu=4), runs("other", "big", on="n2", cpu=4)]
    many = [runs(f"b{row}", "big", on="n1", cpu=1) for row in range(8)]
    plan = planned(town(*many, *few, waits("w", "small", cpu=4), nodes=("n1", "n2")), leaf("big", 2), leaf("small", 4))
    assert len(plan.moves) == 1
    assert plan.moves[0].source == "n2"


def test_gates_hold_and_are_told() -> None:
    """A disruption budget that allows nothing keeps its pods; the refusal is in the plan, with what waits in the outcome."""
    budget = Budget("big", "no", None, 0, 4, 4, 4, False, False)
    pods = [runs(f"b{row}", "big", budgets=["no"]) for row in range(4)]
    plan = planned(town(*pods, waits("w", "small"), budgets=[budget]), leaf("big", 2), leaf("small", 2))
    assert evicted(plan) == []
    assert {one.gate for one in plan.refused} == {"disruption-budget"}
    assert (
        "1 pod of tenant small within its guarantee waits, and nobody who borrows may be evicted (4 disruption-budget): small/w"
        in plan.outcome
    )


def test_budgets_end_it() -> None:
    """A plan that would need more than they allow is none."""
    tight = SPEC.model_copy(update={"budgets": Budgets(total=1, per_node=50, per_namespace=50, per_workload=50, per_tenant=50)})
    state = town(*(runs(f"b{row}", "big", cpu=1) for row in range(8)), waits("w", "small", cpu=3))
    assert len(planned(state, leaf("big", 2), leaf("small", 4)).moves) == 3
    assert evicted(planned(state, leaf("big", 2), leaf("small", 4), spec=tight)) == []


def test_a_sister_may_be_asked_and_the_department_loses_nothing() -> None:
    """Within a department what one team borrows from another comes back; both are below the same tenant."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    department = Tenant(name="all", guaranteed={"cpu": 8}, tenants=(leaf("big", 4), leaf("small", 4)))
    assert len(planned(state, department).moves) == 1


def test_a_department_within_its_guarantee_loses_nothing() -> None:
    """Although one team of it borrows, from its sister."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    department = Tenant(name="all", guaranteed={"cpu": 8}, tenants=(leaf("big", 2), leaf("idle", 4)))
    assert evicted(planned(state, department, leaf("small", 2))) == []


ONE_GPU = {"nvidia.com/gpu": 1.0}


def gpu_holder(row: int, *, age_s: float = 86400.0) -> PodSpec:
    """Of tenant big, on a whole device of its own."""
    return pod(
        f"b{row}",
        on="n1",
        namespace="big",
        workload=f"b{row}",
        cpu=1,
        age_s=age_s,
        extended=ONE_GPU,
        gpu=whole(),
        holds={row: 1.0},
        uses={"cpu": 0.5, "memory": 1},
    )


def gpu_town(*pods: PodSpec, busy: Mapping[int, float]) -> ClusterState:
    """A device for each pod, all on one node, of which those in ``busy`` are measured; one of tenant small waits for a device."""
    devices = [gpu("40Gi") for _ in pods]
    nodes = [node("n1", cpu=8, extended={"nvidia.com/gpu": float(len(pods))}, gpus=devices), node("n2", cpu=8)]
    waiting = pod("w", namespace="small", workload="w", cpu=1, extended=ONE_GPU, gpu=whole(), phase=Phase.PENDING, age_s=600.0)
    return measured(
        cluster(nodes=nodes, pods=[*pods, waiting]),
        {("n1", row): used(busy=share, memory="1Gi", total="40Gi") for row, share in busy.items()},
        {f"b{row}": taken(busy=share, memory="1Gi") for row, share in busy.items()},
    )


GPU_TENANTS = tuple(Tenant(name=name, guaranteed={"gpu": 1}, members=(Members(namespaces=(name,)),)) for name in ("big", "small"))


def test_gpus_are_given_back_by_the_device() -> None:
    """The whole device of a borrower, on the node that has it."""
    (move,) = planned(gpu_town(gpu_holder(0), gpu_holder(1), busy={0: 0.0, 1: 0.0}), *GPU_TENANTS).moves
    assert "1 gpu" in move.reason
    assert move.makes_room_for is not None


def test_who_is_not_measured_on_its_gpu_is_not_taken_to_be_idle() -> None:
    """It is the newer one, and would go first if both were known to be idle."""
    newer = gpu_holder(1, age_s=7200.0)
    assert evicted(planned(gpu_town(gpu_holder(0), newer, busy={0: 0.0}), *GPU_TENANTS)) == ["b0"]
    assert evicted(planned(gpu_town(gpu_holder(0), newer, busy={0: 0.0, 1: 0.0}), *GPU_TENANTS)) == ["b1"]


def test_without_a_file_nothing_is_reclaimed() -> None:
    """And nothing is said of it."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    plan = planned(state)
    assert (evicted(plan), plan.method) == ([], "balance")


sizes = st.sampled_from([1.0, 2.0, 3.0])


@st.composite
def towns(draw: st.DrawFn) -> tuple[ClusterState, Mapping[str, float]]:
    names = ("a", "b", "c")
    pods = [
        runs(
            f"p{number}",
            draw(st.sampled_from(names)),
            on=draw(st.sampled_from(["n1", "n2"])),
            cpu=draw(sizes),
            priority=draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(2, 10)))
    ]
    waiting = [waits(f"w{number}", draw(st.sampled_from(names)), cpu=draw(sizes)) for number in range(draw(st.integers(1, 4)))]
    guaranteed = {name: draw(st.sampled_from([0.0, 2.0, 4.0, 6.0])) for name in names}
    return town(*pods, *waiting, nodes=("n1", "n2")), guaranteed


@settings(deadline=None)
@given(towns())
def test_guarantees_hold_and_the_pods_that_waited_fit(case: tuple[ClusterState, Mapping[str, float]]) -> None:
    """No victim's tenant is under its guarantee afterwards; every pod that room was made for fits where the plan says; nothing is taken
    back."""
    state, guaranteed = case
    tenants = [leaf(name, cpu) for name, cpu in guaranteed.items()]
    plan = planned(state, *tenants)
    if plan.method != "reclaim":
        return
    quotas = TenantSpec(tenants=tuple(tenants))
    own = with_tenants(state, quotas)
    gone = [own.pod_index[move.pod.uid] for move in plan.moves]
    room = {own.pod_index[move.makes_room_for.uid]: own.node_index[move.source] for move in plan.moves if move.makes_room_for}
    before, placed = without(own, gone), dict[int, int]()
    for waiting, where in room.items():
        assert where_it_fits(without(own, gone, placed=placed), waiting)[where]
        placed[waiting] = where
    after = without(before, (), placed=room)
    accounts = accounts_of(after, in_force(after, quotas))
    column = accounts.resources.index("cpu")
    for victim in gone:
        row = accounts.tree.names.index(own.tenants[int(own.pods.tenant[victim])])
        assert accounts.requested[row, column] >= accounts.tree.guaranteed[row, column] - 1e-9
    # The victims come back and wait; nobody takes the room away again from those who got it.
    phase, node_of = after.pods.phase.copy(), after.pods.node.copy()
    phase[gone], node_of[gone] = int(Phase.PENDING), -1
    back = replace(after, pods=replace(after.pods, phase=phase, node=node_of))
    again = planned(back, *tenants)
    assert not {move.pod.uid for move in again.moves} & {own.pods.uids[waiting] for waiting in room}


@settings(deadline=None)
@given(towns(), st.randoms())
def test_the_order_of_tenants_changes_nothing(case: tuple[ClusterState, Mapping[str, float]], random: object) -> None:
    """The same pods leave."""
    state, guaranteed = case
    tenants = [leaf(name, cpu) for name, cpu in guaranteed.items()]
    shuffled = list(tenants)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert evicted(planned(state, *tenants)) == evicted(planned(state, *shuffled))


def test_an_unknown_request_of_a_borrower_is_no_borrowing() -> None:
    """What its tenant holds is not known, so nobody says that it holds too much."""
    state = town(*(runs(f"b{row}", "big") for row in range(4)), waits("w", "small"))
    request = state.pods.request.copy()
    request[0, state.resource_index["cpu"]] = np.nan
    assert evicted(planned(replace(state, pods=replace(state.pods, request=request)), leaf("big", 4), leaf("small", 4))) == []


def test_room_that_others_are_leaving_is_waited_for() -> None:
    """An eviction of the cycle before is not repeated while its pod ends; a second claim is served by another one."""
    state = town(*(runs(f"b{row}", "big") for row in range(3)), runs("gone", "big", terminating=True), waits("w", "small"))
    assert evicted(planned(state, leaf("big", 2), leaf("small", 4))) == []
    two = town(
        *(runs(f"b{row}", "big") for row in range(3)), runs("gone", "big", terminating=True), waits("v", "small"), waits("w", "small")
    )
    assert len(evicted(planned(two, leaf("big", 2), leaf("small", 4)))) == 1
