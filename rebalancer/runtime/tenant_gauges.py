"""Gauges of tenants: what each of the file holds, uses, is guaranteed and entitled to, borrows, wastes and waits for.

They are the cheap source of `rebalancer accounting`: a mean over any period, times the period, is what was held in it. Unknown has no
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from prometheus_client.core import GaugeMetricFamily

from rebalancer.detect.tenants.accounts import Accounts
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.report.tenants import idle_gpus
from rebalancer.state.arrays import FloatArray

TENANT_GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tenant_guaranteed": ("What a tenant is guaranteed now, in base units.", ("tenant", "resource")),
    "tenant_entitled": ("What a tenant is entitled to now, by what it asks for.", ("tenant", "resource")),
    "tenant_borrowed": ("What a tenant requests beyond its guarantee.", ("tenant", "resource")),
    "tenant_wasted": ("What a tenant requests and does not use, of the pods whose use is known.", ("tenant", "resource")),
    "tenant_pending": ("What a tenant's pods that wait for a node ask for.", ("tenant", "resource")),
    "tenant_pending_pods": ("Pods of a tenant that wait for a node.", ("tenant",)),
    "tenant_oldest_pending_seconds": ("How long the oldest of them has waited.", ("tenant",)),
    "tenant_idle_gpus": ("GPUs that a tenant's pods hold and do not use.", ("tenant",)),
}


def tenant_families(
    accounts: Accounts | None, gpus: GpuReport | None, gauge: Callable[[str], GaugeMetricFamily]
) -> Iterator[GaugeMetricFamily]:
    """Without a sample where there are no tenants."""
    matrices: Mapping[str, FloatArray | None] = {
        "tenant_guaranteed": None if accounts is None else accounts.tree.guaranteed,
        "tenant_entitled": None if accounts is None else accounts.entitled,
        "tenant_borrowed": None if accounts is None else accounts.borrowed,
        "tenant_wasted": None if accounts is None else accounts.wasted,
        "tenant_pending": None if accounts is None else accounts.pending,
    }
    for name, values in matrices.items():
        family = gauge(name)
        if accounts is not None and values is not None:
            for row, column in np.argwhere(np.isfinite(values)).tolist():
                family.add_metric((accounts.tree.names[row], accounts.resources[column]), float(values[row, column]))
        yield family
    yield _line(gauge("tenant_pending_pods"), accounts, None if accounts is None else accounts.pending_pods.astype(np.float64))
    yield _line(gauge("tenant_oldest_pending_seconds"), accounts, None if accounts is None else accounts.oldest_pending_s)
    idle = [] if accounts is None else idle_gpus(accounts, gpus)
    yield _line(gauge("tenant_idle_gpus"), accounts, np.array([np.nan if value is None else value for value in idle], dtype=np.float64))


def _line(family: GaugeMetricFamily, accounts: Accounts | None, values: FloatArray | None) -> GaugeMetricFamily:
    if accounts is not None and values is not None:
        for name, value in zip(accounts.tree.names, values.tolist(), strict=True):
            if np.isfinite(value):
                family.add_metric((name,), float(value))
    return family
