"""One document of every kind, by name."""

from __future__ import annotations

import msgspec

from rebalancer.report.explain import explain_node, explain_pod, explain_workload
from rebalancer.report.gpus import gpus_report
from rebalancer.report.skew import skew_report
from tests.report import cases, samples


def all_documents() -> dict[str, msgspec.Struct]:
    state = cases.state()
    findings, plan, scene = cases.findings(state), cases.plan(state), cases.scene(state)
    return {
        "plan": samples.plan(),
        "checks": samples.checks(),
        "demo": samples.demo(),
        "skew": skew_report(state=state, findings=findings),
        "gpus": gpus_report(state=state, holders=None),
        "node": explain_node(state=state, findings=findings, plan=plan, name=cases.HOT, queries={"node cpu": "sum by (node) (x)"}),
        "pod": explain_pod(scene=scene, findings=findings, plan=plan, name=cases.WEB_POD),
        "workload": explain_workload(scene=scene, findings=findings, plan=plan, name="web"),
    }
