"""What ties pods to nodes, to budgets, to volumes and to each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rebalancer.collect.budgets import budgets_by_labels
from rebalancer.kube.wire import BudgetWire, ClaimWire, MetadataWire, PersistentVolumeWire, PriorityClassWire
from rebalancer.state.scheduling import (
    Constraints,
    HostPort,
    LabelSet,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeZone,
)
from rebalancer.state.tables import Budget, Phase, PodVolumes, Qos, ResourceClaim
from tests.collect_cluster.objects import Json, container, decoded, meta, node, owner, pod, row_of, state_of

WEB = Selector((Requirement("app", "In", ("web",)),))
WEB_WIRE: Json = {"matchLabels": {"app": "web"}}


def _constraints(spec: Json, **more: object) -> Constraints:
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", spec=spec)], **more)
    return state.constraints[state.pods.constraints[0]]


def test_a_plain_pod_has_no_constraints() -> None:
    """Its node name is where it is, not where it may be."""
    assert _constraints({}) == Constraints()


def test_node_selection_is_read_whole() -> None:
    """nodeSelector, required terms with fields, preferred terms with weights."""
    spec: Json = {
        "nodeSelector": {"disk": "ssd", "arch": "amd64"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
                ],
            }
        },
    }
    assert _constraints(spec) == Constraints(
        node_selector=(("arch", "amd64"), ("disk", "ssd")),
        node_terms=(
            NodeTerm(expressions=(Requirement("zone", "In", ("a", "b")),)),
            NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),
        ),
        preferred_nodes=((7, NodeTerm(expressions=(Requirement("fast", "Exists"),))),),
    )


def test_a_required_node_affinity_without_terms_is_not_the_same_as_none() -> None:
    """No term matches no node; no requirement matches every node."""
    spec: Json = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}}}
    assert _constraints(spec).node_terms == ()


def test_pod_affinity_is_read_whole() -> None:
    """Required and preferred, both ways, with namespaces; an absent selector stays absent."""
    term: Json = {"topologyKey": "zone", "labelSelector": WEB_WIRE}
    spec: Json = {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "namespaces": ["n"], "namespaceSelector": {}}]},
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": term}],
            },
        }
    }
    found = _constraints(spec)
    assert found.affinity == (PodTerm("zone", WEB, namespaces=("n",), namespace_selector=Selector()),)
    assert found.anti_affinity == (PodTerm("kubernetes.io/hostname", None),)
    assert found.preferred_affinity == ()
    assert found.preferred_anti_affinity == ((9, PodTerm("zone", WEB)),)


def test_tolerations_and_spread_get_the_defaults_of_the_api() -> None:
    """Equal; one domain; honour affinity, ignore taints."""
    spec: Json = {
        "tolerations": [{"key": "gpu", "value": "yes"}, {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB_WIRE},
            {
                "topologyKey": "zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
                "minDomains": 3,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["pod-template-hash"],
            },
        ],
    }
    found = _constraints(spec)
    assert found.tolerations == (Toleration("gpu", "Equal", "yes"), Toleration(operator="Exists", effect="NoExecute"))
    assert found.spread == (
        SpreadConstraint("zone", 2, True, WEB),
        SpreadConstraint(
            "zone",
            1,
            False,
            None,
            min_domains=3,
            honor_node_affinity=False,
            honor_node_taints=True,
            match_label_keys=("pod-template-hash",),
        ),
    )


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    """An ordinary init container takes none; a port without hostPort takes none."""
    spec: Json = {
        "schedulerName": "other",
        "initContainers": [
            container("init", ports=[{"hostPort": 1}]),
            container("side", ports=[{"hostPort": 2, "protocol": "UDP", "hostIP": "10.0.0.1"}], restartPolicy="Always"),
        ],
        "containers": [container(ports=[{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}])],
    }
    found = _constraints(spec)
    assert found.host_ports == (HostPort("0.0.0.0", "TCP", 8080), HostPort("10.0.0.1", "UDP", 2))
    assert found.scheduler_name == "other"


def test_pods_of_one_template_share_one_value() -> None:
    """A thousand pods of the same spec are one set of constraints, one of labels, one request, whoever owns them."""
    spec: Json = {"nodeSelector": {"disk": "ssd"}}
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod(f"x-{i}", on="a", spec=spec, labels={"app": "web"}, owner=owner("Foo", f"web-{i % 2}") if i % 3 else None)
            for i in range(12)
        ],
    )
    assert state.constraints == (Constraints(node_selector=(("disk", "ssd"),)),)
    assert state.label_sets == (LabelSet("default", (("app", "web"),)),)


def test_a_pod_that_differs_from_its_siblings_is_read_by_itself() -> None:
    """Requests, labels and constraints of one controller's pods may differ."""
    one, other = owner("Foo", "web"), owner("Foo", "web")
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("x-1", on="a", owner=one, labels={"v": "1"}, containers=[container(cpu="1")]),
            pod("x-2", on="a", owner=other, labels={"v": "2"}, containers=[container(cpu="2")], spec={"nodeSelector": {"k": "v"}}),
            pod("x-3", on="a", owner=other, labels={"v": "2"}, containers=[container(cpu="2")], spec={"nodeSelector": {"k": "v"}}),
        ],
    )
    assert state.pods.request[:, 0].tolist() == [1.0, 2.0, 2.0]
    assert state.pods.labels.tolist() == [0, 1, 1]
    assert state.pods.constraints.tolist() == [0, 1, 1]


