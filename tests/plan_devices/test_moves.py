"""Whole plans on clusters with GPUs: who is moved for which signal, and where the replacement has to find its device."""

from __future__ import annotations

from dataclasses import replace

from rebalancer.policy.gpu import Gpu
from rebalancer.policy.model import Budgets, Gain, Pool, Spec, Threshold, Victims
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import Scheme
from rebalancer.state.scheduling import Constraints
from tests.plan.deciding import moved, planned, refusals, why
from tests.plan_devices.asking import with_use
from tests.support.builder import CPU, GPU, GPU_MEMORY, NodeSpec, PodSpec, cluster, node, pod
from tests.support.gpu_use import Used, taken, used
from tests.support.gpus import DeviceSpec, fraction, gpu, memory_of, part, whole

GI = 1024.0**3
MARKS = {"cpu": Threshold(low=30, target=55, high=70), "gpu": Threshold(low=30, target=60, high=85)}
MEMORY_MARKS = {"cpu": Threshold(low=30, target=55, high=70), "gpu_memory": Threshold(low=30, target=60, high=85)}


def spec(signals: dict[str, Threshold] = MARKS, **fields: object) -> Spec:
    return Spec(pools=(Pool(name="default", signals=signals),), budgets=Budgets(per_node=20), **fields)


def machine(
    name: str, *devices: DeviceSpec, cpu: float = 0.2, busy: float = 0.1, memory: float = 0.1, count: int | None = None
) -> NodeSpec:
    extended = {"nvidia.com/gpu": float(len(devices) if count is None else count)}
    return node(name, cpu=16, gpus=devices, load={"cpu": cpu, "gpu": busy, "gpu_memory": memory}, extended=extended)


def worker(name: str, on: str, *, place: int = 0, busy: float = 0.9, memory: float = 30 * GI, cpu: float = 1.0) -> PodSpec:
    """On a whole device."""
    return pod(
        name,
        on=on,
        workload=name,
        uses={"cpu": cpu, "gpu": busy, "gpu_memory": memory},
        extended={"nvidia.com/gpu": 1},
        gpu=whole(),
        holds={place: 1.0},
    )


def sharer(name: str, on: str, *, asks: float = 2 * GI, busy: float = 0.4, memory: float = 2 * GI, place: int = 0) -> PodSpec:
    """On a part of a gpushare device."""
    return pod(
        name,
        on=on,
        workload=name,
        uses={"cpu": 0.5, "gpu": busy, "gpu_memory": memory},
        gpu=memory_of(asks),
        holds={place: part(memory=asks)},
    )


def shared() -> DeviceSpec:
    return gpu("16Gi", handed_out="16Gi", model="T4", scheme=Scheme.GPUSHARE, replicas=float("nan"))


def state_of(nodes: list[NodeSpec], pods: list[PodSpec], devices: dict[tuple[str, int], Used] | None = None) -> ClusterState:
    """With each pod measured as it says."""
    state = cluster(nodes=nodes, pods=pods, signals=(CPU, GPU, GPU_MEMORY))
    return with_use(state, devices, {each.name: taken(memory=each.uses["gpu_memory"]) for each in pods if "gpu_memory" in each.uses})


def test_a_pod_on_a_busy_gpu_goes_to_a_node_with_a_free_one_of_its_model() -> None:
    """Two of two GPUs are busy, and another node of the same model has free ones."""
    state = state_of(
        [machine("hot", gpu(), gpu(), busy=0.95), machine("cool", gpu(), gpu(), busy=0.0)],
        [worker("a", "hot", place=0), worker("b", "hot", place=1)],
    )
    plan = planned(state, spec())
    assert len(plan.moves) == 1
    assert plan.moves[0].destination == "cool"


def test_g18_a_node_without_gpus_receives_no_gpu_load_and_gives_none() -> None:
    """The only cool node has no GPU: it is out of scope for the signal, and nobody who asks for one goes there."""
    state = state_of([machine("hot", gpu(), busy=0.95), node("cpu", cpu=64, load={"cpu": 0.1})], [worker("a", "hot")])
    plan = planned(state, spec())
    assert moved(plan) == []
    assert refusals(plan) == {"a": "no-feasible-node"}
    assert next(each for each in plan.nodes if each.name == "cpu").signals["gpu"].load is None


