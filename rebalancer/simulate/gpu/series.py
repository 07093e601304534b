"""What dcgm-exporter says of the devices: the shape of the releases that read values of processes, scraped with honorLabels.

A device that is handed out whole has one series, with the labels of its pod while there is one. Of a shared device, utilisation and
memory in use have a series of the device without a pod beside one of each sharer with its own value; all other metrics are copied to
every sharer. Pods of gpushare are found by their processes too, as no device plugin knows which device they are really on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rebalancer.simulate.gpu.nodes import RESERVED_MIB
from rebalancer.simulate.gpu.use import DeviceUse, GpuUse
from rebalancer.simulate.history import Samples
from rebalancer.simulate.load import Floats, Tenures
from rebalancer.simulate.promql.frames import Block
from rebalancer.simulate.promql.labels import Bools, Labels
from rebalancer.simulate.series_labels import SeriesOptions, node_address
from rebalancer.simulate.world import World

SOURCE = "dcgm"
_PORT = 9400
_ENGINE_SHARE = 0.92
"""Of the time with any kernel in which the engine is seen at work."""


@dataclass(frozen=True, slots=True)
class _Family:
    """``device``: (devices,) of a moment. ``pair``: (pairs,) of it where the exporter reads processes; else sharers get copies."""

    device: Callable[[GpuUse], Floats]
    pair: Callable[[GpuUse], Floats] | None = None


class DeviceSeries:
    """Blocks of the exporter's metrics, by name."""

    def __init__(self, world: World, use: DeviceUse) -> None:
        self._world, self._use = world, use
        self._moments: dict[float, GpuUse] = {}
        self._edition: tuple[int, int] = (-1, -1)
        self._families = {
            "DCGM_FI_DEV_GPU_UTIL": _Family(lambda use: np.round(use.busy * 100), lambda use: np.round(use.pair_busy * 100)),
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _Family(lambda use: use.busy * _ENGINE_SHARE),
            "DCGM_FI_DEV_FB_USED": _Family(lambda use: np.round(use.used_mib), lambda use: np.round(use.pair_mib)),
            "DCGM_FI_DEV_FB_FREE": _Family(lambda use: self._usable() - np.round(use.used_mib)),
            "DCGM_FI_DEV_FB_RESERVED": _Family(lambda use: np.full(len(use.busy), float(RESERVED_MIB))),
            "DCGM_FI_DEV_GPU_TEMP": _Family(lambda use: np.round(34 + 40 * use.busy)),
            "DCGM_FI_DEV_XID_ERRORS": _Family(lambda use: np.zeros(len(use.busy))),
        }

    @property
    def names(self) -> list[str]:
        """Nothing in a cluster without GPUs."""
        return list(self._families) if self._use.devices else []

    def _usable(self) -> Floats:
        return np.array([device.usable_mib for device in self._use.devices], dtype=np.float64)

    def blocks(self, name: str, samples: Samples, options: SeriesOptions) -> list[tuple[Block, list[str]]]:
        """Of one metric, each with the node of every row."""
        family, moments = self._families[name], self._at(samples)
        pairs, shared = self._use.pairs(), self._shared()
        shape = (len(shared), len(moments))
        there = np.array([use.there for use in moments], dtype=bool).reshape(len(moments), -1).T
        held = np.zeros(shape, dtype=bool)
        np.logical_or.at(held, pairs.device, there)
        value = np.array([family.device(use) for use in moments]).reshape(len(moments), -1).T
        own_present = ~held | (shared[:, None] & (family.pair is not None))
        pair_value = value[pairs.device]
        if family.pair is not None:
            by_process = np.array([family.pair(use) for use in moments]).reshape(len(moments), -1).T
            pair_value = np.where(shared[pairs.device][:, None], by_process, pair_value)
        labels = self._device_labels(options)
        of_pairs = self._pair_labels(labels, samples.tenures)
        nodes = [device.node for device in self._use.devices]
        return [
            (_block(Labels.from_dicts(labels), samples.times, value, own_present), nodes),
            (_block(Labels.from_dicts(of_pairs), samples.times, pair_value, there), [nodes[device] for device in pairs.device]),
        ]

    def _at(self, samples: Samples) -> list[GpuUse]:
        edition = self._use.edition
        if edition != self._edition:
            self._moments, self._edition = {}, edition
        for moment in samples.times.tolist():
            if moment not in self._moments:
                self._moments[moment] = self._use.at(moment)
        return [self._moments[moment] for moment in samples.times.tolist()]

    def _shared(self) -> Bools:
        return np.array([device.shared for device in self._use.devices], dtype=bool)

    # ---- labels -------------------------------------------------------------------------------------------------------

    def _device_labels(self, options: SeriesOptions) -> list[dict[str, str]]:
        found = []
        for device in self._use.devices:
            node = self._world.find("nodes", device.node)
            address = node_address(node) if node is not None else ""
            labels = {
                "gpu": str(device.index),
                "UUID": device.uuid,
                "device": f"nvidia{device.index}",
                "modelName": device.product.replace("-", " ", 1),
                "Hostname": device.node,
                "instance": f"{address}:{_PORT}",
                "job": "dcgm-exporter",
            }
            found.append({**labels, options.node_label: device.node} if options.node_label else labels)
        return found

    def _pair_labels(self, devices: list[dict[str, str]], tenures: Tenures) -> list[dict[str, str]]:
        pairs, found = self._use.pairs(), []
        number: dict[int, int] = {}
        for tenure, device in zip(pairs.tenure.tolist(), pairs.device.tolist(), strict=True):
            pod = {"namespace": tenures.namespaces[tenure], "pod": tenures.names[tenure], "container": tenures.containers[tenure]}
            if self._use.devices[device].shared:
                pod |= {"vgpu": str(number.get(device, 0)), "pod_uid": tenures.uids[tenure]}
                number[device] = number.get(device, 0) + 1
            found.append({**devices[device], **pod})
        return found


def _block(labels: Labels, times: Floats, values: Floats, present: Bools) -> Block:
    return Block(labels, times, values, present, np.zeros(labels.size, dtype=bool))
