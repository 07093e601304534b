"""Where a pod fits by each way of sharing: what its scheme could give it, and whether that would be well."""

from __future__ import annotations

import pytest

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.state.devices import DeviceFault, FaultReason, Health
from rebalancer.state.gpu import UNKNOWN, Family, GpuAsk, ModelConstraint, Scheme
from tests.plan_devices.asking import BY_REQUEST, fits, gpus_of, possible, row, why, with_use
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import taken, used
from tests.support.gpus import DeviceSpec, fraction, gpu, memory_of, mig, part, replica, slice_of, unknown_ask, virtual, whole

GI = 1024.0**3


def vgpu(memory: str = "40Gi", **changes: object) -> DeviceSpec:
    return gpu(**{"memory": memory, "handed_out": "40Gi", "scheme": Scheme.HAMI, "replicas": 10.0} | changes)


def test_whole_devices_need_as_many_with_nobody_on_them():
    """Two are asked for: a node with one free of two is none, and one with two is."""
    state = cluster(
        nodes=[gpus_of("one", gpu(), gpu()), gpus_of("two", gpu(), gpu()), gpus_of("own", gpu(), gpu())],
        pods=[pod("here", on="one", gpu=whole(), holds={0: 1.0}), pod("mover", on="own", gpu=whole(2), holds={0: 1.0, 1: 1.0})],
    )
    state = with_use(state)
    assert fits(state, "mover") == {"two"}
    assert why(state, "mover", "one") == "1 of 2 devices are free, and it asks for 2"


def test_pods_on_devices_that_are_not_known_take_them_all_the_same():
    """A pod holds one of two devices, nobody knows which: one is left, not two."""
    state = cluster(
        nodes=[gpus_of("n1", gpu(), gpu()), gpus_of("n2", gpu(), gpu())],
        pods=[
            pod("somewhere", on="n1", gpu=whole()),
            pod("one", on="n2", gpu=whole(), holds={0: 1.0}),
            pod("two", gpu=whole(2)),
        ],
    )
    state = with_use(state)
    assert "n1" in fits(state, "one")
    assert "n1" not in fits(state, "two")
    assert why(state, "two", "n1") == "2 of 2 devices are free, less 1 that others are on or will be, and it asks for 2"


def test_an_idle_device_that_holds_memory_is_not_free():
    """Nobody is on it, and 12 GiB of it are in use: whoever gets it does not get all of it."""
    state = cluster(
        nodes=[gpus_of("n1", gpu()), gpus_of("n2", gpu()), gpus_of("own", gpu())],
        pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})],
    )
    state = with_use(state, {("n1", 0): used(memory="12Gi"), ("n2", 0): used(memory="600Mi")})
    assert fits(state, "mover") == {"n2"}
    assert why(state, "mover", "n1") == "device 0 (A100) has nobody on it and 12.0 GiB of its memory in use"


def test_a_device_in_use_that_nobody_is_known_to_be_on_may_be_anybodys():
    """A pod holds one of two devices, nobody knows which. 30 GiB of one are in use: its, or left by somebody else."""
    state = cluster(
        nodes=[gpus_of("n1", gpu(), gpu()), gpus_of("own", gpu())],
        pods=[pod("somewhere", on="n1", gpu=whole()), pod("mover", on="own", gpu=whole(), holds={0: 1.0})],
    )
    state = with_use(state, {("n1", 1): used(memory="30Gi")})
    assert fits(state, "mover") == set()
    assert why(state, "mover", "n1") == "nobody is known to be on device 1 (A100), and 30.0 GiB of its memory are in use"


def test_an_unmeasured_device_takes_nobody_unless_the_policy_says_so():
    """No exporter was asked: how much of the device's memory is in use is not known."""
    state = cluster(nodes=[gpus_of("n1", gpu()), gpus_of("own", gpu())], pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})])
    assert fits(state, "mover") == set()
    assert why(state, "mover", "n1") == "how much of the memory of device 0 (A100) is used is not known"
    assert fits(state, "mover", policy=BY_REQUEST) == {"n1"}


