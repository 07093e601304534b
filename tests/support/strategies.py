"""Hypothesis strategies for whole clusters: some hot nodes, some cool ones, mostly healthy pods, and a few oddities of every kind.

Mostly healthy on purpose: a cluster of nothing but oddities has no plan, and a property of plans that are always empty says nothing.
"""

from __future__ import annotations

from hypothesis import strategies as st

from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Constraints, PodTerm, Requirement, Selector, Taint, Toleration
from tests.support.builder import NodeSpec, PodSpec, budget, cluster, node, pod, workload

APART = Constraints(anti_affinity=(PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("w0",)),))),))
TOLERANT = Constraints(tolerations=(Toleration(operator="Exists"),))
PINNED = Constraints(node_selector=(("disk", "fast"),))
ODD_NODES = ["", "", "", "", "unknown cpu", "unknown memory", "cordoned", "not ready", "tainted", "soft", "fast"]
ODD_PODS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "unready",
    "terminating",
    "young",
    "critical",
    "opt-out",
    "bare",
    "apart",
    "tolerant",
    "pinned",
    "blind",
]


@st.composite
def node_specs(draw: st.DrawFn, name: str, *, hot: bool) -> NodeSpec:
    odd = draw(st.sampled_from(ODD_NODES))
    cpu = draw(st.floats(0.66, 1.2) if hot else st.floats(0.0, 0.55))
    return node(
        name,
        cpu=draw(st.sampled_from([8.0, 16.0])),
        load={"cpu": cpu, "memory": draw(st.floats(0.0, 0.6))},
        unknown={odd.split()[1]: "no sample"} if odd.startswith("unknown") else {},
        zone=draw(st.sampled_from([None, "a", "b"])),
        labels={"disk": "fast"} if odd == "fast" else {},
        taints={"tainted": (Taint("dedicated", "x"),), "soft": (Taint("dedicated", "x", "PreferNoSchedule"),)}.get(odd, ()),
        unschedulable=odd == "cordoned",
        ready=odd != "not ready",
    )


@st.composite
def pod_specs(draw: st.DrawFn, name: str, nodes: list[str], budgets: list[str]) -> PodSpec:
    odd = draw(st.sampled_from(ODD_PODS))
    uses = {"cpu": draw(st.floats(0.0, 4.0)), "memory": draw(st.floats(0.0, 4e9))}
    if odd == "blind":
        del uses[draw(st.sampled_from(["cpu", "memory"]))]
    covered = budgets and draw(st.booleans())
    return pod(
        name,
        on=draw(st.sampled_from(nodes)),
        workload=None if odd == "bare" else draw(st.sampled_from([f"w{i}" for i in range(8)])),
        cpu=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        uses=uses,
        constraints={"apart": APART, "tolerant": TOLERANT, "pinned": PINNED}.get(odd, Constraints()),
        priority=2_000_000_000 if odd == "critical" else draw(st.sampled_from([0, 1000])),
        ready=odd != "unready",
        terminating=odd == "terminating",
        age_s=60.0 if odd == "young" else 86400.0,
        annotations={"rebalancer.dev/evict": "false"} if odd == "opt-out" else {},
        budgets=draw(st.lists(st.sampled_from(budgets), max_size=2, unique=True)) if covered else [],
    )


@st.composite
def clusters(draw: st.DrawFn, *, max_pods: int = 24) -> ClusterState:
    hot = [f"hot{i}" for i in range(draw(st.integers(1, 3)))]
    cool = [f"cool{i}" for i in range(draw(st.integers(1, 5)))]
    budgets = [
        budget(f"b{i}", allowed=draw(st.integers(0, 2)), healthy=draw(st.integers(0, 5)), desired=draw(st.integers(0, 4)))
        for i in range(draw(st.integers(0, 2)))
    ]
    places = [*hot, *hot, *hot, *cool]
    pods = [draw(pod_specs(f"p{i:02d}", places, [b.name for b in budgets])) for i in range(draw(st.integers(1, max_pods)))]
    workloads = [workload(f"w{i}", replicas=draw(st.sampled_from([3, 5, 1]))) for i in range(8)]
    nodes = [draw(node_specs(name, hot=True)) for name in hot] + [draw(node_specs(name, hot=False)) for name in cool]
    return cluster(nodes=nodes, pods=pods, workloads=workloads, budgets=budgets)
