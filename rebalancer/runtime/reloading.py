"""The files of the operator, read again before each cycle: a broken edit keeps the last good one, and is told once."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from rebalancer.policy.reload import Reload
from rebalancer.policy.timing import judge_timing
from rebalancer.runtime.session import Session

log = structlog.get_logger(__name__)


def reload_orders(session: Session, *, told: Callable[[Reload], None]) -> None:
    """Policy and tenants. ``told``: hears of each file that is not as it was."""
    _reload_policy(session, told)
    _reload_tenants(session, told)


def _reload_policy(session: Session, told: Callable[[Reload], None]) -> None:
    reloaded = session.policies.refresh()
    if reloaded.outcome is not Reload.UNCHANGED:
        told(reloaded.outcome)
    if reloaded.news and reloaded.outcome is Reload.FAILED:
        log.error("policy not reloaded, the last good one stays in force", error=str(reloaded.error))
    elif reloaded.outcome is Reload.CHANGED:
        orders = session.orders
        log.info("policy reloaded", policy=orders.policy.metadata.name, mode=orders.mode.value, mode_from=orders.mode_source)
        for fault in judge_timing(orders.policy.spec).warnings:
            log.warning("policy", warning=str(fault))
    elif reloaded.news:
        log.info("policy file is as it was before the broken edit")


def _reload_tenants(session: Session, told: Callable[[Reload], None]) -> None:
    reloaded = session.tenants.refresh()
    if reloaded.outcome is not Reload.UNCHANGED:
        told(reloaded.outcome)
    if reloaded.news and reloaded.outcome is Reload.FAILED:
        log.error("tenants not reloaded, the last good ones stay in force", error=str(reloaded.error))
    elif reloaded.outcome is Reload.CHANGED:
        log.info("tenants reloaded", tenants=sum(1 for _ in session.tenants.current().spec.leaves()))
    elif reloaded.news:
        log.info("tenants file is as it was before the broken edit")