def test_g18_only_pods_that_use_the_resource_are_moved_to_cure_it() -> None:
    """The GPUs are hot, the web pod uses none: it stays, even where a move need cure nothing in particular."""
    web = pod("web", on="hot", workload="web", uses={"cpu": 4, "gpu": 0, "gpu_memory": 0})
    state = state_of([machine("hot", gpu(), busy=0.95, cpu=0.5), machine("cool", gpu(model="T4"), busy=0)], [web, worker("a", "hot")])
    plan = planned(state, spec(gain=Gain(min_relative=0, disruption_cost=0)))
    assert moved(plan) == []
    assert refusals(plan)["web"] == "gain-too-small"


def test_g18_a_pod_without_gpus_may_leave_a_gpu_node_that_is_hot_by_cpu() -> None:
    """It uses none of the GPUs, and that is known."""
    web = pod("web", on="hot", workload="web", uses={"cpu": 6, "gpu": 0, "gpu_memory": 0})
    state = state_of([machine("hot", gpu(), cpu=0.9), node("cpu", cpu=64, load={"cpu": 0.1})], [web])
    assert moved(planned(state, spec())) == ["web"]


def test_g22_a_pod_that_holds_more_than_the_destination_has_free_stays() -> None:
    """It is busy 3 % of the time and holds 23 GiB; the coolest device has 16 GiB free by measurement, whatever was asked for."""
    device = gpu("40Gi", scheme=Scheme.PLAIN)
    holder = pod(
        "holder",
        on="hot",
        workload="holder",
        uses={"cpu": 12, "gpu": 0.03, "gpu_memory": 23 * GI},
        gpu=fraction(0.1),
        holds={0: part(0.1, "4Gi")},
    )
    state = state_of(
        [machine("hot", device, cpu=0.9, busy=0.1), machine("cool", device, cpu=0.0, busy=0.0)],
        [holder],
        {("cool", 0): used(memory="24Gi"), ("hot", 0): used(memory="23Gi")},
    )
    plan = planned(state, spec())
    assert refusals(plan) == {"holder": "no-better-place"}
    assert why(plan, "holder") == (
        "kube-scheduler's scores would put it on cool: no device has 23.0 GiB free: the best, 0 (A100), has 16.0 GiB by measurement"
    )


def test_g14_the_larger_of_ask_and_use_is_what_a_destination_needs() -> None:
    """2 GiB asked for and 11 in use: the move is refused where 10 are free, and made where 12 are."""
    pods = [sharer("over", "hot", memory=11 * GI, busy=0.5), sharer("other", "hot", busy=0.2)]
    for free, expected in ((10, False), (12, True)):
        nodes = [machine("hot", shared(), busy=0.95, count=0), machine("cool", shared(), busy=0.0, count=0)]
        state = state_of(nodes, pods, {("cool", 0): used(memory=(16 - free) * GI), ("hot", 0): used(memory=13 * GI)})
        assert ("over" in moved(planned(state, spec()))) is expected


def test_g16_a_node_whose_devices_are_over_packed_is_no_destination() -> None:
    """20 GiB are given away of a device of 16: whoever does so keeps no count, so the free device beside it is not offered either."""
    pods = [
        sharer("a", "hot", busy=0.9),
        *(sharer(f"p{i}", "packed", asks=10 * GI, busy=0.0, memory=1 * GI) for i in range(2)),
    ]
    nodes = [machine("hot", shared(), busy=0.95, count=0), machine("packed", shared(), shared(), busy=0.0, count=0)]
    plan = planned(state_of(nodes, pods, {("hot", 0): used(memory="2Gi"), ("packed", 0): used(memory="2Gi")}), spec())
    assert refusals(plan)["a"] == "no-better-place"
    assert "of device 0 (T4), 20.0 GiB are given away, and it has 16.0 GiB" in why(plan, "a")


