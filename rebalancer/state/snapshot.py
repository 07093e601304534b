"""Snapshots: one state as the bytes of one file, and back, exactly.

The file is gzipped JSON (``apiVersion rebalancer.dev/v1alpha1``, ``kind Snapshot``), so that whoever is asked to send one can read it
first; plain JSON is read as well. What comes back equals what went in, NaN included, so a decision can be replayed from it to the letter.
Reading trusts nothing: whatever is not a whole snapshot of this version is a `SnapshotError`.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import fields

import msgspec
import numpy as np

from rebalancer.errors import SnapshotError
from rebalancer.state.anonymity import anonymize
from rebalancer.state.cluster import ClusterState
from rebalancer.state.device_use import DeviceUse, HeldUse
from rebalancer.state.devices import DevicePods, Devices
from rebalancer.state.freezing import freeze
from rebalancer.state.snapshot_codec import Malformed, codec
from rebalancer.state.tables import Nodes, Pods, Workloads

__all__ = ["API_VERSION", "KIND", "anonymize", "dump_snapshot", "load_snapshot"]

API_VERSION = "rebalancer.dev/v1alpha1"
KIND = "Snapshot"
_GZIP_MAGIC = b"\x1f\x8b"
_LEVEL = 5
_AGAIN = "take a new one with `rebalancer snapshot`"


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    state: msgspec.Raw = msgspec.Raw(b"null")


def dump_snapshot(state: ClusterState) -> bytes:
    """The bytes of a snapshot file. Equal states give equal bytes."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "state": codec(ClusterState).encode(state)}
    return gzip.compress(msgspec.json.encode(document), compresslevel=_LEVEL, mtime=0)


def load_snapshot(data: bytes) -> ClusterState:
    """The state in the bytes of a snapshot file. Raises SnapshotError, one sentence, for anything else."""
    envelope = _open(data)
    if envelope.kind != KIND:
        raise SnapshotError(
            f"it is a {envelope.kind or 'nameless document'}, not a {KIND}", remedy="give a file that `rebalancer snapshot` wrote"
        )
    if envelope.api_version != API_VERSION:
        raise SnapshotError(f"it is a snapshot of version {envelope.api_version}, this program reads {API_VERSION}", remedy=_AGAIN)
    try:
        state: ClusterState = codec(ClusterState).decode(msgspec.json.decode(envelope.state))
    except (Malformed, msgspec.DecodeError) as error:
        raise SnapshotError(f"it is damaged: {error}", remedy=_AGAIN) from error
    _check(state)
    return freeze(state)


