"""Stands before a server of the embedded cluster: sees what it really carried out, changes its answers, and stops the world at a request.

What the controller believes to have done is no proof; what the server accepted is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rebalancer.simulate.faults import Fault
from rebalancer.simulate.http_server import Answer, Application, HttpServer, Request

Json = dict[str, Any]
Change = Callable[[Request, Answer], Answer]


@dataclass(frozen=True)
class Gone:
    """A pod whose eviction the API server accepted."""

    uid: str
    name: str


@dataclass
class Hook:
    """Called for the request number ``skip`` + 1 that ``concerns`` is true for, before or after it is carried out. Once."""

    concerns: Callable[[Request], bool]
    call: Callable[[], None]
    skip: int = 0
    after: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(self, request: Request) -> None:
        with self._lock:
            due = self.skip == 0 and self.concerns(request)
            if self.concerns(request):
                self.skip -= 1
        if due:
            self.call()


class Witness:
    """An `Application` around another one. Thread-safe as far as tests need: faults are set between cycles, hooks before them."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self.evicted: list[Gone] = []
        self.change: Change | None = None
        """What becomes of an answer, after the server has done what was asked."""
        self.hooks: list[Hook] = []
        self.accepted: Callable[[str, str], None] = lambda uid, name: None
        """Told the UID and the name of each pod whose eviction was accepted, before the answer leaves."""

    def answer(self, request: Request, fault: Fault | None) -> Answer:
        for hook in [hook for hook in self.hooks if not hook.after]:
            hook.meet(request)
        answer = self._application.answer(request, fault)
        if request.method == "POST" and request.path.endswith("/eviction") and 200 <= answer.status < 300:
            self._note(request)
        for hook in [hook for hook in self.hooks if hook.after]:
            hook.meet(request)
        return answer if self.change is None else self.change(request, answer)

    def broken(self, fault: Fault) -> Answer:
        return self._application.broken(fault)

    def _note(self, request: Request) -> None:
        body: Any = request.json()
        options = body["deleteOptions"]
        if not options.get("dryRun"):
            gone = Gone(options["preconditions"]["uid"], body["metadata"]["name"])
            with self._lock:
                self.evicted.append(gone)
            self.accepted(gone.uid, gone.name)


@dataclass
class Witnesses:
    """Makes the servers of an `EmbeddedCluster` (its ``http``), each with a witness before it, by the server's name."""

    by_name: dict[str, Witness] = field(default_factory=dict)

    def __call__(self, application: Application, *, name: str, **options: Any) -> HttpServer:
        self.by_name[name] = Witness(application)
        return HttpServer(self.by_name[name], name=name, **options)

    @property
    def api(self) -> Witness:
        return self.by_name["simulate-api"]

    @property
    def prometheus(self) -> Witness:
        return self.by_name["simulate-prometheus"]