def test_g13_a_node_of_which_only_the_whole_is_known_is_no_destination() -> None:
    """Its scheme divides 48 GiB by two, and what each device has nobody says: 16 and 32 are as likely as 24 and 24."""
    divided = gpu("24Gi", handed_out="24Gi", model="T4", scheme=Scheme.GPUSHARE, replicas=float("nan"), exact=False)
    nodes = [machine("hot", shared(), busy=0.95, count=0), machine("cool", divided, divided, busy=0.0, count=0)]
    state = state_of(nodes, [sharer("a", "hot", busy=0.9)])
    plan = planned(state, spec())
    assert refusals(plan) == {"a": "no-better-place"}
    assert "how much of its memory is free on device 0 (T4) is not known" in why(plan, "a")
    told = state_of(nodes, [sharer("a", "hot", busy=0.9)], {("cool", place): used(memory=0, total="24Gi") for place in (0, 1)})
    assert moved(planned(told, spec())) == ["a"]


def test_g19_a_fraction_of_kai_without_any_resource_is_held_to_nodes_with_room_for_it() -> None:
    """Nothing among its resources would keep it from a node without GPUs, or from one whose only GPU is held as a whole."""
    most = pod("most", on="hot", workload="most", uses={"cpu": 12, "gpu": 0.5, "gpu_memory": 8 * GI}, gpu=fraction(0.7), holds={0: 0.7})
    state = state_of(
        [machine("hot", gpu(), cpu=0.9), machine("taken", gpu(), cpu=0.0), node("cpu", cpu=64, load={"cpu": 0.0})],
        [most, worker("whole", "taken", busy=0.1)],
    )
    plan = planned(state, spec())
    assert refusals(plan)["most"] == "no-feasible-node"
    assert "3 devices" in why(plan, "most")


def test_a_node_with_one_full_device_and_seven_idle_ones_takes_whole_pods_only_where_none_is_in_the_way() -> None:
    """The load of the node is low. The full device is held, so it is not what the pod gets; if nobody held it, it could be."""
    devices = [gpu() for _ in range(8)]
    nodes = [machine("hot", gpu(), busy=0.95), machine("eight", *devices, busy=0.12)]
    full = {("eight", 3): used(memory="39Gi")}
    held = [worker("a", "hot"), worker("b", "eight", place=3)]
    assert moved(planned(state_of(nodes, held, full), spec())) == ["a"]
    plan = planned(state_of(nodes, held[:1], full), spec())
    assert "device 3 (A100) has nobody on it and 39.0 GiB of its memory in use" in why(plan, "a")


def test_the_policy_may_let_pods_change_the_model() -> None:
    """A pod that names no model may go to any device of the vendor."""
    nodes = [machine("hot", gpu(), busy=0.95), machine("other", gpu("80Gi", model="H100"), busy=0.0)]
    state = state_of(nodes, [worker("a", "hot", busy=0.6)])
    assert "it runs on A100 now" in why(planned(state, spec()), "a")
    assert moved(planned(state, spec(gpu=Gpu(same_model=False)))) == ["a"]


def test_each_booked_move_takes_its_device_at_once() -> None:
    """Two pods leave two hot nodes, and the only cool node has one device free."""
    nodes = [machine("hot1", gpu(), busy=0.95), machine("hot2", gpu(), busy=0.95), machine("cool", gpu(), gpu(), busy=0.0)]
    pods = [worker("a", "hot1", busy=0.5), worker("b", "hot2", busy=0.5), worker("c", "cool", busy=0.0)]
    plan = planned(state_of(nodes, pods, {("cool", 0): used(memory="30Gi")}), spec())
    assert len(plan.moves) == 1


def test_a_pod_of_a_scheduler_that_the_policy_names_is_planned_by_the_same_rules() -> None:
    """Its scheduler is kube-scheduler with an extender; without being named it is nobody that can be predicted."""
    nodes = [machine("hot", gpu(), busy=0.95), machine("cool", gpu(), busy=0.0)]
    mine = replace(worker("a", "hot", busy=0.6), constraints=Constraints(scheduler_name="hami-scheduler"))
    state = state_of(nodes, [mine])
    assert refusals(planned(state, spec())) == {"a": "scheduler"}
    assert moved(planned(state, spec(victims=Victims(schedulers=("default-scheduler", "hami-scheduler"))))) == ["a"]