def test_a_pod_stays_on_the_model_that_it_runs_on():
    """It names no model and runs on an A100; a T4 is none for it, unless the policy leaves that open."""
    state = cluster(
        nodes=[gpus_of("t4", gpu(model="T4")), gpus_of("a100", gpu()), gpus_of("none", gpu(model="")), gpus_of("own", gpu())],
        pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})],
    )
    state = with_use(state)
    assert fits(state, "mover") == {"a100"}
    assert why(state, "mover", "t4") == "it could be given device 0 (T4), and it runs on A100 now"
    assert fits(state, "mover", policy=BY_REQUEST.model_copy(update={"same_model": False})) == {"t4", "a100", "none"}


def test_a_pod_that_names_models_goes_to_any_of_them():
    """Its hint admits two of three models, whatever it runs on now."""
    ask = GpuAsk(
        family=Family.NVIDIA, scheme=Scheme.HAMI, devices=1.0, memory_bytes=GI, slots=1.0, model=ModelConstraint(like=("A100", "A800"))
    )
    state = cluster(
        nodes=[gpus_of(model, vgpu(model=f"NVIDIA-{model}")) for model in ("A100", "A800", "T4")] + [gpus_of("own", vgpu(model="A100"))],
        pods=[pod("mover", on="own", gpu=ask, holds={0: part(memory=GI)})],
    )
    assert fits(with_use(state, pods={"mover": taken(memory="1Gi")}), "mover") - {"own"} == {"A100", "A800"}
    assert "T4" not in possible(state, "mover")


def test_a_node_with_two_models_is_none_where_the_wrong_one_could_be_given():
    """Both devices are free, and the device plugin may give either."""
    state = cluster(
        nodes=[gpus_of("both", gpu(), gpu(model="T4")), gpus_of("own", gpu())],
        pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})],
    )
    assert fits(with_use(state), "mover") == set()


def test_a_selector_that_names_what_sharing_adds_to_a_model_still_names_the_model():
    """The node label says Tesla-T4-SHARED, the device is a Tesla-T4."""
    ask = GpuAsk(
        family=Family.NVIDIA,
        scheme=Scheme.TIME_SLICING,
        devices=1.0,
        compute=0.25,
        gpus=0.25,
        slots=1.0,
        model=ModelConstraint(models=("Tesla-T4-SHARED",)),
    )
    sliced = gpu(memory="16Gi", model="Tesla-T4", scheme=Scheme.TIME_SLICING, replicas=4.0)
    state = cluster(
        nodes=[gpus_of("n1", sliced), gpus_of("own", sliced)], pods=[pod("mover", on="own", gpu=ask, holds={0: part(compute=0.25)})]
    )
    assert "n1" in fits(with_use(state), "mover")


def test_hami_needs_memory_and_compute_of_one_device():
    """10 GiB and half of the compute: one device has the memory, the other the compute, and none has both."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu()), gpus_of("n2", vgpu()), gpus_of("own", vgpu())],
        pods=[
            pod("big", on="n1", gpu=virtual(memory="35Gi", cores=0.1), holds={0: part(0.1, "35Gi")}),
            pod("busy", on="n1", gpu=virtual(memory="5Gi", cores=0.6), holds={1: part(0.6, "5Gi")}),
            pod("mover", on="own", gpu=virtual(memory="10Gi", cores=0.5), holds={0: part(0.5, "10Gi")}),
        ],
    )
    state = with_use(state, pods={"mover": taken(memory="4Gi")})
    assert possible(state, "mover") == {"n2", "own"}
    assert fits(state, "mover") - {"own"} == {"n2"}


def test_hami_gives_all_of_the_compute_to_one_pod_alone():
    """100 cores want a device with nobody on it, and nobody joins a device whose cores are all given away."""
    state = cluster(
        nodes=[gpus_of("shared", vgpu()), gpus_of("taken", vgpu()), gpus_of("free", vgpu()), gpus_of("own", vgpu(), vgpu())],
        pods=[
            pod("part", on="shared", gpu=virtual(memory="1Gi"), holds={0: part(memory="1Gi")}),
            pod("all", on="taken", gpu=virtual(memory="1Gi", cores=1.0), holds={0: part(1.0, "1Gi")}),
            pod("alone", on="own", gpu=virtual(memory="1Gi", cores=1.0), holds={0: part(1.0, "1Gi")}),
            pod("joins", on="own", gpu=virtual(memory="1Gi"), holds={1: part(memory="1Gi")}),
        ],
    )
    assert possible(state, "alone") == {"free"}
    assert possible(state, "joins") == {"shared", "free", "own"}


def test_hami_on_two_devices_needs_two_that_have_it():
    """One of two devices has 10 GiB left."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu()), gpus_of("n2", vgpu(), vgpu())],
        pods=[pod("big", on="n1", gpu=virtual(memory="35Gi"), holds={0: part(memory="35Gi")}), pod("two", gpu=virtual(2, memory="10Gi"))],
    )
    assert possible(state, "two") == {"n2"}
    assert why(state, "two", "n1") == "1 of 2 devices have 10.0 GiB free: the next, 0 (A100), has 5.0 GiB"


