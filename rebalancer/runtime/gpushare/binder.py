"""Binding pods to devices, so that no device is ever promised more than it has, whoever else binds at the same time.

Within a process one pod at a time is bound to a node; between processes, registers keep binders apart (`registers`). In the common case two
requests bind a pod: the write of the register, and the binding, which carries the annotations with it. Room is refused only after the
node has been read anew: what is known may be older than the last pod that left.

A binding of which no answer came is looked up. If the pod tells nothing yet, the entry in the register stays until it does.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.binding import Binding, BindingOutcome
from rebalancer.kube.retries import Backoff
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.facts import GpuPod, gpu_pod
from rebalancer.runtime.gpushare.registers import NODE_KEY, Registers, ShareApi
from rebalancer.steer.gpushare.allocations import bind_annotations
from rebalancer.steer.gpushare.binding import BindArgs
from rebalancer.steer.gpushare.choice import choose_device
from rebalancer.steer.gpushare.device_load import Ceilings, DeviceLoads, NothingMeasured
from rebalancer.steer.gpushare.filtering import NO_ROOM, not_shared
from rebalancer.steer.gpushare.register import Entry

BIND_S = 4.0
"""Longest time for one binding; kube-scheduler waits for 5 s unless it is told otherwise."""
SETTLE_S = 0.8
"""To look at a pod of whose binding no answer came, beside that."""
UNHEARD_S = 5.0
"""After which it is asked what became of a binding."""
RACE = Backoff(first_s=0.01, factor=2.0, ceiling_s=0.2, attempts=24)


class BindEnd(Enum):
    """What became of a request; a closed set, fit for a label."""

    BOUND = "bound"
    NO_ROOM = "no-room"
    IMPOSSIBLE = "impossible"
    """The pod or the node can never be served."""
    GONE = "gone"
    """The pod is gone, leaving, or bound elsewhere."""
    FAILED = "failed"
    OPEN = "open"
    """No answer came, and the pod does not tell yet."""
    UNREADABLE = "unreadable"
    """It was no request of kube-scheduler."""


@dataclass(frozen=True, slots=True)
class BindResult:
    """``error``: one sentence for everything but BOUND. ``device``: of the pod, where it was chosen here."""

    end: BindEnd
    error: str = ""
    device: int | None = None


class _Done(Exception):
    """Ends a binding wherever it is."""

    def __init__(self, end: BindEnd, error: str = "", device: int | None = None) -> None:
        super().__init__(error)
        self.result = BindResult(end, error, device)


@dataclass(slots=True)
class _Request:
    """One request while it is worked on. ``fresh``: read the pod itself. ``synced``: the node was read for this request."""

    args: BindArgs
    deadline: Deadline
    fresh: bool = False
    synced: bool = False

    def done(self, end: BindEnd, why: str) -> _Done:
        return _Done(end, f"{self.args.pod} is not bound to node {self.args.node}: {why}")


class Binder:
    """Threads may share it."""

    def __init__(
        self,
        api: ShareApi,
        book: ShareBook,
        *,
        now: Callable[[], float],
        loads: DeviceLoads | None = None,
        ceilings: Ceilings | None = None,
        bind_s: float = BIND_S,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        race: Backoff = RACE,
    ) -> None:
        """``now``: Unix seconds. ``race``: tries and pauses while others write at the same time."""
        self._chance, self._race = chance, race
        self._api, self._book, self._now, self._clock = api, book, now, clock
        self._loads, self._ceilings = loads or NothingMeasured(), ceilings or Ceilings()
        self._bind_s = bind_s
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._registers = Registers(api, book, now=now)

    # ---- the verb -----------------------------------------------------------------------------------------------------

    def bind(self, args: BindArgs) -> BindResult:
        """Bind the pod, to a device if it asks for one. Raises nothing that an API server can cause."""
        request = _Request(args, Deadline.after(self._bind_s, clock=self._clock))
        try:
            with self._held(args.node, timeout_s=self._bind_s) as held:
                if not held:
                    raise request.done(BindEnd.FAILED, "other bindings to that node take too long")
                for attempt in range(1, self._race.attempts + 1):
                    self._attempt(request)
                    request.fresh = True
                    if not request.deadline.wait(self._race.delay(attempt, chance=self._chance())):
                        break
                raise request.done(BindEnd.FAILED, "others bind to that node, or change that pod, at the same time, again and again")
        except _Done as done:
            return done.result
        except KubernetesError as error:
            return request.done(BindEnd.FAILED, str(error)).result

    def _attempt(self, request: _Request) -> None:
        """Raises _Done when it is over. Returns when something has changed meanwhile."""
        args = request.args
        pod = self._pod(request)
        if not pod.ask.asks:
            self._bind_plainly(request, pod)
            return
        if pod.ask.obstacle:
            raise request.done(BindEnd.IMPOSSIBLE, f"it {pod.ask.obstacle}")
        if self._book.node(args.node) is None:
            raise request.done(BindEnd.IMPOSSIBLE, not_shared(args.node))
        if not self._registers.knows(args.node):
            self._registers.sync(args.node, request.deadline)
            request.synced = True
        entry = self._entry(request, pod)
        if entry is not None and self._registers.write(args.node, entry, request.deadline):
            self._send(request, entry)

    def _pod(self, request: _Request) -> GpuPod:
        """The pod, as a candidate for a binding."""
        args = request.args
        known = None if request.fresh else self._book.pod(args.namespace, args.name)
        if known is None or known.uid != args.uid or known.node or known.leaving:
            wire = self._api.read_pod(namespace=args.namespace, name=args.name, deadline=request.deadline)
            known = None if wire is None else gpu_pod(wire)
            if known is not None:
                self._book.take_pod(known)
        if known is None or known.uid != args.uid:
            raise request.done(BindEnd.GONE, "it is gone")
        if known.node == args.node:
            raise _Done(BindEnd.BOUND)
        if known.node:
            raise request.done(BindEnd.GONE, f"it is bound to node {known.node} already")
        if known.leaving:
            raise request.done(BindEnd.GONE, "it is being deleted")
        return known

    def _entry(self, request: _Request, pod: GpuPod) -> Entry | None:
        """What to write down for this binding; None when something has to be read first."""
        args = request.args
        mine = self._book.entry(args.node, args.uid)
        if mine is not None and not request.fresh:
            return None  # an earlier binding of the same pod may still be on its way: only the pod itself tells
        if mine is not None and mine.version == pod.version:
            return replace(mine, at=self._now(), repeated=True)
        ledger = self._book.ledger(args.node, without=args.uid)
        if ledger is None:
            return None
        devices = ledger.devices
        loads = self._loads.of(args.node, count=devices.count, each_bytes=devices.each_bytes, now=self._now())
        device = choose_device(ledger, pod.ask.memory, loads=loads, ceilings=self._ceilings)
        if device is not None:
            return Entry(pod.uid, pod.namespace, pod.name, pod.version, device, pod.ask.memory, self._now())
        if request.synced:
            raise request.done(BindEnd.NO_ROOM, NO_ROOM)
        self._registers.forget(args.node)  # what is known may be too old to refuse by
        return None

    # ---- the binding itself -------------------------------------------------------------------------------------------

    def _send(self, request: _Request, entry: Entry) -> None:
        """Send the binding of an entry that is written down. Raises _Done; returns when the pod has changed meanwhile."""
        node = self._book.node(request.args.node)
        each = node.devices.each if node is not None else entry.memory
        annotations = bind_annotations(device=entry.device, of_pod=entry.memory, of_device=each, at=self._now())
        answer = self._post(request, entry.version, annotations)
        if answer.outcome is BindingOutcome.BOUND:
            raise _Done(BindEnd.BOUND, device=entry.device)
        if answer.outcome is BindingOutcome.GONE:
            self._book.end(request.args.node, entry.uid)
            raise request.done(BindEnd.GONE, "it is gone")
        if answer.outcome is BindingOutcome.REFUSED:
            self._registers.take_back(request.args.node, entry, request.deadline)
            raise request.done(BindEnd.FAILED, answer.message)
        if self._has_changed(request, entry.version, answer, device=entry.device):
            return
        if answer.outcome is BindingOutcome.CONFLICT:
            self._registers.take_back(request.args.node, entry, request.deadline)
        raise request.done(BindEnd.OPEN if answer.outcome is BindingOutcome.OPEN else BindEnd.FAILED, answer.message)

    def _bind_plainly(self, request: _Request, pod: GpuPod) -> None:
        """A pod that names the resource and asks for none of it needs a node alone."""
        answer = self._post(request, pod.version, {})
        if answer.outcome is BindingOutcome.BOUND:
            raise _Done(BindEnd.BOUND)
        unclear = answer.outcome in (BindingOutcome.CONFLICT, BindingOutcome.OPEN)
        if not unclear or not self._has_changed(request, pod.version, answer, device=None):
            raise request.done(BindEnd.OPEN if answer.outcome is BindingOutcome.OPEN else BindEnd.FAILED, answer.message)

    def _post(self, request: _Request, version: str, annotations: Mapping[str, str]) -> Binding:
        args = request.args
        return self._api.bind(
            namespace=args.namespace,
            name=args.name,
            uid=args.uid,
            version=version,
            node=args.node,
            annotations=annotations,
            deadline=request.deadline,
        )

    def _has_changed(self, request: _Request, version: str, answer: Binding, *, device: int | None) -> bool:
        """Look at the pod of a binding that may have taken place, or that met another pod. Raises _Done when the pod tells how it ended.

        True: it has not taken place and cannot any more, since the pod is not in ``version`` now. False: it is.
        """
        args = request.args
        settle = Deadline.after(SETTLE_S, clock=self._clock)
        try:
            wire = self._api.read_pod(namespace=args.namespace, name=args.name, deadline=settle)
        except KubernetesError as error:
            end = BindEnd.OPEN if answer.outcome is BindingOutcome.OPEN else BindEnd.FAILED
            raise request.done(end, f"{answer.message}; and the pod could not be read ({error.message})") from error
        pod = None if wire is None else gpu_pod(wire)
        if pod is not None:
            self._book.take_pod(pod)
        if pod is None or pod.uid != args.uid:
            self._book.end(args.node, args.uid)
            raise request.done(BindEnd.GONE, "it is gone")
        if pod.node == args.node:
            raise _Done(BindEnd.BOUND, device=device)
        if pod.node:
            raise request.done(BindEnd.GONE, f"it is bound to node {pod.node} already")
        return pod.version != version

    # ---- housekeeping -------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Ask what became of bindings of which nothing was heard; called every few seconds."""
        for node in self._book.waiting(before=self._now() - UNHEARD_S):
            with self._held(node) as held, suppress(KubernetesError):
                if held:
                    self._registers.sync(node, Deadline.after(self._bind_s, clock=self._clock))

    def purge(self) -> int:
        """Delete the registers of nodes that share no devices any more; how many. Called once in a long while. Raises KubernetesError."""
        deadline = Deadline.after(10 * self._bind_s, clock=self._clock)
        purged = 0
        for stored in self._api.registers(deadline=deadline):
            node = stored.data.get(NODE_KEY, "")
            if not node or self._book.node(node) is not None:
                continue
            with self._held(node) as held:
                if held and self._registers.purge(node, stored, deadline):
                    purged += 1
        return purged

    @contextmanager
    def _held(self, node: str, *, timeout_s: float = 0.0) -> Iterator[bool]:
        """The node's turn; False if somebody else has it for longer than ``timeout_s``."""
        with self._guard:
            lock = self._locks.setdefault(node, threading.Lock())
        held = lock.acquire(timeout=timeout_s)
        try:
            yield held
        finally:
            if held:
                lock.release()
