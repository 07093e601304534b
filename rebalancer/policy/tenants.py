"""`TenantQuotas`: who shares the cluster, what each of them is guaranteed, may reach and weighs.

A tree: a tenant has members, or tenants below it, never both, so that a pod belongs to one leaf and counts for all above it. What a file
says of a tenant above bounds those below it. An empty file, or none, means that nobody is evicted for a quota.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from rebalancer.policy.quantities import DnsLabel, LabelSelector, MisplacedValue, Strict, TimeZone
from rebalancer.units import parse_quantity

GPU = "gpu"
GPU_MODEL = "gpu/"
"""Beginning of the name of devices of one model: ``gpu/NVIDIA-A100-SXM4-40GB``."""
_RESOURCE = re.compile(
    r"cpu|memory|gpu|gpu/[A-Za-z0-9][-A-Za-z0-9_. ]*|ephemeral-storage|pods|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9_.]+"
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%")
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
QUEUE_SYSTEMS = ("kueue", "kueueClusterQueue", "kai", "volcano", "koordinator")


def _resource(name: str) -> str:
    if not _RESOURCE.fullmatch(name):
        raise ValueError(f"{name[:60]!r} is no resource; write cpu, memory, gpu, gpu/MODEL or an extended resource such as nvidia.com/gpu")
    return name


def _amount(value: Any) -> Any:
    """As written; a number stays one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be an amount such as 8, 500m or 64Gi, or a share such as 25%")
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value.strip())
        if match is not None:
            if float(match.group(1)) > 100:
                raise ValueError(f"{value} is more than everything; write at most 100%")
            return value.strip()
        amount = parse_quantity(value)
    else:
        amount = float(value)
    if not 0 <= amount < float("inf"):
        raise ValueError(f"{value} is no amount that can be had; write 0 or more")
    return value


ResourceName = Annotated[str, AfterValidator(_resource)]
Amount = Annotated[
    int | float | str,
    BeforeValidator(_amount),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "minLength": 1}], "examples": [8, "500m", "64Gi", "25%"]}
    ),
]
"""In the resource's unit (cores, bytes, devices), or a share of what the cluster has."""
Amounts = dict[ResourceName, Amount]


def amount_of(value: int | float | str, capacity: float) -> float:
    """The amount in base units; a share is of ``capacity``, and NaN where that is not known."""
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        return float(match.group(1)) / 100 * capacity if match else parse_quantity(value)
    return float(value)


class Members(Strict):
    """Pods that fit all that is given here."""

    namespaces: tuple[str, ...] = ()
    """Names, or beginnings with a trailing ``*``."""
    namespace_selector: LabelSelector | None = None
    """Labels of the namespace."""
    queues: dict[Literal["kueue", "kueueClusterQueue", "kai", "volcano", "koordinator"], tuple[str, ...]] = Field(default_factory=dict)
    """Queues by system, as labels of the pods name them."""
    pod_selector: LabelSelector | None = None
    """Labels of the pod."""

    @model_validator(mode="after")
    def _something(self) -> Members:
        if not (self.namespaces or self.namespace_selector or self.queues or self.pod_selector):
            raise ValueError("says nothing; name namespaces, a namespaceSelector, queues or a podSelector")
        return self


class Quotas(Strict):
    """What a tenant has, by resource; an absent resource has no guarantee and no limit."""

    guaranteed: Amounts | None = None
    """What it gets back at any time from those who borrow it."""
    limit: Amounts | None = None
    """The most that it may hold, borrowed resources included."""
    floor: Amounts | None = None
    """The part of what is guaranteed that is never lent."""
    weight: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    """Its share of what nobody is guaranteed or uses, beside the others; 1 where nothing is said."""


_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _clock(value: str) -> str:
    if not _CLOCK.fullmatch(value):
        raise ValueError(f"{value[:20]!r} is no time of the day; write it as 20:00")
    return value


ClockTime = Annotated[str, AfterValidator(_clock)]


class QuotaWindow(Quotas):
    """Other quotas at a time of the day; what is not said here stays as it is."""

    days: tuple[Day, ...] = DAYS
    """Days on which the window begins."""
    start: ClockTime = Field(alias="from")
    """When it begins."""
    end: ClockTime = Field(alias="to")
    """When it ends; at or before ``from``: on the next day."""
    time_zone: TimeZone = "Etc/UTC"
    """Of both times."""


class Tenant(Quotas):
    """A department or a team."""

    name: DnsLabel
    """Unique in the file."""
    priority: int = Field(default=0, ge=-1_000_000, le=1_000_000)
    """Higher ones are served first of what is left after all guarantees, and give back last."""
    borrow: bool = True
    """Whether it may hold more than it is guaranteed."""
    lend: bool = True
    """Whether others may hold what it is guaranteed and does not use; false: all of it is a floor."""
    windows: tuple[QuotaWindow, ...] = ()
    """Other quotas by time of the day; of several that hold, the last one counts."""
    members: tuple[Members, ...] = ()
    """Whose pods are its own: those of any entry. Only for a tenant without tenants below it."""
    tenants: tuple[Tenant, ...] = ()
    """Those below it."""

    @model_validator(mode="after")
    def _leaf_or_branch(self) -> Tenant:
        if self.members and self.tenants:
            raise MisplacedValue("has tenants below it, so its pods are theirs; give the members to one of them", at=("members",))
        return self

    def all(self) -> Iterator[Tenant]:
        """Itself and those below, in the order of the file."""
        yield self
        for below in self.tenants:
            yield from below.all()


class TenantSpec(Strict):
    """The tenants, and what is asked of evictions for quotas."""

    tenants: tuple[Tenant, ...] = ()
    """The first level of the tree."""
    default: DnsLabel | None = None
    """The tenant of pods that nobody claims; without one they belong to nobody."""

    @model_validator(mode="after")
    def _names(self) -> TenantSpec:
        seen: set[str] = set()
        for row, top in enumerate(self.tenants):
            for tenant in top.all():
                if tenant.name in seen:
                    raise MisplacedValue(f"two tenants are called {tenant.name}; rename one", at=("tenants", row))
                seen.add(tenant.name)
        leaves = [tenant.name for tenant in self.leaves()]
        if self.default is not None and self.default not in leaves:
            what = "has tenants below it" if self.default in seen else "is no tenant of this file"
            raise MisplacedValue(f"{self.default} {what}; name one of {', '.join(leaves) or 'none'}", at=("default",))
        return self

    def all(self) -> Iterator[Tenant]:
        """All tenants, each above those below it."""
        for top in self.tenants:
            yield from top.all()

    def leaves(self) -> Iterator[Tenant]:
        """Those that have pods."""
        return (tenant for tenant in self.all() if not tenant.tenants)


class TenantMetadata(Strict):
    """What the file is called."""

    name: str = Field(default="default", min_length=1, max_length=253)
    """How reports and logs call it."""


class TenantQuotas(Strict):
    """A file of tenants."""

    api_version: Literal["rebalancer.dev/v1alpha1"] = "rebalancer.dev/v1alpha1"
    """The version of the format; a file must give it."""
    kind: Literal["TenantQuotas"] = "TenantQuotas"
    """A file must give it."""
    metadata: TenantMetadata = TenantMetadata()
    """What the file is called."""
    spec: TenantSpec = TenantSpec()
    """Who there is; a file must give it, ``{}`` for nobody."""


NO_TENANTS = TenantQuotas()
