"""The store of API objects and the virtual clock: what etcd, the API machinery's bookkeeping and time itself are to a real cluster.

Objects are immutable by agreement (see the package docstring). Everything is under one re-entrant lock, which the HTTP threads, the
agents and the tests share. Agents and indexes subscribe to changes; time passes only when `advance` is called, in jumps from one due
moment to the next, so that a day costs what happens in it. Names and uids come from a seeded generator: equal seeds and equal calls
give equal worlds.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from rebalancer.simulate.kinds import BY_PLURAL, Json
from rebalancer.units import format_time

if TYPE_CHECKING:
    from rebalancer.simulate.gpu.use import DeviceUse
    from rebalancer.simulate.load import LoadModel

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z: where the virtual clock of a world begins unless told otherwise."""
_LOG_LENGTH = 20_000
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_encode = msgspec.json.encode

Key = tuple[str, str]
"""(namespace or empty, name)"""


class Conflict(Exception):
    """A precondition (resourceVersion, uid) does not hold."""


class AlreadyExists(Exception):
    """An object of that name is there."""


class NotFound(Exception):
    """No object of that name is there."""


@dataclass(slots=True)
class Entry:
    """An object, the version at which it was stored, and its bytes once somebody asked for them."""

    value: Json
    version: int
    _encoded: bytes | None = None

    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = _encode(self.value)
        return self._encoded


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the store. ``type``: ADDED, MODIFIED, DELETED; ``before`` is the object it replaced."""

    version: int
    plural: str
    type: str
    entry: Entry
    before: Json | None

    @property
    def value(self) -> Json:
        return self.entry.value


class Agent(Protocol):
    """Something that acts on the world as time passes."""

    def react(self) -> bool:
        """Do what is due now; True when something was changed."""

    def next_due(self) -> float:
        """Unix seconds of the next moment at which `react` will have something to do; infinity for never."""


class World:
    def __init__(self, *, seed: int = 0, now: float = START) -> None:
        self.seed = seed
        self.random = random.Random(seed)  # noqa: S311 - a simulation must be repeatable, not unguessable
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.agents: list[Agent] = []
        self.load: LoadModel | None = None
        """What pods use; set by the load model that follows this world."""
        self.gpus: DeviceUse | None = None
        """What they use of GPUs; set likewise."""
        self.admission: list[Callable[[str, Json], Json]] = []
        """Called in turn with the plural and the value of each new object; what they return is stored."""
        self._now = now
        self._version = 1000
        self._tables: dict[str, dict[Key, Entry]] = {plural: {} for plural in BY_PLURAL}
        self._by_namespace: dict[tuple[str, str], dict[Key, Entry]] = {}
        self._log: deque[Change] = deque(maxlen=_LOG_LENGTH)
        self._forgotten = self._version
        self._subscribers: list[Callable[[Change], None]] = []

    # ---- time ---------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Unix seconds of the virtual clock."""
        return self._now

    def settle(self, *, rounds: int = 10_000) -> None:
        """Let every agent react until nothing is left to do at this moment. Raises RuntimeError when they never come to rest."""
        with self.lock:
            for _ in range(rounds):
                acted = [agent.react() for agent in self.agents]
                if not any(acted):
                    return
            raise RuntimeError(f"the simulated agents did not come to rest within {rounds} rounds at {format_time(self._now)}")

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass: agents act at each moment at which something is due."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds:g} s")
        with self.lock:
            target = self._now + seconds
            self.settle()
            while True:
                due = min((agent.next_due() for agent in self.agents), default=float("inf"))
                if due > target:
                    break
                self._now = max(self._now, due)
                self.settle()
            self._now = target
            self.settle()

    def node_loads(self, signal: str) -> Mapping[str, float]:
        """Node name -> the true load (usage over allocatable) at this moment; of ``gpu`` and ``gpu_memory`` for nodes with GPUs only.

        Raises RuntimeError in a world without a load model.
        """
        if self.load is None:
            raise RuntimeError("this world has no load model")
        if self.gpus is not None and signal in self.gpus.signals:
            return self.gpus.node_loads(signal, self._now)
        return self.load.node_loads(signal)

    def hot_nodes(self, signal: str, threshold: float) -> list[str]:
        """The names of the nodes whose true load is above ``threshold`` (a ratio) at this moment, hottest first."""
        loads = self.node_loads(signal)
        return sorted((name for name, load in loads.items() if load > threshold), key=lambda name: -loads[name])

    # ---- names --------------------------------------------------------------------------------------------------------

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """A random ending of a generated name, from the alphabet that Kubernetes uses."""
        return "".join(self.random.choices(_SAFE_ALPHABET, k=length))

    # ---- reading ------------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        return self._version

    def get(self, plural: str, name: str, namespace: str = "") -> Json:
        """The object; raises NotFound."""
        return self.entry(plural, name, namespace).value

    def find(self, plural: str, name: str, namespace: str = "") -> Json | None:
        entry = self._tables[plural].get((namespace, name))
        return None if entry is None else entry.value

    def entry(self, plural: str, name: str, namespace: str = "") -> Entry:
        entry = self._tables[plural].get((namespace, name))
        if entry is None:
            raise NotFound(f"{plural} {name!r} not found")
        return entry

    def entries(self, plural: str, namespace: str | None = None) -> list[Entry]:
        """Every entry of a kind (of one namespace), by namespace and name, as a list that later changes leave alone."""
        with self.lock:
            table = self._part(plural, namespace)
            return [table[key] for key in sorted(table)]

    def objects(self, plural: str, namespace: str | None = None) -> Iterator[Json]:
        """Every object of a kind, in the order in which they were created."""
        with self.lock:
            values = [entry.value for entry in self._part(plural, namespace).values()]
        return iter(values)

    def _part(self, plural: str, namespace: str | None) -> dict[Key, Entry]:
        return self._tables[plural] if namespace is None else self._by_namespace.get((plural, namespace), {})

    def count(self, plural: str) -> int:
        return len(self._tables[plural])

    def changes_since(self, version: int) -> list[Change] | None:
        """Changes newer than ``version``, oldest first; None when some of them are forgotten already."""
        with self.lock:
            if version < self._forgotten:
                return None
            newer: list[Change] = []
            for change in reversed(self._log):
                if change.version <= version:
                    break
                newer.append(change)
            newer.reverse()
            return newer

    def forget_changes(self) -> None:
        """Drop the log, as a compaction does: watches from older versions get 410."""
        with self.lock:
            self._log.clear()
            self._forgotten = self._version

    # ---- writing ------------------------------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call ``callback`` under the lock after each change."""
        self._subscribers.append(callback)

    def create(self, plural: str, value: Json) -> Json:
        """Store a new object; fills uid, resourceVersion, generation, creationTimestamp, and the name after generateName."""
        kind = BY_PLURAL[plural]
        with self.lock:
            for admit in self.admission:
                value = admit(plural, value)
            metadata = dict(value.get("metadata") or {})
            namespace = metadata.get("namespace", "") if kind.namespaced else ""
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = self._generated(plural, namespace, metadata["generateName"])
            key = (namespace, metadata["name"])
            if key in self._tables[plural]:
                raise AlreadyExists(f'{plural} "{key[1]}" already exists')
            metadata.setdefault("uid", self.new_uid())
            metadata.setdefault("creationTimestamp", format_time(self._now))
            metadata.setdefault("generation", 1)
            stored = {"apiVersion": kind.api_version, "kind": kind.kind, **value, "metadata": metadata}
            return self._put(plural, key, stored, "ADDED", None)

    def _generated(self, plural: str, namespace: str, beginning: str) -> str:
        """A name that is free; as the real server, which draws again when the first name is taken."""
        name = beginning + self.suffix()
        while (namespace, name) in self._tables[plural]:
            name = beginning + self.suffix()
        return name

    def replace(self, plural: str, value: Json, *, expect_version: str = "") -> Json:
        """Store a new state of an existing object. Raises NotFound, and Conflict when ``expect_version`` is not the stored one."""
        kind = BY_PLURAL[plural]
        with self.lock:
            metadata = value["metadata"]
            key = (metadata.get("namespace", "") if kind.namespaced else "", metadata["name"])
            entry = self._tables[plural].get(key)
            if entry is None:
                raise NotFound(f'{plural} "{key[1]}" not found')
            before = entry.value
            if expect_version and expect_version != before["metadata"]["resourceVersion"]:
                raise Conflict(f'the object has been modified; resourceVersion {expect_version} is not the newest of {plural} "{key[1]}"')
            kept = {name: before["metadata"][name] for name in ("uid", "creationTimestamp")}
            generation = before["metadata"].get("generation", 1) + (before.get("spec") != value.get("spec"))
            stored = {**value, "metadata": {**metadata, **kept, "generation": generation}}
            return self._put(plural, key, stored, "MODIFIED", before)

    def remove(self, plural: str, name: str, namespace: str = "") -> Json:
        """Take an object out of the store; raises NotFound."""
        with self.lock:
            entry = self._tables[plural].pop((namespace, name), None)
            if entry is None:
                raise NotFound(f'{plural} "{name}" not found')
            self._by_namespace[(plural, namespace)].pop((namespace, name))
            self._version += 1
            last = {**entry.value, "metadata": {**entry.value["metadata"], "resourceVersion": str(self._version)}}
            self._announce(Change(self._version, plural, "DELETED", Entry(last, self._version), entry.value))
            return last

    def _put(self, plural: str, key: Key, value: Json, change: str, before: Json | None) -> Json:
        self._version += 1
        value["metadata"]["resourceVersion"] = str(self._version)
        entry = Entry(value, self._version)
        self._tables[plural][key] = entry
        self._by_namespace.setdefault((plural, key[0]), {})[key] = entry
        self._announce(Change(self._version, plural, change, entry, before))
        return value

    def _announce(self, change: Change) -> None:
        if len(self._log) == self._log.maxlen:
            self._forgotten = self._log[0].version
        self._log.append(change)
        for callback in self._subscribers:
            callback(change)
        self.changed.notify_all()


def updated(value: Json, section: str, fields: Mapping[str, object]) -> Json:
    """A copy of ``value`` with some fields of one section (``metadata``, ``spec``, ``status``) replaced."""
    return {**value, section: {**value.get(section, {}), **fields}}
