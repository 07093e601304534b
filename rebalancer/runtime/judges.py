"""Who judges nodes for kube-scheduler, by the files that say so: our policy, and that of crane-scheduler. Both may be edited at any time.

A broken edit keeps the last good one in force, and is said once.
"""

from __future__ import annotations

import numpy as np
import structlog

from rebalancer.collect.node_columns import NodeColumns, Reading
from rebalancer.policy.model import RebalancePolicy
from rebalancer.policy.reload import PolicySource, Reload
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.settings.model import ExtenderSettings
from rebalancer.steer.crane_policy import CranePolicy
from rebalancer.steer.dynamic import HotReading, Missing
from rebalancer.steer.judging import DynamicJudge, Judge, OwnJudge
from rebalancer.steer.load_annotations import SERIES, zone_named
from rebalancer.steer.pool_marks import PoolFinder, pool_marks

log = structlog.get_logger(__name__)

_COUNTED = {"annotation": None, "code": HotReading.CODE, "product-text": HotReading.PRODUCT_TEXT}
_MISSING = {"low": Missing.LOW, "neutral": Missing.NEUTRAL}


class Judges:
    """One thread asks; nothing here waits for anything but a file."""

    def __init__(self, settings: ExtenderSettings, *, policies: PolicySource, crane: CranePolicySource) -> None:
        self._settings, self._policies, self._crane = settings, policies, crane
        self._policy: RebalancePolicy = policies.current()
        self._crane_policy: CranePolicy = crane.current()

    def refresh(self) -> bool:
        """Read the files again. True when nodes have to be read and judged anew."""
        before = self._policy, self._crane_policy
        reloaded = self._policies.refresh()
        if reloaded.news and reloaded.outcome is Reload.FAILED:
            log.error("policy not reloaded, the last good one stays in force", error=str(reloaded.error))
        elif reloaded.outcome is Reload.CHANGED:
            log.info("policy reloaded", policy=self._policies.current().metadata.name)
        for sentence in self._crane.refresh():
            log.warning("policy of crane-scheduler", notice=sentence)
        self._policy, self._crane_policy = self._policies.current(), self._crane.current()
        return (self._policy is not before[0]) or (self._crane_policy is not before[1])

    def reading(self) -> Reading:
        """How annotations of nodes are read. Our own judge needs none of crane-scheduler's."""
        dynamic = self._settings.judge == "dynamic"
        series = tuple(dict.fromkeys((*SERIES, *self._crane_policy.names))) if dynamic else ()
        zone = zone_named(self._settings.crane_time_zone or self._policy.spec.steering.crane_time_zone)
        return Reading(zone=zone, series=series, pool_of=PoolFinder(self._policy.spec.pools).row)

    def judge(self, columns: NodeColumns, *, now: float) -> Judge:
        """For a view of these nodes."""
        if self._settings.judge == "dynamic":
            counted, missing = _COUNTED[self._settings.hot_value], _MISSING[self._settings.missing]
            return DynamicJudge(self._crane_policy, missing=missing, hot=counted)
        with np.errstate(invalid="ignore"):
            fresh = columns.own.expires_at > now
        load = np.where(fresh[:, None], columns.own.load, np.nan)
        return OwnJudge(pool_marks(self._policy.spec, pool=columns.pool, load=load, allocatable=columns.allocatable))

    @property
    def counts_for_s(self) -> float:
        """How long a binding is counted after it; 0 where none is."""
        if self._settings.judge != "dynamic" or self._settings.hot_value == "annotation":
            return 0.0
        return max((rule.time_range for rule in self._crane_policy.spec.hot_value), default=0.0)