def test_a_node_keeps_its_taints_labels_and_cordon() -> None:
    """As the scheduler reads them."""
    wire = node("a", labels={"zone": "z1"})
    wire["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "k", "value": "v", "effect": "NoExecute"}],
    }
    state = state_of(nodes=[node("b"), wire])
    assert state.nodes.names == ("a", "b")
    assert state.nodes.taints[0] == (Taint("gpu", "", "NoSchedule"), Taint("k", "v", "NoExecute"))
    assert state.nodes.unschedulable.tolist() == [True, False]
    assert state.nodes.labels[0] == {"zone": "z1"}


def _volumes(*volumes: Json, **spec: object) -> PodVolumes:
    return state_of(nodes=[node("a")], pods=[pod("x", on="a", spec={"volumes": list(volumes), **spec})]).pods.volumes[0]


def test_v12_an_emptydir_in_memory_is_not_local_storage() -> None:
    """Disk emptyDir and hostPath are, and are named; secrets and projected tokens are nothing."""
    found = _volumes(
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/data"}},
        {"name": "token", "projected": {"sources": []}},
    )
    assert found == PodVolumes(local=("scratch", "host"))
    assert _volumes({"name": "shm", "emptyDir": {"medium": "Memory"}}) == PodVolumes()


def test_claims_are_named_ephemeral_ones_by_pod_and_volume() -> None:
    """And resource claims by what they share."""
    found = _volumes(
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-x"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}},
        resourceClaims=[{"name": "gpu", "resourceClaimName": "shared-gpu"}, {"name": "nic", "resourceClaimTemplateName": "nic-template"}],
    )
    assert found == PodVolumes(
        claims=("data-x", "x-tmp"), resource_claims=(ResourceClaim("shared-gpu", shared=True), ResourceClaim("nic", shared=False))
    )


def _claim(
    name: str, *, volume: str | None = "pv", phase: str = "Bound", modes: tuple[str, ...] = ("ReadWriteOnce",), **metadata: object
) -> Json:
    return {"metadata": meta(name, **metadata), "spec": {"volumeName": volume, "accessModes": list(modes)}, "status": {"phase": phase}}


VOLUME: Json = {
    "metadata": meta("pv", namespace=None, labels={"topology.kubernetes.io/zone": "a__b", "other": "x"}),
    "spec": {
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]
            }
        }
    },
}


def _with_claim(claim: Json | None, *, volumes: tuple[Json, ...] = (VOLUME,)) -> Constraints:
    return _constraints(
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        claims=decoded(ClaimWire, claim) if claim else [],
        volumes=decoded(PersistentVolumeWire, *volumes),
    )


