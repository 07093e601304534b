"""What an eviction does to a Job: how many failures it may have, had, and whether a disruption counts as one.

Source: the Job controller's backoffLimit and podFailurePolicy (rules in order, the first that matches decides).
"""

from __future__ import annotations

import math

from rebalancer.kube.wire_workloads import ExitCodesWire, FailureRuleWire, JobWire
from rebalancer.state.tables import JobRules

_DEFAULT_BACKOFF_LIMIT = 6
_SIGTERM_EXIT_CODE = 143


def job_rules(job: JobWire) -> JobRules:
    policy = job.spec.pod_failure_policy
    return JobRules(
        backoff_limit=_backoff_limit(job),
        failed=job.status.failed or 0,
        ignores_disruption=policy is not None and _ignores_disruption(policy.rules or ()),
    )


def wanted(job: JobWire) -> float:
    """Pods that the Job wants to run now: its parallelism, or fewer when fewer completions are left."""
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        return float(parallelism)
    return float(max(0, min(parallelism, job.spec.completions - (job.status.succeeded or 0))))


def _backoff_limit(job: JobWire) -> float:
    if job.spec.backoff_limit is not None:
        return float(job.spec.backoff_limit)
    return math.inf if job.spec.backoff_limit_per_index is not None else float(_DEFAULT_BACKOFF_LIMIT)


def _ignores_disruption(rules: tuple[FailureRuleWire, ...]) -> bool:
    """An evicted pod carries DisruptionTarget, and its containers end with the code of SIGTERM: an earlier rule for that code wins."""
    for rule in rules:
        if rule.on_exit_codes is not None and _matches_sigterm(rule.on_exit_codes):
            return rule.action == "Ignore"
        if any(c.type == "DisruptionTarget" and (c.status or "True") == "True" for c in rule.on_pod_conditions or ()):
            return rule.action == "Ignore"
    return False


def _matches_sigterm(codes: ExitCodesWire) -> bool:
    inside = _SIGTERM_EXIT_CODE in (codes.values or ())
    return inside if codes.operator == "In" else codes.operator == "NotIn" and not inside
