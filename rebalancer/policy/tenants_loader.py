"""From a tenants file to `TenantQuotas`, or to sentences that say what to correct and where."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from rebalancer.errors import PolicyError
from rebalancer.policy.document import KeyPath, Mistake, parse_document, read_text
from rebalancer.policy.loader import check_header, validated
from rebalancer.policy.mistakes import failure_of
from rebalancer.policy.reload import Reload, ReloadResult
from rebalancer.policy.tenants import NO_TENANTS, Quotas, Tenant, TenantQuotas, amount_of

WHAT = "tenants"


def load_tenants(path: Path) -> TenantQuotas:
    """Raises PolicyError, whose ``mistakes`` hold every mistake that was found."""
    return parse_tenants(read_text(path, what=WHAT, error=PolicyError), origin=str(path))


def parse_tenants(text: str, *, origin: str) -> TenantQuotas:
    """Validate the text; ``origin`` is what the sentences call it. An empty file holds no tenants. Raises PolicyError."""
    if not text.strip():
        return NO_TENANTS
    document = parse_document(text, origin=origin, what=WHAT, error=PolicyError)
    check_header(document, kind="TenantQuotas", error=PolicyError)
    found = validated(document, TenantQuotas, error=PolicyError)
    mistakes = [
        Mistake(path=path, line=document.line_of(path), message=message, remedy=remedy) for path, message, remedy in _contradictions(found)
    ]
    if mistakes:
        raise failure_of(mistakes, origin=origin, error=PolicyError)
    return found


def _contradictions(quotas: TenantQuotas) -> Iterator[tuple[KeyPath, str, str]]:
    """What needs no cluster to be seen: limits under guarantees, floors over them, amounts of both forms compared only with their like."""

    def walk(tenant: Tenant, at: KeyPath) -> Iterator[tuple[KeyPath, str, str]]:
        yield from _quotas(tenant, tenant.name, at)
        for row, window in enumerate(tenant.windows):
            yield from _quotas(window, tenant.name, (*at, "windows", row))
        for row, below in enumerate(tenant.tenants):
            yield from walk(below, (*at, "tenants", row))

    for row, top in enumerate(quotas.spec.tenants):
        yield from walk(top, ("spec", "tenants", row))


def _quotas(quotas: Quotas, name: str, at: KeyPath) -> Iterator[tuple[KeyPath, str, str]]:
    guaranteed = quotas.guaranteed or {}
    for resource, value in (quotas.limit or {}).items():
        own = guaranteed.get(resource)
        if own is not None and _alike(value, own) and amount_of(value, 100.0) < amount_of(own, 100.0):
            words = f"tenant {name} has a limit of {value} {resource}, less than the {own} that it is guaranteed"
            yield (*at, "limit", resource), words, "raise the limit or lower the guarantee"
    for resource, value in (quotas.floor or {}).items():
        own = guaranteed.get(resource)
        if own is None:
            yield (*at, "floor", resource), f"tenant {name} has a floor of {resource} and no guarantee of it", "guarantee it too"
        elif _alike(value, own) and amount_of(value, 100.0) > amount_of(own, 100.0):
            words = f"tenant {name} has a floor of {value} {resource}, more than the {own} that it is guaranteed"
            yield (*at, "floor", resource), words, "lower the floor"


def _alike(one: float | str, other: float | str) -> bool:
    """Both amounts, or both shares: the one cannot be held against the other without a cluster."""
    return str(one).endswith("%") == str(other).endswith("%")


class TenantsFile:
    """A tenants file that is read again on `refresh`; a broken edit leaves the last good one in force. None: there are no tenants.

    Raises PolicyError when made from a file that is not valid, never afterwards.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen = ""
        self._error: PolicyError | None = None
        self._quotas = NO_TENANTS
        if path is not None:
            text = read_text(path, what=WHAT, error=PolicyError)
            self._quotas, self._seen = parse_tenants(text, origin=str(path)), _digest(text)

    def current(self) -> TenantQuotas:
        """The last ones that were valid."""
        return self._quotas

    def refresh(self) -> ReloadResult:
        """Read the file again and put it in force if it is valid."""
        if self._path is None:
            return ReloadResult(Reload.UNCHANGED)
        try:
            text = read_text(self._path, what=WHAT, error=PolicyError)
            seen = _digest(text)
            if seen == self._seen:
                return ReloadResult(Reload.UNCHANGED) if self._error is None else ReloadResult(Reload.FAILED, error=self._error)
            found = parse_tenants(text, origin=str(self._path))
        except PolicyError as failure:
            news = self._error is None or str(failure) != str(self._error)
            self._error = failure
            return ReloadResult(Reload.FAILED, error=failure, news=news)
        self._quotas, self._seen, self._error = found, seen, None
        return ReloadResult(Reload.CHANGED, news=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
