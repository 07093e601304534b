"""Sentences with numbers about a node, a pod and a workload: what `explain` is made of.

An unknown number is called unknown, with the reason, and never takes part in a sum.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings
from rebalancer.guard.gate import Scene
from rebalancer.plan.disturbance import Disturbance
from rebalancer.report.explanation import Fact
from rebalancer.report.text import counted
from rebalancer.state.arrays import IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.ledger import node_residual, node_usage, on_a_node
from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_duration, format_percent, format_quantity, format_time

_SHOWN = 5
_RECENT = 3


def fact(topic: str, *parts: str) -> Fact:
    return Fact(topic=topic, sentence="; ".join(part for part in parts if part))


def node_signal_facts(state: ClusterState, findings: Findings, row: int) -> list[Fact]:
    """One fact a signal: load, packing, marks, windows, age."""
    usage = node_usage(state)[row]
    return [_node_signal(state, findings, row, column, float(usage[column])) for column in range(len(state.signals))]


def _node_signal(state: ClusterState, findings: Findings, row: int, column: int, usage: float) -> Fact:
    signal, load = state.signals[column], float(findings.load[row, column])
    capacity, age = float(state.nodes.capacity[row, column]), float(state.nodes.sample_age_s[row, column])
    packing = float(findings.packing[row, column])
    if np.isnan(load):
        why = "the node is not Ready" if not state.nodes.ready[row] else state.nodes.unknown.get((row, column), "no sample")
        now = f"load is unknown: {why}"
    else:
        used, whole = format_quantity(usage, signal.unit), format_quantity(capacity, signal.unit)
        now = f"load {format_percent(load)} ({used} of {whole})"
    packed = "" if np.isnan(packing) else f"packed to {format_percent(packing)} by requests"
    if findings.judged[row, column]:
        marks = [f"{word} {format_percent(float(mark[row, column]))}" for word, mark in _marks(findings)]
        judged = ", ".join(marks)
    else:
        judged = "its pool is not judged by it"
    return fact(
        signal.name,
        now,
        packed,
        judged,
        _windows(state, findings, row, column),
        "" if np.isnan(age) else f"newest sample {format_duration(round(age))} old",
    )


def _marks(findings: Findings) -> tuple[tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]], ...]:
    return ("low", findings.low), ("target", findings.target), ("high", findings.high)


def _windows(state: ClusterState, findings: Findings, row: int, column: int) -> str:
    if not findings.judged[row, column] or findings.windows == 0:
        return ""
    history = state.nodes.history[row, column]
    known = history[~np.isnan(history)]
    words = f"over high in {findings.over[row, column]} of the last {findings.windows} windows of {format_duration(state.step_s)}"
    if known.size == 0:
        return f"{words} (all of them unknown)"
    missing = history.size - known.size
    lost = f", {missing} unknown" if missing else ""
    return f"{words} (lowest {format_percent(float(known.min()))}, highest {format_percent(float(known.max()))}{lost})"


def pool_fact(state: ClusterState, findings: Findings, row: int) -> Fact:
    pool = int(findings.pool[row])
    if pool < 0:
        return fact("pool", "no pool of the policy claims it, so it is never a source or a destination")
    spread = [
        f"mean {signal.name} load {format_percent(float(findings.pool_mean[pool, column]))}, "
        f"spread {format_percent(float(findings.pool_stddev[pool, column]))}"
        for column, signal in enumerate(state.signals)
        if findings.judged[row, column]
    ]
    return fact("pool", findings.pools[pool].name, *spread)


def node_condition_fact(state: ClusterState, row: int) -> Fact:
    nodes = state.nodes
    taints = ", ".join(f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}" for taint in nodes.taints[row])
    return fact(
        "condition",
        "Ready" if nodes.ready[row] else "not Ready",
        "cordoned" if nodes.unschedulable[row] else "",
        f"taints {taints}" if taints else "no taints",
    )


def node_pod_facts(state: ClusterState, row: int, column: int | None) -> list[Fact]:
    """How many pods there are, what no pod explains, and the largest users of the signal in ``column``."""
    here = np.flatnonzero(on_a_node(state) & (state.pods.node == row))
    if column is None:
        return [fact("pods", counted(len(here), "pod"))]
    signal = state.signals[column]
    usage = state.pods.usage[here, column]
    unknown = int(np.isnan(usage).sum())
    residual = float(node_residual(state)[row, column])
    of_no_pod = "" if np.isnan(residual) else f"{format_quantity(residual, signal.unit)} of {signal.name} not explained by a measured pod"
    facts = [fact("pods", f"{counted(len(here), 'pod')}, {unknown} of them with unknown {signal.name} usage", of_no_pod)]
    known = here[~np.isnan(usage)]
    largest = known[np.argsort(-state.pods.usage[known, column], kind="stable")][:_SHOWN]
    if len(largest):
        shown = (f"{state.pod_name(int(pod))} {format_quantity(float(state.pods.usage[pod, column]), signal.unit)}" for pod in largest)
        facts.append(fact(f"largest {signal.name} users", ", ".join(shown)))
    return facts


def pod_usage_facts(state: ClusterState, pod: int) -> list[Fact]:
    """Usage against request, one fact a signal."""
    return [_pods_usage(state, np.array([pod], dtype=np.int64), column) for column in range(len(state.signals))]


def workload_usage_facts(state: ClusterState, pods: IntArray) -> list[Fact]:
    """The same summed over the pods; ``pods`` (n,) rows."""
    return [_pods_usage(state, pods, column) for column in range(len(state.signals))]


def _pods_usage(state: ClusterState, pods: IntArray, column: int) -> Fact:
    signal = state.signals[column]
    usage, estimated = state.pods.usage[pods, column], state.pods.estimated[pods, column]
    known = ~np.isnan(usage)
    asked = None
    if signal.resource is not None and signal.resource in state.resource_index:
        asked = state.pods.request[pods, state.resource_index[signal.resource]]
    if not known.any():
        requested = "" if asked is None else f"requests {format_quantity(float(asked.sum()), signal.unit)}"
        return fact(signal.name, "usage is unknown: no sample", requested)
    used = float(usage[known].sum())
    words = f"uses {format_quantity(used, signal.unit)}"
    if asked is not None:
        wanted = float(asked[known].sum())
        share = f" ({format_percent(used / wanted)} of it)" if wanted > 0 else ""
        words += f", requests {format_quantity(wanted, signal.unit)}{share}"
    several = len(pods) > 1
    lost, guessed = int((~known).sum()), int((estimated & known).sum())
    return fact(
        signal.name,
        words,
        f"{lost} of {counted(len(pods), 'pod')} with unknown usage, in neither number" if lost else "",
        f"{guessed} of them estimated, too young to be measured" if guessed and several else "",
        "estimated, the pod is too young to be measured" if guessed and not several else "",
    )


def disturbance_fact(scene: Scene, pods: IntArray) -> Fact:
    """What an eviction of one of the pods, ``pods`` (n,) rows, would count as."""
    gain = scene.spec.gain
    weighed = Disturbance(scene.state, scene.history, gain)
    weights = weighed.weights(pods)
    least, most = f"{weights.min():.1f}", f"{weights.max():.1f}"
    weight = least if least == most else f"{least} to {most}"
    words = f"an eviction weighs {weight}, so a move must win {gain.disruption_cost:g} times as much (gain.disruptionCost)"
    return fact("disturbance", words, weighed.words(int(pods[0])))


def gang_facts(scene: Scene, pods: IntArray) -> list[Fact]:
    """Of the gangs that the pods are in: what each needs, and how it may move; nothing for pods in none."""
    rules, first = scene.gang_rules, dict[int, int]()
    for pod in pods.tolist() if len(scene.state.gangs) else []:
        first.setdefault(rules.of_pod(pod), pod)
    first.pop(-1, None)
    facts = []
    for gang, pod in list(first.items())[:_SHOWN]:
        spare, barred = rules.spare(gang), rules.barred(gang)
        if spare:
            moves = f"{counted(spare, 'member')} may move, one by one"
        else:
            moves = f"it does not move: {barred}" if barred else "it moves whole, or not at all"
        facts.append(fact("gang", rules.words(gang, pod).removeprefix("gang "), f"{rules.working(gang)} are Ready", moves))
    return facts


def budget_fact(state: ClusterState, rows: tuple[int, ...]) -> Fact:
    if not rows:
        return fact("disruption budgets", "none")
    words = []
    for row in rows:
        rules = state.budgets[row]
        stale = ", stale" if rules.stale else ""
        words.append(f"{rules} allows {rules.allowed} ({rules.current_healthy} healthy of {rules.desired_healthy} desired{stale})")
    return fact("disruption budgets", *words)


def workload_facts(state: ClusterState, history: History, row: int) -> list[Fact]:
    """Replicas, rollout, autoscaling, and what was done to it before."""
    table = state.workloads
    ref = table.refs[row]
    facts = [fact("replicas", f"{_count(table.ready[row])} ready of {_count(table.replicas[row])} wanted", _rollout(table.rollout[row]))]
    if not np.isnan(table.scaled_at[row]):
        facts.append(fact("autoscaler", f"scaled it at {format_time(float(table.scaled_at[row]))}"))
    job = table.jobs[row]
    if job is not None:
        ignores = "ignores disruptions" if job.ignores_disruption else "counts an eviction as a failure"
        facts.append(fact("job", f"{job.failed} failed pods of a back-off limit of {_count(job.backoff_limit)}", ignores))
    return [*facts, *past_facts(history, ref)]


def past_facts(history: History, ref: WorkloadRef) -> list[Fact]:
    facts = []
    past = [eviction for eviction in history.evictions if eviction.workload == ref]
    if past:
        latest = ", ".join(f"{format_time(one.at)} {one.pod} from {one.source}" for one in past[-_RECENT:])
        facts.append(fact("past evictions", f"{len(past)} remembered", f"latest: {latest}"))
    if ref in history.in_flight:
        facts.append(fact("in flight", f"the replacement of {history.in_flight[ref].pod} is not Ready yet"))
    if ref in history.quarantine:
        rest = history.quarantine[ref]
        facts.append(
            fact("quarantine", f"until {format_time(rest.until)}: replacements came back to {rest.node} ({counted(rest.returns, 'time')})")
        )
    return facts


def _rollout(reason: str) -> str:
    return f"rollout in progress: {reason}" if reason else ""


def _count(value: float) -> str:
    return "an unknown number" if not np.isfinite(value) else f"{value:.0f}"
