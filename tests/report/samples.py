"""Documents with realistic names and numbers, as a busy cluster in a cloud would give them."""

from __future__ import annotations

from rebalancer.plan.model import (
    CoverageReport,
    Move,
    MoveSignal,
    NodeReport,
    NodeSignal,
    OwnerRef,
    Plan,
    PodRef,
    RefusedCandidate,
    ShareReport,
    Summary,
)
from rebalancer.report.checks import Check, CheckReport, CheckStatus
from rebalancer.report.demo import DemoCycle, DemoResult, DemoState, Landing

GKE = "gke-prod-eu-west4-general-pool-1-8f7c9d42-{}"
EC2 = "ip-10-0-{}.eu-central-1.compute.internal"
HOT_GKE, COOL_GKE = GKE.format("abcd"), GKE.format("x7kq")
HOT_EC2, COOL_EC2 = EC2.format("112-134"), EC2.format("12-34")
LOST = EC2.format("201-99")


def _move(
    *, namespace: str, pod: str, workload: str, source: str, destination: str, cpu: tuple[float, ...], memory: tuple[float, ...]
) -> Move:
    return Move(
        pod=PodRef(namespace=namespace, name=pod, uid=f"0f6f7a52-{pod[-5:]}"),
        workload=OwnerRef(kind="Deployment", namespace=namespace, name=workload),
        tenant=None,
        source=source,
        destination=destination,
        alternatives=(GKE.format("m2p4"), GKE.format("zz91")),
        signals={
            "cpu": MoveSignal(source_before=cpu[0], source_after=cpu[1], destination_before=cpu[2], destination_after=cpu[3], usage=3.52),
            "memory": MoveSignal(
                source_before=memory[0], source_after=memory[1], destination_before=memory[2], destination_after=memory[3], usage=2.1e9
            ),
        },
        gain=0.0484,
        reason="cpu load 91 % > high 70 %; this pod alone brings it under target",
        request={"cpu": 0.5, "memory": 2147483648.0},
    )


def _node(name: str, node_class: str, reason: str, cpu: tuple[float | None, ...], memory: tuple[float | None, ...]) -> NodeReport:
    return NodeReport(
        name=name,
        pool="default",
        node_class=node_class,
        quadrant="low-packing/high-load" if node_class == "hot" else None if node_class == "unknown" else "low-packing/low-load",
        signals={
            "cpu": NodeSignal(packing=cpu[0], load=cpu[1], load_after=cpu[2], low=0.4, target=0.55, high=0.7, sample_age_seconds=31.0),
            "memory": NodeSignal(packing=memory[0], load=memory[1], load_after=memory[2], low=0.5, target=0.7, high=0.85),
        },
        reason=reason,
        steered=node_class == "hot",
    )


def moves() -> tuple[Move, ...]:
    return (
        _move(
            namespace="payments-production",
            pod="checkout-service-canary-europe-7d9c8b6f5-x2x4z",
            workload="checkout-service-canary-europe",
            source=HOT_GKE,
            destination=COOL_GKE,
            cpu=(0.91, 0.69, 0.31, 0.52),
            memory=(0.44, 0.41, 0.38, 0.41),
        ),
        _move(
            namespace="shop",
            pod="web-5f6d7c8b9-q8w7e",
            workload="web",
            source=HOT_EC2,
            destination=COOL_EC2,
            cpu=(0.83, 0.54, 0.22, 0.51),
            memory=(0.61, 0.55, 0.47, 0.53),
        ),
        _move(
            namespace="recommendation-engine-staging-environment",
            pod="feature-store-online-materialisation-worker-high-memory-6b8f9d7c54-zk9lm",
            workload="feature-store-online-materialisation-worker-high-memory",
            source=HOT_EC2,
            destination=GKE.format("m2p4"),
            cpu=(1.02, 0.68, 0.08, 0.4),
            memory=(0.61, 0.55, 0.47, 0.53),
        ),
    )


def refused() -> tuple[RefusedCandidate, ...]:
    def one(namespace: str, name: str, gate: str, reason: str, *, retryable: bool = True) -> RefusedCandidate:
        pod = PodRef(namespace=namespace, name=name, uid=f"5b1d-{name[-5:]}")
        return RefusedCandidate(pod=pod, source=HOT_GKE, gate=gate, reason=reason, retryable=retryable)

    return (
        *(
            one(
                "payments-production",
                f"ledger-writer-{number}",
                "disruption-budget",
                "PDB payments-production/ledger-writer allows 0 disruptions (3 healthy of 3 desired)",
            )
            for number in range(12)
        ),
        one("monitoring", "node-exporter-9xk2p", "daemonset", "it belongs to DaemonSet monitoring/node-exporter", retryable=False),
        one("shop", "cart-7c9d8f6b5-lm2nb", "no-better-place", "its replacement would land on its own node again: no other node fits"),
        one("shop", "redis-0", "local-storage", "it has a disk emptyDir 'cache', whose content would be lost", retryable=False),
        one("shop", "redis-1", "local-storage", "it has a disk emptyDir 'cache', whose content would be lost", retryable=False),
        one(
            "machine-learning-platform",
            "trainer-bert-large-20250615-0",
            "gang",
            "it belongs to gang bert-large with 8 members, of which 8 must run",
        ),
    )