def test_a_bound_claim_ties_the_pod_to_where_its_volume_can_be() -> None:
    """The volume's node affinity and each of its zones."""
    found = _with_claim(_claim("data"))
    assert found.volume_terms == ((NodeTerm(expressions=(Requirement("kubernetes.io/hostname", "In", ("n1",)),)),),)
    assert found.volume_zones == (VolumeZone("topology.kubernetes.io/zone", frozenset({"a", "b"})),)
    assert found.unbound_claims == found.exclusive_claims == ()


def test_a_read_write_once_pod_claim_is_exclusive() -> None:
    """By namespace and name."""
    assert _with_claim(_claim("data", modes=("ReadWriteOncePod",))).exclusive_claims == ("default/data",)


@pytest.mark.parametrize(
    ("claim", "volumes"),
    [
        (None, (VOLUME,)),
        (_claim("data", phase="Pending", volume=None), (VOLUME,)),
        (_claim("data", phase="Lost"), (VOLUME,)),
        (_claim("data", deletionTimestamp="2025-01-01T00:00:00Z"), (VOLUME,)),
        (_claim("data"), ()),
    ],
    ids=["missing", "pending", "lost", "going away", "volume missing"],
)
def test_a_claim_that_is_not_bound_is_said_to_be_so(claim: Json | None, volumes: tuple[Json, ...]) -> None:
    """Nothing known about the place must not read as anywhere."""
    found = _with_claim(claim, volumes=volumes)
    assert found.unbound_claims == ("default/data",)
    assert found.volume_terms == ()


def _budget(name: str = "web", *, selector: Json | None = WEB_WIRE, generation: int = 1, **status: object) -> Json:
    told = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "observedGeneration": 1}
    return {"metadata": meta(name, generation=generation), "spec": {"selector": selector}, "status": {**told, **status}}


def test_budgets_select_by_labels_within_their_namespace() -> None:
    """An absent selector selects nothing, an empty one everything; two budgets on a pod are both named."""
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("w", on="a", labels={"app": "web"}),
            pod("d", on="a", labels={"app": "db"}),
            pod("w2", on="a", namespace="other", labels={"app": "web"}),
        ],
        budgets=decoded(BudgetWire, _budget("web"), _budget("all", selector={}), _budget("none", selector=None)),
    )
    names = {
        name: [state.budgets[row].name for row in state.pods.budgets[row_of(state, name, ns)]]
        for name, ns in (("w", "default"), ("d", "default"), ("w2", "other"))
    }
    assert names == {"w": ["all", "web"], "d": ["all"], "w2": []}


def test_a_budget_that_its_controller_has_not_seen_allows_nothing() -> None:
    """generation 5, observed 4."""
    state = state_of(nodes=[], budgets=decoded(BudgetWire, _budget(generation=5, observedGeneration=4)))
    assert (state.budgets[0].stale, state.budgets[0].allowed) == (True, 0)


def test_a_budget_without_a_status_allows_nothing() -> None:
    """A new budget, not looked at yet."""
    wire = decoded(BudgetWire, {"metadata": meta("new", generation=1), "spec": {"selector": {}}})
    state = state_of(nodes=[], budgets=wire)
    assert (state.budgets[0].stale, state.budgets[0].allowed) == (True, 0)


def test_a_budget_is_read_whole() -> None:
    """Healthy, desired, expected, and the policy for unhealthy pods."""
    wire = _budget()
    wire["spec"] = {"selector": WEB_WIRE, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    assert state_of(nodes=[], budgets=decoded(BudgetWire, wire)).budgets == (
        Budget("default", "web", WEB, 1, 3, 2, 3, always_allow_unhealthy=True, stale=False),
    )
    assert budgets_by_labels([], [LabelSet("default")]) == [()]


@pytest.mark.parametrize(
    ("metadata", "spec", "group"),
    [
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, {}, "g"),
        ({"annotations": {"scheduling.volcano.sh/group-name": "g"}}, {}, "g"),
        ({"annotations": {"pod-group-name": "g"}}, {}, "g"),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, {}, "g"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}, "g"),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io": "l"}}, {"schedulingGroup": {"podGroupName": "g"}}, "g"),
        ({"labels": {"app": "g"}}, {}, ""),
    ],
)
def test_the_marks_of_gang_schedulers_name_the_group(metadata: Json, spec: Json, group: str) -> None:
    """The field of the API before annotations before labels."""
    assert state_of(nodes=[node("a")], pods=[pod("x", on="a", spec=spec, **metadata)]).pods.scheduling_group == (group,)


