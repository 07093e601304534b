"""The worked cases of the gpushare scheduler extender, as a plan sees them: a request of 8138 MiB, devices of 16276 MiB."""

from __future__ import annotations

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Health
from rebalancer.state.gpu import MIB, Scheme
from tests.plan_devices.asking import BY_REQUEST, fits, gpus_of, possible, row, why_never, with_use
from tests.support.builder import PodSpec, cluster, pod
from tests.support.gpu_use import taken, used
from tests.support.gpus import DeviceSpec, gpu, memory_of, part

ASK, WHOLE = 8138, 16276
T4 = "Tesla-T4"


def shared(**changes: object) -> DeviceSpec:
    return gpu(
        **{"memory": WHOLE * MIB, "handed_out": WHOLE * MIB, "model": T4, "scheme": Scheme.GPUSHARE, "replicas": float("nan")} | changes
    )


def holding(name: str, on: str, place: int, mib: float) -> PodSpec:
    return pod(name, on=on, gpu=memory_of(mib * MIB), holds={place: part(memory=mib * MIB)})


def three_nodes() -> ClusterState:
    """N1 has 4069 MiB free in all, N2 4069 on each of two devices, N3 8138 on one of two."""
    return cluster(
        nodes=[gpus_of(name, shared(), shared()) for name in ("n1", "n2", "n3", "n0")],
        pods=[
            holding("a", "n1", 0, 16276),
            holding("b", "n1", 1, 12207),
            holding("c", "n2", 0, 12207),
            holding("d", "n2", 1, 12207),
            holding("e", "n3", 0, 16276),
            holding("f", "n3", 1, 8138),
            holding("mover", "n0", 0, ASK),
            holding("rest", "n0", 1, 16276),
        ],
    )


def test_c2_a_request_has_to_fit_into_one_device():
    """N1 and N2 have no device with 8138 MiB free, and what N2 has free on two devices does not add up."""
    state = three_nodes()
    assert possible(state, "mover") & {"n1", "n2", "n3"} == {"n3"}
    assert why_never(state, "mover", "n2") == f"no device has 7.9 GiB free: the best, 0 ({T4}), has 4.0 GiB"


def test_c3_the_fitting_device_with_the_least_free_memory_is_the_one_that_counts():
    """Free are 12207, 8138, 4069 and 16276 MiB: the second is given, so it alone decides whether the node fits by measurement."""
    pods = [holding("x", "n1", 0, 4069), holding("y", "n1", 1, 8138), holding("z", "n1", 2, 12207), holding("mover", "n2", 0, ASK)]
    state = cluster(nodes=[gpus_of("n1", *[shared()] * 4), gpus_of("n2", shared())], pods=pods)
    own = {"mover": taken(memory=ASK * MIB)}
    over = {("n1", place): used(memory=16000 * MIB) for place in (0, 3)}
    assert "n1" in fits(with_use(state, {**over, ("n1", 1): used(memory=ASK * MIB)}, own), "mover")
    assert "n1" not in fits(with_use(state, {("n1", 1): used(memory=16000 * MIB)}, own), "mover")


def test_c3_the_first_of_devices_that_are_alike_is_the_one_that_counts():
    """Two empty devices: the first is given, so what the second one uses does not matter."""
    state = cluster(nodes=[gpus_of("n1", shared(), shared()), gpus_of("n2", shared())], pods=[holding("mover", "n2", 0, ASK)])
    own = {"mover": taken(memory=ASK * MIB)}
    assert "n1" in fits(with_use(state, {("n1", 1): used(memory=16000 * MIB)}, own), "mover")
    assert "n1" not in fits(with_use(state, {("n1", 0): used(memory=16000 * MIB)}, own), "mover")


def test_c3_a_node_where_a_booking_counts_on_the_rule_takes_no_other():
    """Replacements come in any order, so a second one could lead the first to the device that is full by measurement."""
    pods = [holding("first", "n2", 0, 1000), holding("second", "n2", 0, 1000)]
    state = cluster(nodes=[gpus_of("n1", shared(), shared()), gpus_of("n2", shared())], pods=pods)
    own = {"first": taken(memory=1000 * MIB), "second": taken(memory=1000 * MIB)}
    full = with_use(state, {("n1", 1): used(memory=16000 * MIB)}, own)
    book = DeviceBook(full)
    book.book(row(full, "first"), 0)
    assert "n1" not in fits(full, "second", book=book)
    calm = with_use(state, {}, own)
    book = DeviceBook(calm)
    book.book(row(calm, "first"), 0)
    assert "n1" in fits(calm, "second", book=book)


def test_c4_devices_of_a_node_are_equal_parts_of_its_memory():
    """Two requests of 8138 fill one device of 16276 to the last MiB, and a third has no place on it."""
    pods = [holding("a", "n1", 0, ASK), holding("mover", "n2", 0, ASK)]
    state = cluster(nodes=[gpus_of("n1", shared()), gpus_of("n2", shared())], pods=pods)
    assert "n1" in fits(state, "mover", policy=BY_REQUEST)
    book = DeviceBook(state, BY_REQUEST)
    book.book(row(state, "mover"), 0)
    assert "n1" not in possible(state, "mover", book=book)


def test_c6_an_unhealthy_device_is_given_to_nobody():
    """The only device with room is unhealthy."""
    ill = shared(health=Health.UNHEALTHY)
    state = cluster(
        nodes=[gpus_of("n1", ill, shared()), gpus_of("n2", shared())],
        pods=[holding("a", "n1", 1, 12207), holding("mover", "n2", 0, ASK)],
    )
    assert "n1" not in possible(state, "mover")


def test_c8_a_pod_that_uses_more_than_it_asked_for_needs_what_it_uses():
    """2048 MiB asked for and 11611 in use: a device with 10 GiB free is none for it."""
    pods = [holding("a", "n1", 0, 6000), holding("mover", "n2", 0, 2048)]
    state = cluster(nodes=[gpus_of("n1", shared()), gpus_of("n2", shared()), gpus_of("n3", shared())], pods=pods)
    at = {("n1", 0): used(memory=6000 * MIB), ("n2", 0): used(memory=11611 * MIB)}
    state = with_use(state, at, {"mover": taken(memory=11611 * MIB)})
    assert possible(state, "mover") == {"n1", "n2", "n3"}
    assert fits(state, "mover") - {"n2"} == {"n3"}