def test_every_device_that_hami_could_give_has_to_have_room_by_measurement():
    """Its rule of choice is a setting that is not known: one of two devices is full by measurement, so the node is none."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu()), gpus_of("own", vgpu())],
        pods=[pod("mover", on="own", gpu=virtual(memory="8Gi"), holds={0: part(memory="8Gi")})],
    )
    own = {"mover": taken(memory="8Gi")}
    assert "n1" in fits(with_use(state, pods=own), "mover")
    full = with_use(state, {("n1", 1): used(memory="36Gi")}, own)
    assert "n1" not in fits(full, "mover")
    assert why(full, "mover", "n1") == "it needs 8.0 GiB and could be given device 1 (A100), which has 4.0 GiB free by measurement"


def test_a_fraction_of_kai_goes_to_a_reserved_device_or_to_a_free_one():
    """One device has the half that is asked for left beside its reservation, one is held by a pod as a whole, one is free."""
    reservation = whole(scheme=Scheme.KAI_RESERVATION)
    half = {0: part(0.5, "20Gi")}
    state = cluster(
        nodes=[gpus_of(name, gpu()) for name in ("reserved", "taken", "free", "filled", "own")],
        pods=[
            pod("reservation", on="reserved", gpu=reservation, holds={0: part(0.0, 0)}),
            pod("first", on="reserved", gpu=fraction(0.5), holds=half),
            pod("all", on="taken", gpu=whole(), holds={0: 1.0}),
            pod("most", on="filled", gpu=fraction(0.7), holds={0: part(0.7, "28Gi")}),
            pod("mover", on="own", gpu=fraction(0.5), holds=half),
        ],
    )
    own = {"mover": taken(memory="10Gi")}
    assert possible(state, "mover") == {"reserved", "free", "own"}
    assert fits(with_use(state, {("reserved", 0): used(memory="12Gi")}, own), "mover") - {"own"} == {"reserved", "free"}
    assert fits(with_use(state, {("reserved", 0): used(memory="32Gi")}, own), "mover") - {"own"} == {"free"}


def test_a_reservation_pod_fits_nowhere():
    """It holds a device on behalf of others."""
    state = cluster(
        nodes=[gpus_of("n1", gpu()), gpus_of("n2", gpu())],
        pods=[pod("reservation", on="n1", gpu=whole(scheme=Scheme.KAI_RESERVATION), holds={0: part(0.0, 0)})],
    )
    assert fits(with_use(state), "reservation") == set()
    assert why(state, "reservation", "n2") == "no device can be promised to it: it reserves a device for other pods"


@pytest.mark.parametrize("scheme", [Scheme.KOORDINATOR, Scheme.TENCENT])
def test_a_part_of_a_device_is_of_one_and_several_are_whole(scheme: Scheme):
    """60 hundredths find no room beside 50, and 200 want two devices with nobody on them."""
    device = gpu(scheme=scheme, replicas=UNKNOWN)
    state = cluster(
        nodes=[gpus_of("n1", device, device), gpus_of("n2", device, device)],
        pods=[
            pod("half", on="n1", gpu=fraction(0.5, scheme=scheme), holds={0: 0.5}),
            pod("other", on="n1", gpu=fraction(0.5, scheme=scheme), holds={1: 0.5}),
            pod("most", gpu=fraction(0.6, scheme=scheme)),
            pod("two", gpu=fraction(1.0, devices=2, scheme=scheme)),
        ],
    )
    assert possible(state, "most") == {"n2"}
    assert possible(state, "two") == {"n2"}


def test_an_instance_has_to_be_of_the_profile():
    """Whole GPUs and instances of another profile are none."""
    state = cluster(
        nodes=[
            gpus_of("same", mig()),
            gpus_of("other", mig("3g.20gb", memory="20Gi")),
            gpus_of("uncut", gpu()),
            gpus_of("mixed", gpu(), mig()),
            gpus_of("own", mig()),
        ],
        pods=[pod("mover", on="own", gpu=slice_of("1g.5gb"), holds={0: 1.0})],
    )
    state = with_use(state)
    assert fits(state, "mover") == {"same", "mixed"}
    assert why(state, "mover", "uncut") == "uncut has no nvidia device of profile 1g.5gb that mig gives to pods"


def test_a_replica_needs_room_for_what_the_pod_uses():
    """Time-slicing divides no memory: 6 GiB in use want a device with 6 GiB left, whatever turns are free."""
    sliced = gpu(memory="16Gi", model="T4", scheme=Scheme.TIME_SLICING, replicas=4.0)
    state = cluster(
        nodes=[gpus_of("n1", sliced), gpus_of("n2", sliced), gpus_of("own", sliced)],
        pods=[
            *(pod(f"p{i}", on="n1", gpu=replica(4), holds={0: part(compute=0.25)}) for i in range(2)),
            pod("mover", on="own", gpu=replica(4), holds={0: part(compute=0.25)}),
        ],
    )
    at = {("n1", 0): used(memory="11Gi"), ("n2", 0): used(memory="9Gi"), ("own", 0): used(memory="6Gi")}
    state = with_use(state, at)
    assert fits(state, "mover") - {"own"} == {"n2"}
    assert why(state, "mover", "n1") == "no device has 6.0 GiB free: the best, 0 (T4), has 5.0 GiB by measurement"


def test_what_a_sharer_uses_is_at_most_what_its_device_uses():
    """An estimate is no bound: the pod may hold all of the 10 GiB that its device uses, and not the 2 GiB of its share."""
    sliced = gpu(memory="16Gi", model="T4", scheme=Scheme.TIME_SLICING, replicas=4.0)
    state = cluster(
        nodes=[gpus_of("n1", sliced), gpus_of("own", sliced)],
        pods=[pod("mover", on="own", gpu=replica(4), holds={0: part(compute=0.25)})],
    )
    at = {("n1", 0): used(memory="8Gi"), ("own", 0): used(memory="10Gi")}
    assert "n1" not in fits(with_use(state, at, {"mover": taken(memory="2Gi", estimated=True)}), "mover")
    assert "n1" in fits(with_use(state, at, {"mover": taken(memory="2Gi")}), "mover")


def test_a_whole_device_is_none_where_its_name_means_a_replica():
    """The same resource is a replica on that node, where others take turns: it is not what the pod has now."""
    sliced = gpu(scheme=Scheme.TIME_SLICING, replicas=4.0)
    state = cluster(nodes=[gpus_of("n1", sliced), gpus_of("own", gpu())], pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})])
    state = with_use(state)
    assert fits(state, "mover") == set()
    assert why(state, "mover", "n1") == "it could be given device 0 (A100) by time-slicing, which is not what it asks for by plain"


def test_a_node_without_gpus_is_none_for_a_pod_that_asks_for_one():
    """A fraction has no GPU among its resources, so nothing else would keep it away."""
    state = cluster(
        nodes=[node("cpu"), gpus_of("n1", gpu()), gpus_of("own", gpu())],
        pods=[pod("mover", on="own", gpu=fraction(0.5), holds={0: 0.5})],
    )
    assert possible(state, "mover") == {"n1", "own"}


@pytest.mark.parametrize(
    ("device", "use", "words"),
    [
        (gpu(trusted=False), used(memory=0), "what is told of device 0 (A100) does not go together"),
        (gpu(), used(memory=0, doubt="busy 0 % and 90 %"), "what is measured of device 0 (A100) is not believed: busy 0 % and 90 %"),
        (gpu(), used(memory=0, ailment="XID 79"), "nothing is put on device 0 (A100): XID 79"),
    ],
)
def test_a_device_that_is_in_doubt_or_ill_is_a_destination_of_nothing(device: DeviceSpec, use: object, words: str):
    """It is free, and the node has no other."""
    state = cluster(nodes=[gpus_of("n1", device), gpus_of("own", gpu())], pods=[pod("mover", on="own", gpu=whole(), holds={0: 1.0})])
    state = with_use(state, {("n1", 0): use})
    assert fits(state, "mover") == set()
    assert why(state, "mover", "n1") == words


def test_an_ill_device_that_somebody_holds_keeps_nobody_from_the_other():
    """The plugin cannot give it, so the healthy one is what the pod gets."""
    state = cluster(
        nodes=[gpus_of("n1", gpu(), gpu()), gpus_of("own", gpu())],
        pods=[pod("here", on="n1", gpu=whole(), holds={0: 1.0}), pod("mover", on="own", gpu=whole(), holds={0: 1.0})],
    )
    assert fits(with_use(state, {("n1", 0): used(memory="30Gi", ailment="XID 79")}), "mover") == {"n1"}


def test_a_device_that_its_scheme_gives_to_nobody_is_not_counted():
    """One is cordoned, one unhealthy."""
    nodes = [gpus_of("n1", vgpu(cordoned=True)), gpus_of("n2", vgpu(health=Health.UNHEALTHY)), gpus_of("n3", vgpu())]
    state = cluster(nodes=nodes, pods=[pod("mover", gpu=virtual(memory="1Gi"))])
    assert possible(state, "mover") == {"n3"}


def test_a_node_that_cannot_be_read_is_no_destination_and_not_refused_for_its_scheduler():
    """The scheme may know what is not known here."""
    fault = DeviceFault("n1", "", Scheme.HAMI, FaultReason.UNREADABLE_NODE, "node n1: its register cannot be read")
    state = cluster(nodes=[node("n1"), gpus_of("n2", vgpu())], pods=[pod("mover", gpu=virtual(memory="1Gi"))], gpu_faults=[fault])
    assert possible(state, "mover") == {"n1", "n2"}
    assert fits(state, "mover", policy=BY_REQUEST) == {"n2"}
    assert why(state, "mover", "n1") == "what n1 tells of its devices cannot be read or does not go together"


def test_an_ask_that_cannot_be_read_fits_nowhere():
    """How much it asks for is not known."""
    state = cluster(nodes=[gpus_of("n1", gpu())], pods=[pod("odd", gpu=unknown_ask())])
    assert fits(state, "odd", policy=BY_REQUEST) == set()
    assert why(state, "odd", "n1") == "no device can be promised to it: how many devices it asks for is not known"


def test_bookings_and_releases_are_taken_back_in_reverse():
    """A book after undo answers as before, and one that was copied does not hear of it."""
    state = with_use(
        cluster(
            nodes=[gpus_of("n1", gpu()), gpus_of("own", gpu())],
            pods=[pod("a", on="own", gpu=whole(), holds={0: 1.0}), pod("b", gpu=whole())],
        ),
        {("own", 0): used(memory="30Gi")},
    )
    book = DeviceBook(state)
    mark = book.mark()
    book.book(row(state, "a"), state.node_index["n1"])
    copied = book.copy()
    assert fits(state, "b", book=book) == set()
    book.release(row(state, "a"))
    assert fits(state, "b", book=book) == {"own"}
    book.undo(mark)
    assert fits(state, "b", book=book) == {"n1"}
    assert fits(state, "b", book=copied) == set()


def test_shares_by_memory_alone_are_told_by_the_device_that_they_are_of():
    """The same half is 8 GiB of one device and 20 GiB of another."""
    state = cluster(nodes=[gpus_of("small", gpu("16Gi")), gpus_of("big", gpu())], pods=[pod("half", gpu=fraction(0.5))])
    state = with_use(state, {("small", 0): used(memory="9Gi"), ("big", 0): used(memory="9Gi")})
    assert fits(state, "half") == {"big"}


def test_memory_of_volcano_is_of_one_device_too():
    """10 GiB are left on two devices together, and on none alone."""
    device = gpu("16Gi", handed_out="16Gi", scheme=Scheme.VOLCANO_GPUSHARE, replicas=UNKNOWN)
    state = cluster(
        nodes=[gpus_of("n1", device, device)],
        pods=[
            *(
                pod(f"p{i}", on="n1", gpu=memory_of("11Gi", scheme=Scheme.VOLCANO_GPUSHARE), holds={i: part(memory="11Gi")})
                for i in range(2)
            ),
            pod("mover", gpu=memory_of("10Gi", scheme=Scheme.VOLCANO_GPUSHARE)),
        ],
    )
    assert possible(state, "mover") == set()


def test_what_booked_pods_use_is_not_free_for_the_next_wherever_they_get_their_device():
    """Two pods ask for 1 GiB and use 6 each; either of two devices has 10 GiB free, and both pods may get the same one."""
    two = [vgpu("16Gi", handed_out="16Gi") for _ in range(2)]
    pods = [pod(name, on="own", gpu=virtual(memory="1Gi"), holds={0: part(memory="1Gi")}) for name in ("a", "b")]
    state = cluster(nodes=[gpus_of("n1", *two), gpus_of("own", two[0])], pods=pods)
    at = {("n1", 0): used(memory="6Gi"), ("n1", 1): used(memory="6Gi")}
    state = with_use(state, at, {name: taken(memory="6Gi") for name in ("a", "b")})
    book = DeviceBook(state)
    assert "n1" in fits(state, "b", book=book)
    book.book(row(state, "a"), 0)
    assert "n1" not in fits(state, "b", book=book)


def test_a_part_that_a_pod_has_of_some_device_may_be_of_any():
    """Nobody knows which of two devices 30 GiB of 40 are of, so 12 GiB more are sure of none."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu())],
        pods=[pod("somewhere", on="n1", gpu=virtual(memory="30Gi")), pod("mover", gpu=virtual(memory="12Gi"))],
    )
    assert possible(state, "mover") == {"n1"}
    assert fits(state, "mover", policy=BY_REQUEST) == set()
    assert why(state, "mover", "n1", policy=BY_REQUEST) == (
        "which devices of n1 are free is not known, with pods on it that are on some of its devices or will be"
    )


