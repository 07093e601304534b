"""Why a node is hot or not, why a pod moves or stays, what a workload may lose: one builder a subject.

Names come from people, so each builder raises UsageError with near matches when there is no such thing, or several. ``queries`` are
the texts of the queries behind the numbers, by what they asked for; whoever collected the state knows them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.detect.sentences import leading_signal
from rebalancer.detect.thresholds import Marks
from rebalancer.guard.gate import Scene
from rebalancer.plan.model import Plan
from rebalancer.report.explanation import Explanation, Fact, Ruling, Verdict
from rebalancer.report.facts import (
    budget_fact,
    disturbance_fact,
    fact,
    gang_facts,
    node_condition_fact,
    node_pod_facts,
    node_signal_facts,
    pod_usage_facts,
    pool_fact,
    workload_facts,
    workload_usage_facts,
)
from rebalancer.report.gpu_facts import node_gpu_facts, pod_gpu_facts
from rebalancer.report.subjects import find_node, find_pod, find_workload
from rebalancer.report.text import counted
from rebalancer.report.verdicts import (
    gate_verdicts,
    node_verdicts,
    planned_move,
    planned_refusal,
    planned_verdicts,
    pod_first_refusal,
)
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node
from rebalancer.state.tables import Phase
from rebalancer.units import format_duration, format_time


def explain_node(
    *, state: ClusterState, findings: Findings, plan: Plan | None, name: str, queries: Mapping[str, str] | None = None
) -> Explanation:
    """Load, packing, windows and class of a node, and what the plan does with its pods. Raises UsageError."""
    row = find_node(state, name)
    verdicts = node_verdicts(plan, name)
    word = NodeClass(int(findings.node_class[row])).word
    quadrant = findings.quadrant[row]
    facts = [
        pool_fact(state, findings, row),
        *node_signal_facts(state, findings, row),
        fact("quadrant", "unknown" if quadrant is None else quadrant.value),
        node_condition_fact(state, row),
        *node_gpu_facts(state, row),
        *node_pod_facts(state, row, _leading(findings, row)),
    ]
    if plan is not None and name in plan.soft_taints:
        keys = next((node.soft_taints for node in plan.nodes if node.name == name), ())
        wanted = f"soft taint{'s' if len(keys) > 1 else ''} {' and '.join(keys)}"
        facts.append(fact("steering", f"the plan wants {wanted} on it, so that replacements go elsewhere"))
    leave = sum(verdict.ruling is Ruling.MOVES for verdict in verdicts)
    stay = sum(verdict.ruling is Ruling.REFUSED for verdict in verdicts)
    arrive = sum(verdict.ruling is Ruling.ARRIVES for verdict in verdicts)
    planned = "" if plan is None else f"; of its pods the plan moves {leave} away and refuses to move {stay}, {arrive} arrive"
    return Explanation(
        cluster=state.cluster,
        created_at=format_time(state.at),
        subject_kind="Node",
        subject=name,
        conclusion=f"{word}: {findings.reasons[row]}{planned}",
        facts=tuple(facts),
        verdicts=verdicts,
        queries=dict(queries or {}),
    )


def _leading(findings: Findings, row: int) -> int | None:
    marks = Marks(
        judged=findings.judged[[row]],
        low=findings.low[[row]],
        target=findings.target[[row]],
        high=findings.high[[row]],
        weight=findings.weight[[row]],
    )
    column = int(leading_signal(findings.load[[row]], marks)[0])
    return None if column < 0 else column


def explain_pod(
    *,
    scene: Scene,
    findings: Findings,
    plan: Plan | None,
    name: str,
    namespace: str | None = None,
    queries: Mapping[str, str] | None = None,
) -> Explanation:
    """Usage, node and owner of a pod, what the plan says of it, and the word of every gate. Raises UsageError."""
    state = scene.state
    pod = find_pod(state, name, namespace)
    workload = int(state.pods.workload[pod])
    gates = gate_verdicts(scene=scene, pod=pod)
    facts = [
        _pod_place(state, findings, pod),
        fact("workload", "none: a bare pod would be gone for good" if workload < 0 else str(state.workloads.refs[workload])),
        _pod_kind(state, pod),
        *gang_facts(scene, np.array([pod], dtype=np.int64)),
        *pod_usage_facts(state, pod),
        *pod_gpu_facts(state, pod),
        budget_fact(state, state.pods.budgets[pod]),
        disturbance_fact(scene, np.array([pod], dtype=np.int64)),
        *([] if workload < 0 else workload_facts(state, scene.history, workload)),
    ]
    if scene.history.breaker:
        facts.append(fact("breaker", scene.history.breaker))
    return Explanation(
        cluster=state.cluster,
        created_at=format_time(state.at),
        subject_kind="Pod",
        subject=state.pod_name(pod),
        conclusion=_pod_conclusion(state, findings, plan, pod, gates),
        facts=tuple(facts),
        verdicts=gates,
        queries=dict(queries or {}),
    )


def _pod_place(state: ClusterState, findings: Findings, pod: int) -> Fact:
    row = int(state.pods.node[pod])
    if row < 0:
        return fact("node", "none: the pod is pending")
    return fact("node", state.nodes.names[row], f"{NodeClass(int(findings.node_class[row])).word}: {findings.reasons[row]}")


def _pod_kind(state: ClusterState, pod: int) -> Fact:
    pods = state.pods
    ready = "Ready" if pods.ready[pod] else "not Ready"
    age = format_duration(state.at - float(pods.created_at[pod]))
    return fact(
        "pod",
        f"{Phase(int(pods.phase[pod])).name.lower()}, {ready}, {age} old",
        "terminating" if pods.terminating[pod] else "",
        f"class {pods.classes[pod].value}, priority {int(pods.priority[pod])}",
        f"local volumes {', '.join(pods.volumes[pod].local)}" if pods.volumes[pod].local else "",
    )


def _pod_conclusion(state: ClusterState, findings: Findings, plan: Plan | None, pod: int, gates: tuple[Verdict, ...]) -> str:
    uid = state.pods.uids[pod]
    move, refused = planned_move(plan, uid), planned_refusal(plan, uid)
    if move is not None:
        return f"moves {move.whither}: {move.reason}"
    if refused is not None:
        return f"stays, refused by {refused.gate}: {refused.reason}"
    if not gates:
        return "stays: it is not running on a node"
    against = [verdict for verdict in gates if verdict.ruling is Ruling.REFUSED]
    row = int(state.pods.node[pod])
    if findings.node_class[row] != NodeClass.HOT:
        word = NodeClass(int(findings.node_class[row])).word
        also = f"; were it hot, {against[0].gate} would refuse the pod: {against[0].sentence}" if against else "; no gate is against a move"
        return f"stays: nothing has to leave its node {state.nodes.names[row]}, which is {word}{also}"
    if against:
        return f"stays, refused by {against[0].gate}: {against[0].sentence}"
    return "no gate is against a move" if plan is None else "stays: no gate is against a move, but the plan cools its node without it"


def explain_workload(
    *,
    scene: Scene,
    findings: Findings,
    plan: Plan | None,
    name: str,
    namespace: str | None = None,
    kind: str | None = None,
    queries: Mapping[str, str] | None = None,
) -> Explanation:
    """Replicas, budgets, usage and history of a workload, and a verdict for each of its pods. Raises UsageError."""
    state = scene.state
    row = find_workload(state, name, namespace, kind)
    ref = state.workloads.refs[row]
    pods = np.flatnonzero(on_a_node(state) & (state.pods.workload == row))
    budgets = tuple(sorted({budget for pod in pods.tolist() for budget in state.pods.budgets[pod]}))
    words = planned_verdicts(plan)
    verdicts = tuple(_workload_pod(scene, findings, words, pod) for pod in pods.tolist())
    nodes = len(np.unique(state.pods.node[pods]))
    facts = [
        *workload_facts(state, scene.history, row),
        fact("pods", f"{len(pods)} on {counted(nodes, 'node')}"),
        *gang_facts(scene, pods),
        *workload_usage_facts(state, pods),
        budget_fact(state, budgets),
        *([disturbance_fact(scene, pods)] if len(pods) else []),
    ]
    moves = sum(verdict.ruling is Ruling.MOVES for verdict in verdicts)
    refused = sum(verdict.ruling is Ruling.REFUSED for verdict in verdicts)
    planned = "" if plan is None else f"the plan moves {moves} of {counted(len(pods), 'pod')}; "
    return Explanation(
        cluster=state.cluster,
        created_at=format_time(state.at),
        subject_kind=ref.kind,
        subject=f"{ref.namespace}/{ref.name}",
        conclusion=f"{planned}{refused} refused, {len(pods) - moves - refused} free to move without need",
        facts=tuple(facts),
        verdicts=verdicts,
        queries=dict(queries or {}),
    )


def _workload_pod(scene: Scene, findings: Findings, planned: Mapping[str, Verdict], pod: int) -> Verdict:
    state = scene.state
    subject = state.pod_name(pod)
    if state.pods.uids[pod] in planned:
        return planned[state.pods.uids[pod]]
    refusal = pod_first_refusal(scene=scene, pod=pod)
    if refusal is not None:
        return Verdict(subject=subject, ruling=Ruling.REFUSED, gate=refusal.gate, sentence=refusal.reason, retryable=refusal.retryable)
    row = int(state.pods.node[pod])
    word = NodeClass(int(findings.node_class[row])).word
    return Verdict(subject=subject, ruling=Ruling.ALLOWED, sentence=f"its node {state.nodes.names[row]} is {word}")
