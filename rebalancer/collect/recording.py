"""Recording rules: the heavy queries of the built-in signals, evaluated by Prometheus itself, so that a cycle only looks their results up.

What is recorded is the very query that would be asked otherwise, under a name that says the signal, the exporter, the statistic and the
window: a policy with another window asks for another name, finds nothing there, and asks the query itself.

A recorded value hides what the query would show. Prometheus gives it out for five more minutes when its rule is no longer evaluated, and
asked for its time stamp it tells when the rule was evaluated, not when a node was measured. So the newest raw time stamp of each node is
recorded beside the usage, in the same evaluation, and a look-up tells the older of the two: the age of the sample that the value was made
of. What was not evaluated for ``maxAge`` is not given out at all.

All rules of a signal are one group, which Prometheus evaluates for one moment: a node and its pods are measured over the same window.
Nothing here reads the result of another rule; rulers that write elsewhere do not promise it in time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from rebalancer.collect.queries import (
    POD_LABELS,
    BuiltInSignal,
    NodeSource,
    PodSource,
    duration,
    live_query,
    pod_labels,
    pod_usage_query,
    shard_matcher,
    usage_query,
)
from rebalancer.collect.signals import built_in_signals
from rebalancer.policy.model import Spec
from rebalancer.units import format_duration

LONGEST_INTERVAL_S = 30.0
SHORTEST_INTERVAL_S = 1.0
WORD = "recorded"
"""What is added to the name of a source whose results are looked up."""

_HEAD = """\
# Recording rules for the built-in signals, window {window}, {statistic}: each heavy query becomes a look-up (docs/large-installations.md).
# Written by `rebalancer policy rules`. The names hold the window and the statistic: for another policy, write another file.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    record: str
    expr: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Evaluated together, for one moment."""

    name: str
    interval_s: float
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RecordedNodes:
    """Names of the two series that stand for a source of nodes."""

    usage: str
    stamp: str
    """Unix time of the newest raw sample behind ``usage``."""


def recorded_nodes(signal: BuiltInSignal, source: NodeSource, spec: Spec) -> RecordedNodes:
    name, ending = signal.signal.name, _ending(source.name, spec)
    return RecordedNodes(
        usage=f"rebalancer:node_{name}_{signal.signal.unit}:{ending}", stamp=f"rebalancer:node_{name}_stamp_seconds:{ending}"
    )


def recorded_pods(signal: BuiltInSignal, source: PodSource, spec: Spec, *, node_label: str | None) -> str:
    """A node label that the queries would not keep by themselves is part of the name, since the labels of a recorded series are fixed."""
    added = pod_labels(node_label)[len(POD_LABELS) :]
    kept = "".join(f"_by_{label}" for label in added)
    return f"rebalancer:pod_{signal.signal.name}_{signal.signal.unit}:{_ending(source.name, spec)}{kept}"


def nodes_lookup(names: RecordedNodes, *, max_age_s: float) -> str:
    """In place of `usage_query`: what was evaluated within ``max_age_s`` before each point, without the name of the recorded series."""
    return f"max without () ({_evaluated_within(names.usage, max_age_s)})"


def pods_lookup(name: str, *, labels: tuple[str, ...], namespaces: Sequence[str] | None, max_age_s: float) -> str:
    """In place of `pod_usage_query`, with its labels: two replicas that both evaluate the rules give one series."""
    shard = "" if namespaces is None else f"{{{shard_matcher(namespaces)}}}"
    return f"max by ({', '.join(labels)}) ({_evaluated_within(name + shard, max_age_s)})"


def live_lookup(names: RecordedNodes) -> str:
    """In place of `live_query`: the time of the newest raw sample, or of the evaluation of the usage where that is older.

    The two are rules of one group, but each may fail alone. A node of which either is missing is left out.
    """
    evaluated = f"timestamp({names.usage})"
    return f"({names.stamp} < {evaluated}) or ({evaluated} and {names.stamp})"


def last_seen_lookup(names: RecordedNodes, *, lookback_s: float) -> str:
    """In place of `last_seen_query`."""
    return f"max_over_time({names.stamp}[{duration(lookback_s)}])"


def rule_groups(spec: Spec, *, node_label: str | None) -> tuple[RuleGroup, ...]:
    """One group a built-in signal that the policy judges by and does not replace by queries of its own. ``node_label``: a forced one."""
    own, interval_s = {signal.name for signal in spec.signals}, _interval_s(spec)
    known = built_in_signals()
    return tuple(
        RuleGroup(f"rebalancer-{name}", interval_s, _rules(known[name], spec, node_label=node_label))
        for name in spec.judged_signals
        if name in known and name not in own
    )


def rules_text(spec: Spec, *, node_label: str | None) -> str:
    """The rule file that belongs to a policy."""
    groups = [
        {
            "name": group.name,
            "interval": duration(group.interval_s),
            "rules": [{"record": rule.record, "expr": rule.expr} for rule in group.rules],
        }
        for group in rule_groups(spec, node_label=node_label)
    ]
    head = _HEAD.format(window=format_duration(spec.metrics.window), statistic=spec.metrics.statistic)
    return head + yaml.safe_dump({"groups": groups}, sort_keys=False, width=10_000)


def _rules(signal: BuiltInSignal, spec: Spec, *, node_label: str | None) -> tuple[Rule, ...]:
    window_s, statistic = spec.metrics.window, spec.metrics.statistic
    rules: list[Rule] = []
    for source in signal.nodes:
        names = recorded_nodes(signal, source, spec)
        rules.append(Rule(names.usage, usage_query(source.usage, window_s=window_s, statistic=statistic)))
        rules.append(Rule(names.stamp, live_query(source)))
    for pod_source in signal.pods:
        text = pod_usage_query(pod_source, window_s=window_s, statistic=statistic, node_label=node_label)
        rules.append(Rule(recorded_pods(signal, pod_source, spec, node_label=node_label), text))
    return tuple(rules)


def _interval_s(spec: Spec) -> float:
    """Often enough that the time since the last evaluation is small against the step, the window and ``maxAge``; whole seconds."""
    wanted = min(LONGEST_INTERVAL_S, spec.confirm.step / 2, spec.metrics.window / 4, spec.metrics.max_age / 4)
    return max(SHORTEST_INTERVAL_S, float(int(wanted)))


def _ending(source: str, spec: Spec) -> str:
    """``node_exporter_mean5m``."""
    slug = re.sub(r"[^a-z0-9]+", "_", source.lower()).strip("_")
    return f"{slug}_{spec.metrics.statistic}{_span(spec.metrics.window)}"


def _span(seconds: float) -> str:
    """``5m``, ``90s``, ``1500ms``: one spelling a length, in the largest unit that it is a whole number of."""
    if seconds % 60:
        return duration(seconds)
    return f"{round(seconds / 60)}m"


def _evaluated_within(selector: str, max_age_s: float) -> str:
    return f"{selector} unless timestamp({selector}) < time() - {max_age_s:g}"
