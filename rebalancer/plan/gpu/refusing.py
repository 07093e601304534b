"""Why a node is none for a pod that asks for devices: a clause with the numbers of the device that decides it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.gpu.judging import Use
from rebalancer.plan.gpu.needs import BY_BEST_FIT, Need
from rebalancer.plan.gpu.offers import Offer
from rebalancer.state.arrays import BoolArray
from rebalancer.units import format_bytes, format_percent


def why_impossible(book: DeviceBook, pod: int, node: int) -> str:
    """Why its scheme would find no device for it there; empty where it would."""
    nodes = len(book.state.nodes.names)
    for offer in book.offered(pod):
        own = offer.on(node)
        if offer.need.by_plugin or own.count_on(nodes, book.judge.would_give(own))[node] >= offer.need.devices:
            continue
        return _none(own.need, book, node) if not len(own.rows) else _scarce(own, book)
    return ""


def why_not(book: DeviceBook, pod: int, node: int) -> str:
    """Why the node does not fit the pod, be it possible or not; empty where it does."""
    if book.fits(pod, np.array([node]))[0]:
        return ""
    name, obstacle = book.state.nodes.names[node], book.needs_of(pod).obstacle
    if obstacle:
        return f"no device can be promised to it: {obstacle}"
    if book.table.faulty[node]:
        return f"what {name} tells of its devices cannot be read or does not go together"
    impossible = why_impossible(book, pod, node)
    if impossible:
        return impossible
    use = book.use_of(pod)
    clauses = (clause for offer in book.offered(pod) for clause in _clauses(offer.on(node), book, pod, node, use))
    unknown = f"which devices of {name} are free is not known, with pods on it that are on some of its devices or will be"
    return next(clauses, unknown)


def _clauses(own: Offer, book: DeviceBook, pod: int, node: int, use: Use) -> Iterator[str]:
    """In the order in which they matter."""
    judge, need = book.judge, own.need
    if not len(own.rows):
        yield _none(need, book, node)
        return
    over = judge.over_full(own)
    if over.any():
        row = int(own.rows[np.argmax(over)])
        yield (
            f"of device {_device(book, row)}, {format_bytes(float(book.columns.memory[row]))} are given away, "
            f"and it has {format_bytes(float(book.table.total[row]))}"
        )
    could = judge.could_give(own)
    bad = could & ~judge.good(own, use)
    if need.scheme in BY_BEST_FIT and (next_one := book.next_given(own) & bad).any():
        bad = next_one
    if bad.any():
        yield from _bad(own, book, pod, use, bad, all_bad=bool((bad == could).all()))
    if need.alone:
        free, hidden = (
            int(could.sum()),
            int(sum(column[node] for column in (book.columns.hidden_devices, book.columns.taken, book.columns.begun))),
        )
        if free - hidden < need.devices:
            rest = f", less {hidden} that others are on or will be" if hidden else ""
            yield f"{free} of {len(own.rows)} devices are free{rest}, and it asks for {need.devices}"


def _bad(own: Offer, book: DeviceBook, pod: int, use: Use, bad: BoolArray, *, all_bad: bool) -> Iterator[str]:
    table, use_table = book.table, book.table.gpus.use
    first = int(np.argmax(bad))
    row = int(own.rows[first])
    device = _device(book, row)
    if not table.devices.trusted[row]:
        yield f"what is told of device {device} does not go together"
    elif table.doubted[row]:
        yield f"what is measured of device {device} is not believed: {use_table.doubts[row]}"
    elif table.ill[row]:
        yield f"nothing is put on device {device}: {use_table.ailments[row]}"
    elif not own.model[first]:
        yield f"it could be given device {device}, and {_wanted_model(own.need, book, pod)}"
    elif not own.right[first]:
        kind = table.kinds[int(table.kind[row])]
        yield f"it could be given device {device} by {kind.scheme.value}, which is not what it asks for by {own.need.scheme.value}"
    elif own.need.alone:
        yield _not_empty(book, row, use)
    else:
        yield _no_room(own, book, use, bad, all_bad=all_bad)


def _not_empty(book: DeviceBook, row: int, use: Use) -> str:
    device, used, total = _device(book, row), float(book.columns.used[row]), float(book.table.total[row])
    if used != used:
        return f"how much of the memory of device {device} is used is not known"
    if used > book.table.left[row]:
        if book.columns.hidden_devices[int(book.table.devices.node[row])]:
            return f"nobody is known to be on device {device}, and {format_bytes(used)} of its memory are in use"
        return f"device {device} has nobody on it and {format_bytes(used)} of its memory in use"
    if total != total or use.memory_bytes != use.memory_bytes:
        return f"how much memory device {device} has, or how much of it the pod would use, is not known"
    return f"device {device} has {format_bytes(total)} of memory, and the pod uses {format_bytes(use.memory_bytes)}"


def _no_room(own: Offer, book: DeviceBook, use: Use, bad: BoolArray, *, all_bad: bool) -> str:
    room, wanted = book.judge.room(own), book.judge.wanted(own, use)
    unknown = bad & np.isnan(room - wanted)
    if unknown.any():
        at = int(np.argmax(unknown))
        what = "how much of its memory the pod would use" if np.isnan(wanted[at]) else "how much of its memory is free"
        return f"{what} on device {_device(book, int(own.rows[at]))} is not known"
    lacking = bad & (room < wanted)
    if not lacking.any():
        at = int(np.argmax(bad & book.judge.too_busy(own, use)))
        row = int(own.rows[at])
        return (
            f"it could be given device {_device(book, row)}, which is busy {format_percent(float(book.table.busy[row]))} "
            f"of the time, and the pod keeps one busy for {format_percent(use.busy)}"
        )
    bad = lacking
    at = int(np.argmax(np.where(bad, room, -np.inf))) if all_bad else int(np.argmin(np.where(bad, room, np.inf)))
    needs, device, has = format_bytes(float(wanted[at])), _device(book, int(own.rows[at])), format_bytes(max(0.0, float(room[at])))
    if all_bad:
        return f"no device has {needs} free: the best, {device}, has {has} by measurement"
    return f"it needs {needs} and could be given device {device}, which has {has} free by measurement"


def _scarce(own: Offer, book: DeviceBook) -> str:
    """By what was asked for, likely bookings included."""
    need, judge, columns = own.need, book.judge, book.columns
    would = judge.would_give(own)
    if need.alone:
        return f"{int(would.sum())} of {len(own.rows)} devices have nobody on them, and it asks for {need.devices}"
    several = need.devices > 1
    count, best = (f"{int(would.sum())} of {len(own.rows)} devices have", "the next") if several else ("no device has", "the best")
    free, wanted = judge.free_by_ask(own), own.largest
    at = int(np.argmax(np.where(would | np.isnan(free), -np.inf, free)))
    if wanted[at] > free[at]:
        has = format_bytes(max(0.0, float(free[at])))
        return f"{count} {format_bytes(float(wanted[at]))} free: {best}, {_device(book, int(own.rows[at]))}, has {has}"
    compute = 1 - columns.compute[own.rows] - columns.likely_compute[own.rows]
    at = int(np.argmax(np.where(would, -np.inf, compute)))
    share, has = format_percent(need.largest[0]), format_percent(max(0.0, float(compute[at])))
    return f"{count} {share} of compute free beside the memory: {best}, {_device(book, int(own.rows[at]))}, has {has} of compute"


def _none(need: Need, book: DeviceBook, node: int) -> str:
    profile = f" of profile {need.mig_profile}" if need.mig_profile else ""
    return f"{book.state.nodes.names[node]} has no {need.family.value} device{profile} that {need.scheme.value} gives to pods"


def _wanted_model(need: Need, book: DeviceBook, pod: int) -> str:
    wanted = (*need.model.models, *need.model.like)
    if wanted:
        return f"it asks for {' or '.join(wanted)}"
    if need.model.unlike:
        return f"it asks for none of {' and '.join(need.model.unlike)}"
    models = sorted(book.table.models_of(pod))
    on = " and ".join(model or "a model that is not known" for model in models)
    return f"it runs on {on} now"


def _device(book: DeviceBook, row: int) -> str:
    """``0 (Tesla-T4)``."""
    devices = book.table.devices
    return f"{devices.name(row)} ({devices.models[row]})" if devices.models[row] else devices.name(row)
