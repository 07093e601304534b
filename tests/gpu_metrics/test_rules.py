"""Rules of what readings come to: no device is above one, nothing unknown becomes zero, and the order of series says nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.gpu.exporters import DeviceReading, GpuSamples
from rebalancer.collect.gpu.measuring import PodPlaces, measured_gpus
from rebalancer.gpu.meters.catalogue import METERS, Quantity
from rebalancer.gpu.meters.devices import Beliefs
from rebalancer.gpu.meters.labels import NO_POD, DeviceName
from rebalancer.state.device_use import DeviceUse, HeldUse
from tests.support.gpus import PodGpus, gpu, gpu_tables, replica

BELIEFS = Beliefs(max_age_s=60, idle_below=0.05)
SHARERS = ("one", "two", "three")
UUIDS = ("GPU-0", "GPU-1")
METER = next(meter for meter in METERS if meter.quantity is Quantity.BUSY)
PLACES = PodPlaces({row: ("ml", name) for row, name in enumerate(SHARERS)}, dict.fromkeys(range(len(SHARERS)), 0))
readings = st.builds(
    lambda uuid, value, pod: DeviceReading(DeviceName(uuid), "n1", value, ("ml", pod) if pod else NO_POD, virtual=bool(pod)),
    st.sampled_from(UUIDS),
    st.one_of(st.just(float("nan")), st.floats(0, 1)),
    st.sampled_from(("", *SHARERS)),
)


def came_to(series: list[DeviceReading]) -> tuple[DeviceUse, HeldUse]:
    """Of two devices, the first shared by three pods."""
    pods = [PodGpus(0, (replica(4),), {0: 0.25}, active=True) for _ in SHARERS]
    gpus = gpu_tables([[gpu("16Gi", uuid=uuid) for uuid in UUIDS]], pods)
    ages = [DeviceReading(DeviceName(uuid), "n1", 1.0) for uuid in UUIDS]
    samples = GpuSamples(meters=(METER,), readings={METER.name: series}, ages=ages)
    found = measured_gpus(gpus, samples, nodes=["n1"], pods=PLACES, beliefs=BELIEFS)
    return found.use, found.held_use


@given(st.lists(readings, max_size=12))
def test_a_device_is_as_busy_as_some_series_of_it_and_never_their_sum(series: list[DeviceReading]) -> None:
    """The value of a device is one that was told."""
    use, _ = came_to(series)
    for row, uuid in enumerate(UUIDS):
        told = [reading.value for reading in series if reading.device.uuid == uuid]
        assert np.isnan(use.busy[row]) or use.busy[row] in told


@given(st.lists(readings, max_size=12))
def test_what_no_series_tells_is_unknown_and_not_zero(series: list[DeviceReading]) -> None:
    """Of devices, and of the pods on them."""
    use, held = came_to([reading for reading in series if reading.device.uuid != UUIDS[0]])
    assert np.isnan(use.busy[0])
    assert np.isnan(held.busy).all()


@given(st.lists(readings, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_series_changes_nothing(series: list[DeviceReading], random: object) -> None:
    """Prometheus promises none."""
    mixed = list(series)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    (use, held), (again, held_again) = came_to(series), came_to(mixed)
    assert np.array_equal(use.busy, again.busy, equal_nan=True)
    assert np.array_equal(held.busy, held_again.busy, equal_nan=True)
    assert np.array_equal(held.estimated, held_again.estimated)