def _open(data: bytes) -> _Envelope:
    try:
        text = gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except (OSError, EOFError, zlib.error) as error:
        raise SnapshotError(f"it is damaged or was cut short after {len(data)} bytes", remedy=f"copy it again, or {_AGAIN}") from error
    try:
        return msgspec.json.decode(text, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SnapshotError("it is no snapshot: neither gzipped JSON nor JSON with apiVersion and kind", remedy=_AGAIN) from error


def _check(state: ClusterState) -> None:
    """Columns of a table have one length, axes agree, and every row number points at a row."""
    pods = state.pods
    for name, table, rows in (
        ("nodes", state.nodes, len(state.nodes.names)),
        ("pods", pods, len(pods.names)),
        ("workloads", state.workloads, len(state.workloads.refs)),
    ):
        _check_lengths(name, table, rows)
    signals, resources = len(state.signals), len(state.resources)
    for name, matrix, columns in (
        ("nodes.usage", state.nodes.usage, signals),
        ("nodes.capacity", state.nodes.capacity, signals),
        ("nodes.departed", state.nodes.departed, signals),
        ("nodes.sample_age_s", state.nodes.sample_age_s, signals),
        ("nodes.history", state.nodes.history, signals),
        ("nodes.allocatable", state.nodes.allocatable, resources),
        ("pods.measured", pods.measured, signals),
        ("pods.usage", pods.usage, signals),
        ("pods.estimated", pods.estimated, signals),
        ("pods.deviation", pods.deviation, signals),
        ("pods.request", pods.request, resources),
        ("pods.incoming_request", pods.incoming_request, resources),
        ("pods.scored_request", pods.scored_request, 2),
        ("pods.scored_incoming", pods.scored_incoming, 2),
    ):
        if matrix.ndim < 2 or matrix.shape[1] != columns:
            raise SnapshotError(f"it is damaged: {name} has the shape {matrix.shape}, its axis has {columns} entries", remedy=_AGAIN)
    if (day := state.yesterday) is not None and day.load.shape != (len(state.nodes.names), signals, *day.ahead_s.shape):
        raise SnapshotError(f"it is damaged: yesterday.load has the shape {day.load.shape}", remedy=_AGAIN)
    for name, index, count, least in (
        ("pods.node", pods.node, len(state.nodes.names), -1),
        ("pods.workload", pods.workload, len(state.workloads.refs), -1),
        ("pods.controller", pods.controller, len(state.controllers), -1),
        ("pods.tenant", pods.tenant, len(state.tenants), -1),
        ("pods.labels", pods.labels, len(state.label_sets), 0),
        ("pods.constraints", pods.constraints, len(state.constraints), 0),
        ("pods.budgets", np.array([row for rows in pods.budgets for row in rows], dtype=np.int64), len(state.budgets), 0),
    ):
        if index.size and (index.min() < least or index.max() >= count):
            raise SnapshotError(f"it is damaged: {name} points at a row that is not there", remedy=_AGAIN)
    _check_gpus(state)
    _check_gangs(state)


def _check_gpus(state: ClusterState) -> None:
    """The same of the tables of GPUs, and that their rows are in the order by which they are looked up."""
    gpus, nodes, pods = state.gpus, len(state.nodes.names), len(state.pods.names)
    _check_lengths("gpus.devices", gpus.devices, len(gpus.devices))
    _check_lengths("gpus.held", gpus.held, len(gpus.held))
    _check_lengths("gpus.use", gpus.use, len(gpus.devices) if len(gpus.use) else 0)
    _check_lengths("gpus.held_use", gpus.held_use, len(gpus.held) if len(gpus.held_use) else 0)
    if len(gpus.pod) != len(gpus.ask) or len(gpus.addresses) not in (0, len(gpus.pod)):
        raise SnapshotError("it is damaged: gpus.ask or gpus.addresses does not have the rows of gpus.pod", remedy=_AGAIN)
    pairs = gpus.held.device * max(1, pods) + gpus.held.pod
    for name, index, count, least_step in (
        ("gpus.pod", gpus.pod, pods, 1),
        ("gpus.ask", gpus.ask, len(gpus.asks), None),
        ("gpus.unplaced", gpus.unplaced, pods, 1),
        ("gpus.devices.node", gpus.devices.node, nodes, 0),
        ("gpus.held.device", gpus.held.device, len(gpus.devices), 0),
        ("gpus.held.pod", gpus.held.pod, pods, None),
        ("gpus.held", pairs, len(gpus.devices) * max(1, pods), 1),
    ):
        if index.size and (index.min() < 0 or index.max() >= count):
            raise SnapshotError(f"it is damaged: {name} points at a row that is not there", remedy=_AGAIN)
        if least_step is not None and index.size > 1 and np.diff(index).min() < least_step:
            raise SnapshotError(f"it is damaged: {name} is not in order", remedy=_AGAIN)


def _check_gangs(state: ClusterState) -> None:
    gangs = state.gangs
    columns = (gangs.systems, gangs.namespaces, gangs.sources, gangs.elastic, gangs.minimum, gangs.backoff_limit)
    if any(len(column) != len(gangs) for column in columns) or len(gangs.pod) != len(gangs.gang):
        raise SnapshotError("it is damaged: the columns of gangs have different lengths", remedy=_AGAIN)
    for name, index, count in (("gangs.pod", gangs.pod, len(state.pods.names)), ("gangs.gang", gangs.gang, len(gangs))):
        if index.size and (index.min() < 0 or index.max() >= count):
            raise SnapshotError(f"it is damaged: {name} points at a row that is not there", remedy=_AGAIN)
    if gangs.pod.size > 1 and np.diff(gangs.pod).min() < 1:
        raise SnapshotError("it is damaged: gangs.pod is not in order", remedy=_AGAIN)


def _check_lengths(name: str, table: Nodes | Pods | Workloads | Devices | DevicePods | DeviceUse | HeldUse, rows: int) -> None:
    for column in fields(table):
        value = getattr(table, column.name)
        if isinstance(value, np.ndarray):
            length = value.shape[0] if value.ndim else -1
        elif isinstance(value, tuple):
            length = len(value)
        else:
            continue
        if length != rows:
            raise SnapshotError(f"it is damaged: {name}.{column.name} does not have the {rows} rows of its table", remedy=_AGAIN)
