"""What the API server itself says was asked of it: its audit log, for scenarios where the word of the program under test is not enough."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.api import Json
from tests.e2e.plane import ControlPlane, Plane

API_SERVER = "kube-apiserver"
RULES: Json = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["pods/eviction"]}]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Asked:
    """One request and its answer. ``path``: resource with subresource; ``at``: when it came, as RFC 3339 in UTC."""

    user: str
    verb: str
    group: str
    path: str
    namespace: str
    name: str
    code: int
    at: str

    @property
    def words(self) -> str:
        return f"{self.verb} {self.path}{f'.{self.group}' if self.group else ''} {self.namespace}/{self.name}: {self.code}"

    @property
    def seconds(self) -> float:
        """``at`` as unix seconds."""
        return datetime.fromisoformat(self.at).timestamp()


@dataclass(frozen=True)
class Audit:
    log: Path

    def requests(self, user: str = "") -> list[Asked]:
        """What was answered so far, each once, in the order of the log; watches that still run among them."""
        found: dict[str, Asked] = {}
        for line in self.log.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):  # the last line may be half written
                event = json.loads(line)
                found[event["auditID"]] = _asked(event)
        return [each for each in found.values() if not user or each.user == user]

    def evictions(self) -> list[Asked]:
        """The pods that were evicted, whoever asked."""
        return [each for each in self.requests() if each.path == "pods/eviction" and each.code < 300]


@contextlib.contextmanager
def audited(plane: ControlPlane) -> Iterator[Audit]:
    """The API server with its audit log on; restarted for it, before and after."""
    if not isinstance(plane, Plane):
        pytest.skip("the API server of a borrowed cluster is not restarted to keep an audit log")
    program = plane.programs[API_SERVER]
    plain, rules, log = program.command, plane.folder / "audit-policy.json", plane.folder / "audit.log"
    rules.write_text(json.dumps(RULES), encoding="utf-8")
    log.write_text("", encoding="utf-8")
    program.stop()
    program.command = [*plain, f"--audit-policy-file={rules}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
    try:
        program.start()
        plane.wait_ready()
        yield Audit(log)
    finally:
        program.stop()
        program.command = plain
        program.start()
        plane.wait_ready()


def _asked(event: Json) -> Asked:
    what = event.get("objectRef") or {}
    resource, part = what.get("resource") or event["requestURI"], what.get("subresource", "")
    return Asked(
        user=event["user"]["username"],
        verb=event["verb"],
        group=what.get("apiGroup", ""),
        path=f"{resource}/{part}" if part else resource,
        namespace=what.get("namespace", ""),
        name=what.get("name", ""),
        code=int((event.get("responseStatus") or {}).get("code", 0)),
        at=event["requestReceivedTimestamp"],
    )
