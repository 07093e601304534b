"""One small cluster that every builder of documents is asked about: a hot node, a cool one, one that nobody measures."""

from __future__ import annotations

from rebalancer.detect.classify import detect
from rebalancer.detect.findings import Findings
from rebalancer.guard.gate import Booked, Scene
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.tables import WorkloadRef
from tests.report import samples
from tests.support.builder import NOW, budget, cluster, node, pod, workload

HOT, COOL, LOST = samples.HOT_GKE, samples.COOL_EC2, samples.LOST
WEB = WorkloadRef("Deployment", "shop", "web")
WEB_POD = "web-5f6d7c8b9-q8w7e"
GIB = 2.0**30


def state() -> ClusterState:
    return cluster(
        nodes=[
            node(HOT, cpu=16, load={"cpu": 0.91, "memory": 0.44}, history={"cpu": [0.9] * 8 + [0.6, 0.91]}),
            node(COOL, cpu=16, load={"cpu": 0.2, "memory": 0.3}),
            node(LOST, cpu=16, unknown={"cpu": "no series for the node"}, load={"memory": 0.3}),
        ],
        pods=[
            pod(WEB_POD, on=HOT, namespace="shop", workload="web", cpu=1, uses={"cpu": 6.5, "memory": GIB}, budgets=["web"]),
            pod("web-5f6d7c8b9-aaaaa", on=COOL, namespace="shop", workload="web", cpu=1, uses={"cpu": 0.5, "memory": GIB}, budgets=["web"]),
            pod("web-5f6d7c8b9-young", on=COOL, namespace="shop", workload="web", cpu=1, uses={"cpu": 1.0}, estimated=["cpu"]),
            pod("cart-0", on=HOT, namespace="shop", workload="cart", cpu=4, memory="8Gi", uses={"cpu": 0.4, "memory": 2 * GIB}),
            pod("silent-0", on=LOST, namespace="quiet", workload="silent", cpu=2),
            pod("bare", on=COOL, namespace="quiet", workload=None, cpu=1, uses={"cpu": 0.1, "memory": GIB}),
            pod("web-waiting", namespace="shop", workload="web", cpu=1),
            pod("same", on=HOT, namespace="one", workload="same", cpu=1, uses={"cpu": 0.1, "memory": GIB}),
            pod("same", on=HOT, namespace="two", workload="same", cpu=1, uses={"cpu": 0.1, "memory": GIB}),
        ],
        workloads=[workload("web", namespace="shop", replicas=3, ready=2, scaled_at=NOW - 3600)],
        budgets=[budget("web", namespace="shop", allowed=0, healthy=3, desired=3)],
    )


def findings(of: ClusterState) -> Findings:
    return detect(of, Spec())


def scene(of: ClusterState, history: History | None = None) -> Scene:
    return Scene(state=of, spec=Spec(), history=history or History(), booked=Booked())


def plan(of: ClusterState) -> Plan:
    """A plan that moves cart-0 from the hot node to the cool one and refuses the web pod there."""
    from msgspec.structs import replace

    template = samples.plan()
    uid = of.pods.uids[of.pods.names.index("cart-0")]
    move = replace(
        template.moves[0], pod=replace(template.moves[0].pod, namespace="shop", name="cart-0", uid=uid), source=HOT, destination=COOL
    )
    uid = of.pods.uids[of.pods.names.index(WEB_POD)]
    refused = replace(template.refused[0], pod=replace(template.refused[0].pod, namespace="shop", name=WEB_POD, uid=uid), source=HOT)
    return replace(template, moves=(move,), refused=(refused,))
