"""Over-users leave devices that are nearly full because of them; their neighbours stay, and nobody is moved without need or measurement."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.plan.relieve import crowded_nodes
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.gpu_holders import Overuse
from rebalancer.policy.model import Budgets, Mode, Pool, RebalancePolicy, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import Scheme
from rebalancer.state.history import NOTHING_HAPPENED
from tests.plan.deciding import moved, planned, refusals
from tests.plan_devices.asking import with_use
from tests.plan_devices.test_moves import GI, MEMORY_MARKS, machine, sharer
from tests.support.builder import CPU, GPU, GPU_MEMORY, PodSpec, cluster
from tests.support.gpu_use import Used, taken, used
from tests.support.gpus import DeviceSpec, gpu

FULL = {("crowded", 0): used(busy=0.3, memory=23.3 * GI, total=24 * GI), ("roomy", 0): used(busy=0.1, memory=1 * GI, total=24 * GI)}


def card() -> DeviceSpec:
    return gpu("24Gi", handed_out="24Gi", model="L4", scheme=Scheme.GPUSHARE, replicas=float("nan"))


def policy(action: str = "move", **fields: object) -> Spec:
    fields = {"budgets": Budgets(per_node=20), **fields}
    return Spec(pools=(Pool(name="default", signals=MEMORY_MARKS),), gpu=Gpu(overuse=Overuse(action=action)), **fields)


def world(*pods: PodSpec, devices: dict[tuple[str, int], Used] = FULL, room: int = 1) -> ClusterState:
    """A node with one crowded device and an empty one, and a node with room; the greedy asked for 2 GiB and uses 11."""
    pods = pods or (sharer("greedy", "crowded", asks=2 * GI, memory=11 * GI), sharer("modest", "crowded", asks=12 * GI, memory=11 * GI))
    nodes = [machine("crowded", card(), card(), memory=0.5), *(machine(f"roomy{i or ''}", card(), memory=0.06) for i in range(room))]
    state = cluster(nodes=nodes, pods=pods, signals=(CPU, GPU, GPU_MEMORY))
    return with_use(state, devices, {each.name: taken(memory=each.uses["gpu_memory"]) for each in pods}, idle="500Mi")


def plan_of(state: ClusterState, action: str = "move", **fields: object) -> Plan:
    return planned(state, policy(action, **fields))


def test_g14_the_over_user_leaves_the_full_device_and_its_neighbour_stays() -> None:
    """No node is hot: the means of the node hide it. What it really uses fits where it goes."""
    plan = plan_of(world())
    assert (plan.method, moved(plan), [move.destination for move in plan.moves]) == ("relieve", ["greedy"], ["roomy"])
    assert plan.moves[0].reason == (
        "GPU 0 of crowded is 96 % full, and this pod asked for 2.0 GiB of it and uses 11.0 GiB (policy gpu.overuse)"
    )


def test_nobody_is_moved_unless_the_policy_says_so() -> None:
    """By default over-users are only reported."""
    plan = plan_of(world(), "report")
    assert moved(plan) == []
    assert plan.gpus is not None
    assert [user.pod.name for user in plan.gpus.over_users] == ["greedy"]


def test_a_device_with_room_is_left_alone() -> None:
    """Using more than was asked for harms nobody there."""
    state = world(devices={**FULL, ("crowded", 0): used(busy=0.3, memory=21 * GI, total=24 * GI)})
    assert moved(plan_of(state)) == []


def test_an_estimate_accuses_nobody() -> None:
    """Its part of the device was not measured of the pod."""
    pods = (sharer("greedy", "crowded", asks=2 * GI, memory=11 * GI), sharer("modest", "crowded", asks=12 * GI, memory=11 * GI))
    state = cluster(
        nodes=[machine("crowded", card(), card(), memory=0.5), machine("roomy", card(), memory=0.06)],
        pods=pods,
        signals=(CPU, GPU, GPU_MEMORY),
    )
    guessed = with_use(state, FULL, {each.name: taken(memory=each.uses["gpu_memory"], estimated=True) for each in pods}, idle="500Mi")
    assert moved(plan_of(guessed)) == []


def test_a_pod_that_has_the_device_to_itself_is_left_alone() -> None:
    """It takes nothing from anybody."""
    assert moved(plan_of(world(sharer("greedy", "crowded", asks=2 * GI, memory=15 * GI)))) == []


def test_no_more_leave_than_are_needed() -> None:
    """Two over-users: after the larger has left there is room, and the other stays, with the number that says so."""
    state = world(sharer("greedy", "crowded", asks=2 * GI, memory=13 * GI), sharer("eager", "crowded", asks=2 * GI, memory=9 * GI), room=2)
    plan = plan_of(state)
    assert moved(plan) == ["greedy"]
    assert refusals(plan)["eager"] == "not-needed"


def test_g22_where_its_real_use_fits_nowhere_it_stays() -> None:
    """By what it asked for it would fit."""
    state = world(devices={**FULL, ("roomy", 0): used(busy=0.1, memory=14 * GI, total=24 * GI)})
    plan = plan_of(state)
    assert moved(plan) == []
    assert refusals(plan)["greedy"] == "no-better-place"


def test_gates_hold_for_it_as_for_everybody() -> None:
    """No budget left, no move."""
    plan = plan_of(world(), budgets=Budgets(total=0))
    assert moved(plan) == []
    assert refusals(plan)["greedy"] == "budget-total"


def test_a_second_plan_after_the_first_has_nothing_to_do() -> None:
    """The device has room, and where the pod went there is room too."""
    pods = (sharer("greedy", "roomy", asks=2 * GI, memory=11 * GI), sharer("modest", "crowded", asks=12 * GI, memory=11 * GI))
    after = {("crowded", 0): used(busy=0.2, memory=12 * GI, total=24 * GI), ("roomy", 0): used(busy=0.2, memory=12 * GI, total=24 * GI)}
    assert moved(plan_of(world(*pods, devices=after))) == []


def test_a_plan_file_holds_while_the_device_is_crowded_and_not_longer() -> None:
    """What is checked again is the device, not the mean of its node."""
    plan, rules = plan_of(world()), policy()

    def kept(state: ClusterState) -> tuple[int, list[str]]:
        bench = lay_bench(
            state=state,
            findings=detect(state, rules),
            policy=RebalancePolicy(spec=rules),
            history=NOTHING_HAPPENED,
            mode=Mode.EVICT,
        )
        proposal, dropped = recheck(plan, bench)
        return len(proposal.moves), [words for _, words in dropped]

    assert kept(world()) == (1, [])
    calm = world(devices={**FULL, ("crowded", 0): used(busy=0.3, memory=9 * GI, total=24 * GI)})
    assert kept(calm) == (0, ["default/greedy is on no GPU any more that over-users fill over 90 %"])


def test_where_the_over_user_cannot_leave_its_neighbour_is_brought_to_safety() -> None:
    """17 GiB fit nowhere, 5 do; the reason names who is to blame."""
    pods = (sharer("greedy", "crowded", asks=2 * GI, memory=17 * GI), sharer("modest", "crowded", asks=6 * GI, memory=5 * GI))
    plan = plan_of(world(*pods, devices={**FULL, ("roomy", 0): used(busy=0.1, memory=9 * GI, total=24 * GI)}))
    assert (moved(plan), refusals(plan)["greedy"]) == (["modest"], "no-better-place")
    assert "with default/greedy, which asked for 2.0 GiB and uses 17.0 GiB and cannot leave" in plan.moves[0].reason


def test_a_mean_that_has_not_fallen_yet_moves_nobody() -> None:
    """The device reads 97 %, since a pod has just left; those that are on it now have 14 GiB."""
    pods = (sharer("greedy", "crowded", asks=2 * GI, memory=8 * GI), sharer("modest", "crowded", asks=8 * GI, memory=6 * GI))
    assert moved(plan_of(world(*pods))) == []


def test_the_node_repels_new_pods_meanwhile() -> None:
    """It is not hot, and without a soft taint kube-scheduler would put the replacement back."""
    assert plan_of(world()).soft_taints == ("crowded",)
    assert plan_of(world(), "report").soft_taints == ()


@given(uses=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 12)), min_size=2, max_size=5), taken_gib=st.integers(0, 24))
@settings(max_examples=60, deadline=None)
def test_no_destination_is_ever_filled_beyond_what_it_has(uses: list[tuple[int, int]], taken_gib: int) -> None:
    """Whatever sharers asked for and use: what is measured there and what arrives fit together; without an over-user nobody moves."""
    pods = tuple(sharer(f"p{number}", "crowded", asks=asked * GI, memory=use * GI, busy=0.05) for number, (asked, use) in enumerate(uses))
    full = min(24.0, sum(use for _, use in uses) + 0.5)
    devices = {("crowded", 0): used(busy=0.2, memory=full * GI, total=24 * GI), ("roomy", 0): used(memory=taken_gib * GI, total=24 * GI)}
    plan = plan_of(world(*pods, devices=devices))
    arriving = sum(uses[int(move.pod.name[1:])][1] for move in plan.moves)
    event(f"{len(plan.moves)} moves")
    assert not plan.moves or taken_gib + arriving <= 24
    assert not plan.moves or (full > 21.6 and any(use > asked for asked, use in uses))


@pytest.mark.parametrize(("full_gib", "repels"), [(23.3, True), (19.0, True), (16.0, False)])
def test_a_node_repels_until_its_device_has_room_again(full_gib: float, repels: bool) -> None:
    """Not only until somebody has left: what was asked for there is still less than what is used, and the next pod would fill it again."""
    pods = (sharer("greedy", "crowded", asks=2 * GI, memory=11 * GI), sharer("modest", "crowded", asks=12 * GI, memory=11 * GI))
    state = world(*pods, devices={**FULL, ("crowded", 0): used(busy=0.3, memory=full_gib * GI, total=24 * GI)})
    assert crowded_nodes(state, Overuse(action="move"))[state.node_index["crowded"]] == repels
    assert not crowded_nodes(state, Overuse(action="report")).any()