def test_only_annotations_that_some_rule_reads_are_kept() -> None:
    """The rest is never even decoded."""
    kept = {
        "rebalancer.dev/evict": "false",
        "descheduler.alpha.kubernetes.io/evict": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
        "controller.kubernetes.io/pod-deletion-cost": "5",
    }
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", annotations={**kept, "example.com/blob": "x" * 100})])
    assert state.pods.annotations == (kept,)


def test_standing_and_character_of_a_pod() -> None:
    """Phase, readiness, termination, QoS, priority, restart policy, in order of namespace and name."""
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("going", on="a", deletionTimestamp="2025-06-15T00:00:00Z", ready=False, status={"qosClass": "Guaranteed"}),
            pod("asking", status={"qosClass": None}, spec={"priority": 7, "restartPolicy": "Never"}),
            pod("odd", on="a", phase="Unknown", status={"qosClass": None}, containers=[container(cpu=None, memory=None)]),
        ],
    )
    assert state.pods.names == ("asking", "going", "odd")
    assert state.pods.phase.tolist() == [Phase.PENDING, Phase.RUNNING, Phase.UNKNOWN]
    assert state.pods.qos.tolist() == [Qos.BURSTABLE, Qos.GUARANTEED, Qos.BEST_EFFORT]
    assert state.pods.terminating.tolist() == [False, True, False]
    assert state.pods.ready.tolist() == [False, False, True]
    assert state.pods.priority.tolist() == [7, 0, 0]
    assert state.pods.restart_policy == ("Never", "Always", "Always")
    assert np.isnan(state.pods.started_at[0])


def ready_since(moment: str, **status: object) -> dict[str, object]:
    """The status of a pod that started at midnight."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
    return {"startTime": "2025-06-15T00:00:00Z", "conditions": [{"type": "PodScheduled", "status": "True"}, ready], **status}


@pytest.mark.parametrize(
    ("status", "seconds"),
    [
        (ready_since("2025-06-15T00:01:30Z"), 90.0),
        (ready_since("2025-06-15T02:01:30+02:00"), 90.0),
        (ready_since("2025-06-14T23:59:59Z"), math.nan),
        (ready_since("yesterday"), math.nan),
        (ready_since("2025-06-15T00:01:30Z", startTime=None), math.nan),
        (ready_since("2025-06-15T00:01:30Z", containerStatuses=[{"name": "main", "restartCount": 2}]), math.nan),
        ({"startTime": "2025-06-15T00:00:00Z"}, math.nan),
    ],
)
def test_how_long_a_pod_took_to_become_ready(status: dict[str, object], seconds: float) -> None:
    """From its start, as its status says; unknown where that is no time, or where a container was begun anew since."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", status=status)])
    assert state.pods.names == ("x",)
    assert state.pods.ready_after.tolist() == pytest.approx([seconds], nan_ok=True)


def test_a_pod_that_two_pages_hold_is_one_pod() -> None:
    """And the state's arrays cannot be written to."""
    state = state_of(nodes=[node("a"), node("a")], pods=[pod("x", on="a"), pod("x", on="a")])
    assert (state.pods.names, state.nodes.names) == (("x",), ("a",))
    assert not state.pods.usage.flags.writeable
    assert not state.nodes.history.flags.writeable


def test_namespaces_and_priorities_are_kept_by_name() -> None:
    """Labels of namespaces, values of PriorityClasses."""
    state = state_of(
        nodes=[],
        namespaces=decoded(MetadataWire, {"metadata": meta("prod", namespace=None, labels={"env": "prod"})}),
        priority_classes=decoded(PriorityClassWire, {"metadata": meta("high", namespace=None), "value": 1000}),
    )
    assert state.namespaces == {"prod": {"env": "prod"}}
    assert state.priorities == {"high": 1000}
    assert state.cluster == "uid-kube-system"
