"""Hypothesis strategies for whole clusters: small, odd, with hot nodes, budgets, affinity, taints and holes in the metrics."""

from __future__ import annotations

from hypothesis import strategies as st

from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Constraints, PodTerm, Requirement, Selector, Taint, Toleration
from tests.support.builder import NodeSpec, PodSpec, budget, cluster, node, pod, workload

LOADS = st.floats(min_value=0.0, max_value=1.3)
APART = Constraints(anti_affinity=(PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("w0",)),))),))
TOLERANT = Constraints(tolerations=(Toleration(operator="Exists"),))
PINNED = Constraints(node_selector=(("disk", "fast"),))


@st.composite
def node_specs(draw: st.DrawFn, name: str) -> NodeSpec:
    known = draw(st.booleans()) or draw(st.booleans())
    load = {"cpu": draw(LOADS), "memory": draw(st.floats(min_value=0.0, max_value=0.9))}
    unknown = {} if known else {draw(st.sampled_from(["cpu", "memory"])): "no sample"}
    return node(
        name,
        cpu=draw(st.sampled_from([4.0, 8.0, 16.0])),
        load=load,
        unknown=unknown,
        zone=draw(st.sampled_from([None, "a", "b"])),
        labels=draw(st.sampled_from([{}, {"disk": "fast"}])),
        taints=draw(st.sampled_from([(), (Taint("dedicated", "x"),), (Taint("dedicated", "x", "PreferNoSchedule"),)])),
        unschedulable=draw(st.integers(0, 9)) == 0,
        ready=draw(st.integers(0, 9)) != 0,
    )


@st.composite
def pod_specs(draw: st.DrawFn, name: str, nodes: list[str], budgets: list[str]) -> PodSpec:
    uses = {"cpu": draw(st.floats(min_value=0.0, max_value=4.0)), "memory": draw(st.floats(min_value=0.0, max_value=8e9))}
    if draw(st.integers(0, 7)) == 0:
        del uses[draw(st.sampled_from(["cpu", "memory"]))]
    return pod(
        name,
        on=draw(st.sampled_from(nodes)),
        workload=draw(st.sampled_from(["w0", "w1", "w2", "w3", None])),
        cpu=draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        uses=uses,
        constraints=draw(st.sampled_from([Constraints(), Constraints(), APART, TOLERANT, PINNED])),
        priority=draw(st.sampled_from([0, 0, 1000, 2_000_000_000])),
        ready=draw(st.integers(0, 5)) != 0,
        terminating=draw(st.integers(0, 9)) == 0,
        age_s=draw(st.sampled_from([60.0, 86400.0])),
        annotations=draw(st.sampled_from([{}, {}, {"rebalancer.dev/evict": "false"}, {"rebalancer.dev/evict": "true"}])),
        budgets=draw(st.lists(st.sampled_from(budgets), max_size=2, unique=True)) if budgets else [],
    )


@st.composite
def clusters(draw: st.DrawFn, *, max_nodes: int = 8, max_pods: int = 24) -> ClusterState:
    names = [f"n{i}" for i in range(draw(st.integers(2, max_nodes)))]
    budgets = [
        budget(f"b{i}", allowed=draw(st.integers(0, 3)), healthy=draw(st.integers(0, 5)), desired=draw(st.integers(0, 4)))
        for i in range(draw(st.integers(0, 3)))
    ]
    pods = [draw(pod_specs(f"p{i:02d}", names, [b.name for b in budgets])) for i in range(draw(st.integers(0, max_pods)))]
    workloads = [workload(f"w{i}", replicas=draw(st.integers(1, 6))) for i in range(4)]
    return cluster(nodes=[draw(node_specs(name)) for name in names], pods=pods, workloads=workloads, budgets=budgets)
