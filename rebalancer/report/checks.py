"""The preflight report: what was looked at, what was found, what to do about it."""

from __future__ import annotations

from enum import Enum

import msgspec

from rebalancer.plan.model import API_VERSION


class CheckStatus(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    name: str
    status: CheckStatus
    sentence: str
    remedy: str = ""


class CheckReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "CheckReport"
    cluster: str = ""
    created_at: str
    checks: tuple[Check, ...]

    def worst(self) -> CheckStatus:
        """The worst status of all checks; ok when there are none."""
        order = (CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL)
        return max((check.status for check in self.checks), key=order.index, default=CheckStatus.OK)
