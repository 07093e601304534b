"""States with everything in them, and whether two are the same."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
from hypothesis import strategies as st

from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Confidence, DeviceFault, FaultReason, Health
from rebalancer.state.gpu import ModelConstraint, Scheme
from rebalancer.state.scheduling import (
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeZone,
)
from rebalancer.state.tables import JobRules, Phase, PodClass, PodVolumes, ResourceClaim
from tests.support.builder import budget, cluster, node, pod, workload
from tests.support.gangs import gang
from tests.support.gpus import gpu, mig, part, unknown_ask, virtual

WEB = Selector((Requirement("app", "In", ("secret-web",)),))
EVERYTHING = Constraints(
    node_selector=(("disk", "secret-ssd"),),
    node_terms=(
        NodeTerm(expressions=(Requirement("topology.kubernetes.io/zone", "In", ("secret-zone-b",)), Requirement("gen", "Gt", ("7",)))),
        NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("secret-node-1",)),)),
    ),
    preferred_nodes=((5, NodeTerm(expressions=(Requirement("kubernetes.io/arch", "In", ("arm64",)),))),),
    tolerations=(Toleration("team", "Equal", "secret-team", "NoSchedule"), Toleration(operator="Exists")),
    affinity=(PodTerm("topology.kubernetes.io/zone", WEB, namespaces=("secret-elsewhere",)),),
    anti_affinity=(PodTerm("kubernetes.io/hostname", None, namespace_selector=Selector((Requirement("env", "In", ("secret-prod",)),))),),
    preferred_affinity=((3, PodTerm("topology.kubernetes.io/zone", WEB)),),
    preferred_anti_affinity=((2, PodTerm("kubernetes.io/hostname", WEB)),),
    spread=(SpreadConstraint("topology.kubernetes.io/zone", 1, True, WEB, min_domains=2, match_label_keys=("v",)),),
    host_ports=(HostPort("0.0.0.0", "TCP", 8080),),
    scheduler_name="default-scheduler",
    volume_terms=((NodeTerm(expressions=(Requirement("kubernetes.io/hostname", "In", ("secret-node-2",)),)),),),
    volume_zones=(VolumeZone("topology.kubernetes.io/zone", frozenset({"secret-zone-a", "secret-zone-b"})),),
    exclusive_claims=("secret-ns/secret-claim",),
    unbound_claims=("secret-ns/secret-lost",),
)


def rich_state() -> ClusterState:
    """Every column filled with something that is not its default; all names begin with ``secret``."""
    return cluster(
        nodes=[
            node(
                "secret-node-1",
                zone="secret-zone-a",
                labels={"disk": "secret-ssd", "gen": "9", "kubernetes.io/arch": "amd64", "env": "true"},
                annotations={"note": "secret-note"},
                taints=[Taint("team", "secret-team")],
                load={"cpu": 0.9},
                extended={"nvidia.com/gpu": 8},
                departed={"cpu": 0.25},
                gpus=[
                    gpu(
                        "40Gi", uuid="secret-GPU-a", scheme=Scheme.HAMI, handed_out="80Gi", replicas=10, health=Health.UNKNOWN, exact=False
                    ),
                    replace(mig("1g.5gb", parent="secret-GPU-b", instance=5), cordoned=True, trusted=False),
                ],
            ),
            node(
                "secret-node-2",
                zone="secret-zone-b",
                labels={"gen": "7"},
                unknown={"memory": "secret reason"},
                ready=False,
                unschedulable=True,
            ),
        ],
        pods=[
            pod(
                "secret-web-1",
                on="secret-node-1",
                namespace="secret-ns",
                workload="secret-web",
                uses={"cpu": 1.5},
                estimated=["cpu"],
                constraints=EVERYTHING,
                budgets=["secret-pdb"],
                annotations={"rebalancer.dev/evict": "false", "rebalancer.dev/class": "training", "odd": "secret-odd"},
                volumes=PodVolumes(("secret-scratch",), ("secret-claim",), (ResourceClaim("secret-gpu", True),)),
                scheduling_group="secret-gang",
                gang="secret-job-set",
                tenant="secret-tenant",
                pod_class=PodClass.TRAINING,
                gpu=[
                    replace(virtual(memory="8Gi", cores=0.5), container="secret-main", model=ModelConstraint(uuids=("secret-GPU-a",))),
                    unknown_ask(Scheme.KAI),
                ],
                holds={0: part(compute=0.5, memory="8Gi", confidence=Confidence.DECLARED)},
            ),
            pod("secret-bare", namespace="kube-system", workload=None, labels={"app": "secret-web", "index": "3"}, mirror=True),
            pod("secret-done", on="secret-node-2", namespace="secret-ns", workload="secret-web", phase=Phase.SUCCEEDED, terminating=True),
        ],
        workloads=[
            workload("secret-web", namespace="secret-ns", rollout="1 of 3 replicas have revision secret-web-5", scaled_at=7.0),
            workload("secret-job", kind="Job", namespace="secret-ns", replicas=math.nan, job=JobRules(math.inf, 1, True), ordered=True),
        ],
        budgets=[budget("secret-pdb", namespace="secret-ns", stale=True)],
        gangs=[gang("secret-job-set", namespace="secret-ns", minimum=2, elastic=True)],
        gpu_faults=[
            DeviceFault(
                "secret-node-1", "secret-ns/secret-web-1", Scheme.HAMI, FaultReason.WRONG_NODE, "pod secret-ns/secret-web-1 is lost"
            )
        ],
        namespaces={"secret-ns": {"env": "secret-prod", "kubernetes.io/metadata.name": "secret-ns"}, "kube-system": {}},
    )


def same(one: object, other: object) -> bool:
    """Equal in every field, NaN equal to NaN, arrays in type, shape and values."""
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other


AMOUNT = st.floats(0, 64, allow_nan=False, width=32)
LOAD = st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNT | st.just(math.nan) | st.just(math.inf), max_size=2)


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    """Small random clusters, NaN and infinity among their numbers."""
    nodes = [node(f"n{row}", usage=draw(LOAD), zone=draw(st.sampled_from([None, "a", "b"]))) for row in range(draw(st.integers(0, 4)))]
    pods = [
        pod(
            f"p{row}",
            on=draw(st.sampled_from([None, *(each.name for each in nodes)])),
            workload=draw(st.sampled_from([None, "w0", "w1"])),
            cpu=draw(AMOUNT),
            uses=draw(LOAD),
            constraints=draw(st.sampled_from([Constraints(), EVERYTHING])),
        )
        for row in range(draw(st.integers(0, 6)))
    ]
    return cluster(nodes=nodes, pods=pods)
