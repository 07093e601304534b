"""What a query of a signal is made of, and how its text is written for a window, a statistic and a shard of the pods.

Nothing here knows a metric's name: those are in `signals`, one file a signal. Placeholders are in braces that PromQL has no use for:
``{window}`` the window, ``{by}`` the labels that keep a pod's node known, ``{shard}`` a matcher on the namespace, ``{lookback}`` how far
back a raw sample is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rebalancer.state.tables import Signal

Statistic = Literal["mean", "max", "p95"]
Subject = Literal["nodes", "pods", "age", "capacity"]

MOMENT_S = 120.0
"""The longest stretch over which a counter's rate is one moment of a maximum or a percentile: four scrapes of 30 seconds."""
LOOKBACK_STEP_S = 5.0
"""How finely the last sample of a series that has gone is searched for."""
POD_LABELS = ("namespace", "pod", "exported_namespace", "exported_pod", "node", "instance")
"""``exported_*`` are the pod's own where Prometheus was told not to honour labels; the last two say on which node it was measured."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A usage over time. ``mean`` is its mean over ``{window}``; ``moment`` its value at one moment, the last ``{window}`` of a counter."""

    mean: str
    moment: str
    is_rate: bool = False


@dataclass(frozen=True, slots=True)
class NodeSource:
    """One way to measure all nodes. ``raw`` selects one raw series a node, by which the age of its samples is told."""

    name: str
    usage: Expression
    raw: str
    raw_without: str = ""
    """Labels of ``raw`` that ``usage`` does not have."""


@dataclass(frozen=True, slots=True)
class PodSource:
    """One way to measure all pods."""

    name: str
    usage: Expression


@dataclass(frozen=True, slots=True)
class BuiltInSignal:
    """Sources in the order in which they are tried."""

    signal: Signal
    maximum: float
    """Above it a sample is absurd, whatever the node: a counter gone wild, a unit mistaken."""
    nodes: tuple[NodeSource, ...]
    pods: tuple[PodSource, ...]


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query as ``rebalancer check`` shows it."""

    name: str
    signal: str
    text: str
    subject: Subject
    recorded: bool = False
    """It looks up what a recording rule has computed."""


def counter(rate: str) -> Expression:
    """A counter's ``rate`` over ``{window}`` is its mean over the window, and over a shorter one its value at a moment."""
    return Expression(mean=rate, moment=rate, is_rate=True)


def duration(seconds: float) -> str:
    """A PromQL duration: whole seconds, or milliseconds."""
    return f"{round(seconds)}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"


def usage_query(expression: Expression, *, window_s: float, statistic: Statistic) -> str:
    """The text that yields the ``statistic`` of the usage over the window.

    Maximum and percentile are taken over moments inside the window: each moment is itself a rate over at most `MOMENT_S`, and the
    subquery is shorter by as much, so that nothing from before the window enters.
    """
    if statistic == "mean":
        return expression.mean.replace("{window}", duration(window_s))
    moment_s = min(MOMENT_S, window_s / 2)
    inner = expression.moment.replace("{window}", duration(moment_s))
    over = f"(({inner})[{duration(window_s - moment_s)}:{duration(moment_s / 4)}])"
    return f"max_over_time{over}" if statistic == "max" else f"quantile_over_time(0.95, {over[1:-1]})"


def pod_usage_query(
    source: PodSource, *, window_s: float, statistic: Statistic, node_label: str | None = None, namespaces: Sequence[str] | None = None
) -> str:
    """As `usage_query`; ``namespaces`` narrows it to a shard, None asks for all."""
    shard = "" if namespaces is None else f", {shard_matcher(namespaces)}"
    text = usage_query(source.usage, window_s=window_s, statistic=statistic)
    return text.replace("{by}", ", ".join(pod_labels(node_label))).replace("{shard}", shard)


def pod_labels(node_label: str | None) -> tuple[str, ...]:
    """The labels that a pod's usage keeps."""
    return (*POD_LABELS, node_label) if node_label and node_label not in POD_LABELS else POD_LABELS


def shard_matcher(namespaces: Sequence[str]) -> str:
    """A matcher on the namespace, as it stands between the braces of a selector."""
    return f"namespace=~{quoted('|'.join(map(re_literal, namespaces)))}"


def deviation_query(usage: str, *, lookback_s: float, step_s: float) -> str:
    """Standard deviation of the usages that the query ``usage`` yields, ``step_s`` apart, over the last ``lookback_s``."""
    return f"stddev_over_time(({usage})[{duration(lookback_s)}:{duration(step_s)}])"


def live_query(source: NodeSource) -> str:
    """Unix time of the newest raw sample of each node's series; a series that Prometheus knows to be gone is left out."""
    return f"max without ({source.raw_without}) (timestamp({source.raw}))"


def last_seen_query(source: NodeSource, *, lookback_s: float) -> str:
    """The same for series that may be gone: Prometheus forgets a failed target at once, a single missed scrape is no reason to."""
    inner = f"timestamp({source.raw})[{duration(lookback_s)}:{duration(LOOKBACK_STEP_S)}]"
    return f"max without ({source.raw_without}) (max_over_time({inner}))"


def own_query(text: str, *, window_s: float) -> str:
    """A query of the operator's, with the window put in."""
    return text.replace("{window}", duration(window_s))


def re_literal(text: str) -> str:
    """Text as a regular expression that matches it alone."""
    return re.sub(r"([^A-Za-z0-9_-])", r"\\\1", text)


def quoted(text: str) -> str:
    """Text as a PromQL string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
