"""Accounts of a period from this project's own metrics of tenants in Prometheus.

Each quantity is asked for day by day, since a week of many tenants in one query is more than a Prometheus may want to load. Within a day it
is the sum of its values at the multiples of a step times the step: what is not recorded adds nothing, and the share that is recorded is
told. How raw series can be asked where there are no such metrics, docs/tenants.md says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rebalancer.collect.prometheus import Prometheus
from rebalancer.deadline import Deadline
from rebalancer.errors import UsageError
from rebalancer.policy.prices import Prices
from rebalancer.report.accounting import AccountingReport, AccountRow
from rebalancer.units import format_duration, format_time

STEP_S = 300.0
DAY_S = 86400.0
_INSIDE_S = 1.0
"""Ranges are asked for a second earlier, so that a step on their border belongs to one of them, whichever end a server counts in."""
LONGEST_S = 400 * DAY_S
MEASURED = "measured_hours"
"""Requested hours of the pods whose use was known."""


def _of(metric: str) -> str:
    """Of the replica that leads, and across a change of it."""
    return f"max by (tenant, resource) (rebalancer_tenant_{metric})"


QUANTITIES: Mapping[str, str] = {
    "requested_hours": _of("requested"),
    "used_hours": _of("used"),
    "wasted_hours": _of("wasted"),
    "borrowed_hours": _of("borrowed"),
    "guaranteed_hours": _of("guaranteed"),
    MEASURED: f"{_of('requested')} * {_of('used_coverage_ratio')}",
}
"""Expressions in base units, one series a tenant and resource."""
Key = tuple[str, str]
"""Tenant, resource."""


@dataclass(slots=True)
class _Sums:
    hours: dict[str, dict[Key, float]] = field(default_factory=lambda: {name: {} for name in QUANTITIES})
    steps: dict[Key, float] = field(default_factory=dict)


def account(
    prometheus: Prometheus,
    *,
    since: float,
    until: float,
    deadline: Deadline,
    prices: Prices | None = None,
    by: Sequence[str] = (),
    step_s: float = STEP_S,
) -> AccountingReport:
    """``since``, ``until``: unix seconds, taken down to a multiple of the step. ``by``: resources to show, all where it is empty.

    Raises MetricsError, and UsageError for a period that is none.
    """
    since, until = since // step_s * step_s, until // step_s * step_s
    if until < since:
        raise UsageError("the period ends before it begins", remedy="let --since reach further back than --until")
    if not until - step_s >= since:
        raise UsageError("the period is shorter than one step", remedy=f"ask for at least {format_duration(step_s)}")
    if until - since > LONGEST_S:
        raise UsageError(f"the period is longer than {format_duration(LONGEST_S)}", remedy="ask for a shorter one")
    sums = _Sums()
    for begin, end in _days(since, until):
        _add(prometheus, sums, begin, end, step_s=step_s, deadline=deadline)
    wanted = max(1.0, (until - since) / step_s)
    keys = sorted(sums.steps, key=lambda key: (_rank(key[1]), key[1], key[0]))
    rows = tuple(
        _row(sums, key, wanted, prices) for key in keys if not by or key[1] in by or any(key[1].startswith(f"{one}/") for one in by)
    )
    return AccountingReport(
        since=format_time(since),
        until=format_time(until),
        step_seconds=step_s,
        currency="" if prices is None else prices.spec.currency,
        rows=rows,
        notes=tuple(_notes(rows)),
    )


def _days(since: float, until: float) -> Iterator[tuple[float, float]]:
    while since < until:
        end = min(until, since + DAY_S)
        yield since, end
        since = end


def _add(prometheus: Prometheus, sums: _Sums, begin: float, end: float, *, step_s: float, deadline: Deadline) -> None:
    end -= _INSIDE_S
    span = f"{round(end + _INSIDE_S - begin)}s:{round(step_s)}s"
    for quantity, expression in QUANTITIES.items():
        text = f"sum_over_time(({expression})[{span}])"
        answer = prometheus.instant(text, at=end, deadline=deadline, name=f"{quantity} of tenants on {format_time(begin)[:10]}")
        found = sums.hours[quantity]
        for labels, value in zip(answer.labels, answer.values[:, -1].tolist(), strict=True):
            key = labels.get("tenant", ""), labels.get("resource", "")
            if math.isfinite(value):
                found[key] = found.get(key, 0.0) + value * step_s / 3600
    text = f"count_over_time(({QUANTITIES['requested_hours']})[{span}])"
    answer = prometheus.instant(text, at=end, deadline=deadline, name="recorded steps")
    for labels, value in zip(answer.labels, answer.values[:, -1].tolist(), strict=True):
        key = labels.get("tenant", ""), labels.get("resource", "")
        sums.steps[key] = sums.steps.get(key, 0.0) + value


def _rank(resource: str) -> int:
    return {"cpu": 0, "memory": 1, "gpu": 2}.get(resource, 3 if resource.startswith("gpu/") else 4)


def _row(sums: _Sums, key: Key, wanted: float, prices: Prices | None) -> AccountRow:
    hours = {name: sums.hours[name].get(key) for name in QUANTITIES}
    price = None if prices is None else prices.of(key[1])
    requested = hours["requested_hours"]
    return AccountRow(
        tenant=key[0],
        resource=key[1],
        requested_hours=requested,
        used_hours=hours["used_hours"],
        wasted_hours=hours["wasted_hours"],
        borrowed_hours=hours["borrowed_hours"],
        guaranteed_hours=hours["guaranteed_hours"],
        coverage=round(min(1.0, sums.steps.get(key, 0.0) / wanted), 6),
        measured=_share(hours[MEASURED], requested),
        cost=None if price is None or requested is None else round(price * requested, 6),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return round(min(1.0, part / whole), 6) if part and whole else None


def _notes(rows: Sequence[AccountRow]) -> Iterator[str]:
    least = min((row.coverage for row in rows), default=1.0)
    if rows and least < 0.95:
        yield f"of some tenants only {least * 100:.0f} % of the period is recorded; nothing is added for the rest"
    if any(row.measured is not None and row.measured < 0.95 for row in rows):
        yield "used and wasted are of pods whose use is known: MEASURED is their part of what was requested"
