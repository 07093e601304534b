"""A Lease of `coordination.k8s.io/v1`: read, created and replaced, one request each, never tried again here.

What a record means, and when to try again, is for whoever campaigns; only the wire is known here. Every replacement carries the
resourceVersion that was read, so of two writers who saw the same record one is refused. Labels, owners and fields that others put on
the Lease survive. The times in a record are for people: nobody's clock is compared with them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesNotFound
from rebalancer.kube import failures
from rebalancer.kube.operations import object_path
from rebalancer.kube.transport import Answer

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

API_VERSION = "coordination.k8s.io/v1"
RELEASED_S = 1.0
"""Duration of a Lease that nobody holds; the API server refuses zero."""
_SERVERS_OWN = ("managedFields", "creationTimestamp", "selfLink", "generation")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as it was read. ``holder``: empty when nobody holds it. ``duration_s``: as its holder promised; 0 when it names none.

    ``acquired`` and ``renewed`` are the texts on the wire, ``version`` is the resourceVersion; ``metadata`` and ``spec`` go back as they
    came.
    """

    holder: str
    duration_s: float
    acquired: str
    renewed: str
    transitions: int
    version: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    spec: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """What a candidate wants a Lease to say. ``over``: the record that it replaces; None creates the Lease.

    ``holder``: empty releases it. ``acquires``: the holder is a new one, so the time of acquisition is set anew.
    """

    over: LeaseRecord | None
    holder: str
    duration_s: float
    transitions: int
    acquires: bool


class _Spec(msgspec.Struct):
    holderIdentity: str | None = None  # noqa: N815 - the names on the wire
    leaseDurationSeconds: int | None = None  # noqa: N815
    acquireTime: str | None = None  # noqa: N815
    renewTime: str | None = None  # noqa: N815
    leaseTransitions: int | None = None  # noqa: N815


class _Shape(msgspec.Struct):
    spec: _Spec | None = None


class _Lease(msgspec.Struct):
    metadata: dict[str, object]
    spec: dict[str, object] | None = None


class LeaseClient:
    """One Lease at one API server. ``client`` must be nobody else's: a shared limit of rate would make renewals late.

    ``limit_s``: longest time for one request.
    """

    def __init__(self, client: KubeClient, *, namespace: str, name: str, limit_s: float) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._limit_s = limit_s
        self._path = object_path(api_version=API_VERSION, plural="leases", namespace=namespace, name=name)

    @property
    def place(self) -> str:
        """As it stands in a sentence."""
        return f"Lease {self._namespace}/{self._name}"

    def read(self) -> LeaseRecord | None:
        """The record as it is now, None if there is none. Raises KubernetesError."""
        try:
            return _record(self._client.request("GET", self._path, deadline=self._deadline()))
        except KubernetesNotFound:
            return None

    def write(self, claim: LeaseClaim, *, at: float) -> LeaseRecord:
        """Make the Lease say ``claim``, and return what is stored then. ``at``: unix seconds, for the times in the record.

        Raises KubernetesConflict when somebody else wrote since ``claim.over`` was read, KubernetesNotFound when the Lease is gone (or,
        for a new one, when its namespace does not exist). After KubernetesUnreachable it is open whether the write took place.
        """
        body = self._body(claim, at=at)
        if claim.over is not None:
            return _record(self._client.request("PUT", self._path, body=body, deadline=self._deadline(), write=True))
        collection = f"/apis/{API_VERSION}/namespaces/{quote(self._namespace, safe='')}/leases"
        try:
            return _record(self._client.request("POST", collection, body=body, deadline=self._deadline(), write=True))
        except KubernetesNotFound as error:
            raise KubernetesNotFound(
                f"namespace {self._namespace} does not exist, so {self.place} cannot be kept there",
                remedy="create it, or name another one with REBALANCER_NAMESPACE",
                status=error.status,
            ) from error

    def _deadline(self) -> Deadline:
        return Deadline.after(self._limit_s)

    def _body(self, claim: LeaseClaim, *, at: float) -> dict[str, object]:
        now = datetime.datetime.fromtimestamp(at, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        over = claim.over
        metadata = {**(over.metadata if over else {}), "name": self._name, "namespace": self._namespace}
        if over is not None:
            metadata["resourceVersion"] = over.version
        spec = {
            **(over.spec if over else {}),
            "holderIdentity": claim.holder,
            # Whole seconds on the wire, rounded up: others may wait longer than the holder counts on, never shorter.
            "leaseDurationSeconds": max(1, math.ceil(claim.duration_s)),
            "acquireTime": now if claim.acquires or over is None or not over.acquired else over.acquired,
            "renewTime": now,
            "leaseTransitions": claim.transitions,
        }
        return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}


def _record(answer: Answer) -> LeaseRecord:
    """Raises KubernetesUnreachable when the answer is no Lease."""
    found, spec = answer.into(_Lease), answer.into(_Shape).spec or _Spec()
    metadata = {key: value for key, value in found.metadata.items() if key not in _SERVERS_OWN}
    if not metadata.get("resourceVersion"):
        raise failures.cut_short(source=answer.source)  # without it, no write could be guarded
    return LeaseRecord(
        holder=spec.holderIdentity or "",
        duration_s=float(max(0, spec.leaseDurationSeconds or 0)),
        acquired=spec.acquireTime or "",
        renewed=spec.renewTime or "",
        transitions=max(0, spec.leaseTransitions or 0),
        version=str(metadata["resourceVersion"]),
        metadata=metadata,
        spec=found.spec or {},
    )
