"""What tests of watches share: objects and events as the server writes them, a follower and a report that remember what they were told."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import Listed, Resource
from rebalancer.kube.resources import PODS
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, Start, Watch, WatchTiming
from rebalancer.kube.watch_events import News, Odd, Present, Progress
from rebalancer.kube.wire import MetaWire
from rebalancer.kube.wire_pods import PodWire

Json = dict[str, Any]
QUICK = WatchTiming(server=1.0, silence=1.2, forbidden=0.3, backoff=Backoff(first_s=0.02, ceiling_s=0.1))
"""Patient for a second, and hasty between two connections."""


def pod(name: str, version: int, **spec: object) -> Json:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": str(version)}, "spec": spec}


def wire(name: str, version: int) -> PodWire:
    return PodWire(metadata=MetaWire(name=name, namespace="a", resource_version=str(version)))


def present(name: str, version: int) -> Present[PodWire]:
    return Present(f"a/{name}", version, wire(name, version))


def listed(version: int, *items: PodWire, odd: dict[str, str] | None = None) -> Listed[PodWire]:
    odd = odd or {}
    return Listed(name="pods", items=list(items), resource_version=str(version), odd=Counter(odd.values()), odd_keys=odd)


def event(kind: str, value: Json) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}, "spec": {}})


def gone() -> bytes:
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 5 (900)"})


@dataclass
class Heard:
    """A follower that continues from what it was told, for so many connections. After 410 it goes on from ``relisted``, as after a list."""

    version: int = 10
    connections: int = 1
    relisted: int = 900
    news: list[News[PodWire]] = field(default_factory=list)
    opened_from: list[int] = field(default_factory=list)
    reasons: list[Restart] = field(default_factory=list)
    current: bool = True

    def start(self, stop: threading.Event) -> Start | None:
        self.connections -= 1
        return None if stop.is_set() or self.connections < 0 else Start(self.version, term=1)

    def opened(self, start: Start) -> None:
        self.opened_from.append(start.version)

    def take(self, news: Sequence[News[PodWire]], start: Start) -> bool:
        self.news.extend(news)
        self.version = max(each.version for each in news)
        return self.current

    def closed(self, start: Start, reason: Restart) -> None:
        self.reasons.append(reason)
        if reason is Restart.EXPIRED:
            self.version = self.relisted

    @property
    def told(self) -> list[str]:
        """``key@version`` of each piece of news, odd ones with a question mark, bookmarks as their version."""
        return [
            f"{news.version}" if isinstance(news, Progress) else f"{news.key}@{news.version}{'?' if isinstance(news, Odd) else ''}"
            for news in self.news
        ]


@dataclass
class Noted:
    """A report that remembers."""

    restarts: list[tuple[str, Restart]] = field(default_factory=list)
    forbidden_ones: list[tuple[str, str]] = field(default_factory=list)
    defects: list[Exception] = field(default_factory=list)
    disagreements: Counter[str] = field(default_factory=Counter)

    def restarted(self, resource: str, reason: Restart) -> None:
        self.restarts.append((resource, reason))

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        self.forbidden_ones.append((resource, error.message))

    def defect(self, resource: str, error: Exception) -> None:
        self.defects.append(error)

    def disagreed(self, resource: str, objects: int) -> None:
        self.disagreements[resource] += objects

    def count(self, reason: Restart, resource: str = "pods") -> int:
        return self.restarts.count((resource, reason))


@dataclass
class Pauses:
    """Stands in for sleeping between two connections."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def watch_pods(client: KubeClient, heard: Heard, *, resource: Resource[PodWire] = PODS, **options: Any) -> tuple[Noted, Pauses]:
    """Run a watch until its follower has had enough of connections, without sleeping between them."""
    noted, pauses = Noted(), Pauses()
    options = {"timing": QUICK, "chance": lambda: 0.0, "pause": pauses, **options}
    Watch(client, resource, heard, stop=threading.Event(), report=noted, **options).run()
    return noted, pauses


@contextmanager
def running(watch: Watch[Any], stop: threading.Event) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        watch.break_off()
        thread.join(10)
        assert not thread.is_alive()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    crt, key = folder / "ca.crt", folder / "ca.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl to make a certificate")
    return crt, key