def test_bookings_of_parts_may_begin_devices_that_a_whole_one_would_need():
    """Two devices are free; a part that is booked will be on one of them, so two whole ones are not sure any more."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu())], pods=[pod("part", gpu=virtual(memory="1Gi")), pod("two", gpu=virtual(2, cores=1.0))]
    )
    book = DeviceBook(state, BY_REQUEST)
    assert fits(state, "two", book=book) == {"n1"}
    book.book(row(state, "part"), 0)
    assert fits(state, "two", book=book) == set()


def test_bookings_of_whole_devices_leave_parts_those_that_are_begun():
    """Two devices, one of them begun; a whole one is booked, so a part is sure of the begun one alone, where 12 GiB are left."""
    state = cluster(
        nodes=[gpus_of("n1", vgpu(), vgpu())],
        pods=[
            pod("first", on="n1", gpu=virtual(memory="28Gi"), holds={0: part(memory="28Gi")}),
            pod("all", gpu=virtual(cores=1.0)),
            pod("small", gpu=virtual(memory="10Gi")),
            pod("large", gpu=virtual(memory="20Gi")),
        ],
    )
    book = DeviceBook(state, BY_REQUEST)
    book.book(row(state, "all"), 0)
    assert fits(state, "small", book=book) == {"n1"}
    assert fits(state, "large", book=book) == set()


def test_a_sharer_does_not_join_a_device_that_is_busy_already():
    """The node has one busy device and one idle one, and gpushare takes the fuller: 90 % and 40 % are more than all of its time."""
    device = gpu("16Gi", handed_out="16Gi", model="T4", scheme=Scheme.GPUSHARE, replicas=UNKNOWN)
    state = cluster(
        nodes=[gpus_of("n1", device, device), gpus_of("own", device)],
        pods=[
            pod("here", on="n1", gpu=memory_of("4Gi"), holds={0: part(memory="4Gi")}),
            pod("mover", on="own", gpu=memory_of("2Gi"), holds={0: part(memory="2Gi")}),
        ],
    )
    own = {"mover": taken(busy=0.4, memory="2Gi")}
    crowded = with_use(state, {("n1", 0): used(busy=0.9, memory="4Gi"), ("n1", 1): used(busy=0.0, memory=0)}, own)
    assert why(crowded, "mover", "n1") == (
        "it could be given device 0 (T4), which is busy 90 % of the time, and the pod keeps one busy for 40 %"
    )
    calm = with_use(state, {("n1", 0): used(busy=0.5, memory="4Gi"), ("n1", 1): used(busy=0.9, memory=0)}, own)
    assert "n1" in fits(calm, "mover")