def plan() -> Plan:
    """Three hot nodes, three moves, seventeen refused, one unknown node."""
    hot = "cpu load 91 % > high 70 % in 10 of 10 windows"
    return Plan(
        cluster="6f1c2a7e-8d4b-4f0e-9b7a-2f3f6f0d1c55",
        created_at="2025-06-15T15:06:40Z",
        mode="dry-run",
        mode_source="default",
        policy="default",
        method="balance",
        outcome="",
        summary=Summary(
            hot_nodes=3,
            max_load=1.02,
            stddev=0.1234,
            hot_nodes_after=0,
            max_load_after=0.69,
            stddev_after=0.0977,
            moves=3,
            refused=17,
            unknown_nodes=1,
        ),
        coverage=CoverageReport(
            nodes=ShareReport(known=59, of=60),
            pods=ShareReport(known=1098, of=1100),
            oldest_sample_seconds=31.4,
            dropped={"stale": 3, "nan": 1},
            notes=("node names resolved by the label instance, as address:port",),
        ),
        moves=moves(),
        refused=refused(),
        nodes=(
            _node(HOT_GKE, "hot", hot, (0.48, 0.91, 0.69), (0.52, 0.44, 0.41)),
            _node(HOT_EC2, "hot", "cpu load 102 % > high 70 % in 9 of 10 windows", (0.45, 1.02, 0.54), (0.5, 0.61, 0.5)),
            _node(GKE.format("f00d"), "hot", "cpu load 74 % > high 70 % in 8 of 10 windows", (0.66, 0.74, 0.69), (0.5, 0.61, 0.6)),
            _node(LOST, "unknown", "cpu load unknown: no series for the node", (0.61, None, None), (0.5, 0.4, 0.4)),
            _node(COOL_GKE, "cold", "under low on every signal", (0.52, 0.31, 0.52), (0.44, 0.38, 0.41)),
            _node(COOL_EC2, "cold", "under low on every signal", (0.52, 0.22, 0.51), (0.44, 0.47, 0.53)),
            _node(GKE.format("m2p4"), "cold", "under low on every signal", (0.52, 0.08, 0.4), (0.44, 0.47, 0.53)),
            _node(GKE.format("zz91"), "normal", "cpu load 50 %, high is 70 %", (0.5, 0.5, 0.5), (0.44, 0.47, 0.47)),
        ),
        soft_taints=(HOT_GKE, HOT_EC2),
    )


def checks() -> CheckReport:
    return CheckReport(
        cluster="6f1c2a7e-8d4b-4f0e-9b7a-2f3f6f0d1c55",
        created_at="2025-06-15T15:06:40Z",
        checks=(
            Check(name="api-server", status=CheckStatus.OK, sentence="https://10.0.0.1:6443 answers, version v1.35.2"),
            Check(
                name="right to evict",
                status=CheckStatus.FAIL,
                sentence="system:serviceaccount:rebalancer:rebalancer may not create pods/eviction in all namespaces",
                remedy="bind the ClusterRole rebalancer-evict to the service account, or stay in mode dry-run",
            ),
            Check(
                name="memory by pod",
                status=CheckStatus.WARN,
                sentence="1,020 of 1,100 pods have a sample (93 %); the others are never victims",
                remedy="see whether every kubelet is scraped",
            ),
        ),
    )


def demo() -> DemoResult:
    return DemoResult(
        seed=7,
        cycles=6,
        nodes=60,
        pods=1100,
        before=DemoState(hot_nodes=6, max_load=0.97, stddev=0.14),
        after=DemoState(hot_nodes=0, max_load=0.69, stddev=0.09),
        worst_load_seen=0.97,
        evictions=9,
        refused={"disruption-budget": 12, "daemonset": 40},
        examples={"disruption-budget": "PDB shop/web allows 0 disruptions (3 healthy of 3 desired)"},
        landing=Landing(as_planned=8, elsewhere=1),
        course=(
            DemoCycle(cycle=1, state=DemoState(hot_nodes=2, max_load=0.8, stddev=0.11), moves=6, outcome="6 moves for 6 hot nodes"),
            DemoCycle(cycle=2, state=DemoState(hot_nodes=0, max_load=0.69, stddev=0.09), moves=3, outcome="3 moves for 2 hot nodes"),
        ),
    )
