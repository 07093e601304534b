"""How much memory a device has: what is told of it itself, and never what a node says of all of its devices alike."""

from __future__ import annotations

import numpy as np

from rebalancer.gpu.meters.catalogue import Quantity
from rebalancer.gpu.meters.devices import Beliefs, DeviceReadings, device_use
from tests.support.builder import cluster, node
from tests.support.gpus import gpu

GI = 1024.0**3


def totals(*, exact: bool, **told: float) -> list[float]:
    """Of a device that its node calls 24 GiB, by quantities of an exporter in GiB."""
    devices = cluster(nodes=[node("n1", gpus=[gpu("24Gi", exact=exact)])]).gpus.devices
    nothing = np.full(1, np.nan)
    now = {Quantity[name]: np.array([value * GI]) for name, value in told.items()}
    readings = DeviceReadings(now=now, age_s=np.zeros(1), most_busy=nothing, most_engine=nothing)
    return device_use(devices, readings, Beliefs(max_age_s=60, idle_below=0.05)).total_bytes.tolist()


def test_g13_what_a_node_says_of_all_its_devices_is_no_total_of_one() -> None:
    """16 and 32 GiB are 24 each to whoever divides; only what is used is measured, so what the device has is not known."""
    assert np.isnan(totals(exact=False, USED=3))


def test_g13_what_an_exporter_tells_of_the_device_is_its_total() -> None:
    """Used and free are measured of the device itself."""
    assert totals(exact=False, USED=3, FREE=13) == [16 * GI]


def test_what_is_told_of_the_very_device_stands_where_no_exporter_says_it() -> None:
    """Its node has one device, or tells each."""
    assert totals(exact=True, USED=3) == [24 * GI]
