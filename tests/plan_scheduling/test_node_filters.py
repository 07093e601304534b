"""Filters that look at one node at a time: selectors, taints, ports, resources, volumes."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.filters.host_ports import clash
from rebalancer.plan.ledger import Placements
from rebalancer.state.scheduling import Constraints, HostPort, NodeTerm, Requirement, Taint, Toleration, VolumeZone
from rebalancer.state.tables import PodVolumes, ResourceClaim
from tests.plan_scheduling.asking import allowed, row_of, why_not
from tests.support.builder import cluster, node, pod


def _wants(*terms: NodeTerm) -> Constraints:
    return Constraints(node_terms=terms)


def _term(*expressions: Requirement) -> NodeTerm:
    return NodeTerm(expressions=expressions)


def _fits(labels: dict[str, str], constraints: Constraints) -> bool:
    state = cluster(nodes=[node("n1", labels=labels)], pods=[pod("p", constraints=constraints)])
    return allowed(state, "p") == {"n1"}


def test_e7_gt_compares_integers_strictly() -> None:
    """``gen=9`` is greater than 8 and not greater than 9."""
    assert _fits({"gen": "9"}, _wants(_term(Requirement("gen", "Gt", ("8",)))))
    assert not _fits({"gen": "9"}, _wants(_term(Requirement("gen", "Gt", ("9",)))))


def test_e8_gt_on_a_word_is_false_and_not_in_another_word_is_true() -> None:
    """``gen=v9`` is no number, and is not among [v8]."""
    assert not _fits({"gen": "v9"}, _wants(_term(Requirement("gen", "Gt", ("8",)))))
    assert _fits({"gen": "v9"}, _wants(_term(Requirement("gen", "NotIn", ("v8",)))))


def test_e9_negative_operators_hold_without_the_label() -> None:
    """NotIn and DoesNotExist match a node that has no such label."""
    assert _fits({}, _wants(_term(Requirement("gpu", "NotIn", ("a100",)))))
    assert _fits({}, _wants(_term(Requirement("gpu", "DoesNotExist"))))


def test_e10_no_term_matches_when_each_lacks_something() -> None:
    """Zone b, or zone a with a disk label: a node of zone a without one matches neither."""
    terms = (_term(Requirement("zone", "In", ("b",))), _term(Requirement("zone", "In", ("a",)), Requirement("disk", "Exists")))
    assert not _fits({"zone": "a"}, _wants(*terms))


def test_an_empty_required_affinity_matches_no_node() -> None:
    """Required node affinity whose terms are all empty rejects every node, one without terms too."""
    assert not _fits({}, _wants(NodeTerm()))
    assert not _fits({}, Constraints(node_terms=()))


def test_node_selector_and_affinity_must_both_hold() -> None:
    """A node that matches only one of the two is rejected, and the sentence names the pair that differs."""
    wants = Constraints(node_selector=(("disk", "ssd"),), node_terms=(_term(Requirement("zone", "In", ("a",))),))
    state = cluster(
        nodes=[node("both", labels={"disk": "ssd", "zone": "a"}), node("disk", labels={"disk": "ssd"}), node("zone", labels={"zone": "a"})],
        pods=[pod("p", constraints=wants)],
    )
    assert allowed(state, "p") == {"both"}
    assert why_not(state, "p", "zone") == "The nodeSelector wants disk=ssd, the node has no label disk"
    assert why_not(state, "p", "disk") == "None of the 1 required node affinity terms matches the node"


def test_match_fields_names_a_node() -> None:
    """A term over metadata.name lets in that node alone."""
    wants = _wants(NodeTerm(fields=(Requirement("metadata.name", "In", ("n2",)),)))
    state = cluster(nodes=[node("n1"), node("n2")], pods=[pod("p", constraints=wants)])
    assert allowed(state, "p") == {"n2"}


@pytest.mark.parametrize(
    ("toleration", "enters"),
    [
        (Toleration("team", "Equal", "a", "NoSchedule"), True),
        (Toleration("team", "", "a", ""), True),
        (Toleration("team", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("team", "Equal", "b"), False),
        (Toleration("team", "Equal", "a", "NoExecute"), False),
        (Toleration("team", "Gt", "a"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_a_toleration_matches_by_effect_key_and_value(toleration: Toleration, enters: bool) -> None:
    """Effect and key empty or equal; Exists, or equal values; Gt and Lt never."""
    state = cluster(
        nodes=[node("n1", taints=[Taint("team", "a", "NoSchedule")])], pods=[pod("p", constraints=Constraints(tolerations=(toleration,)))]
    )
    assert (allowed(state, "p") == {"n1"}) is enters


def test_d13_one_exists_toleration_without_key_tolerates_any_number_of_taints() -> None:
    """The number of tolerations is never compared with the number of taints."""
    taints = [Taint("a", "1", "NoSchedule"), Taint("b", "2", "NoExecute"), Taint("c", "", "NoSchedule")]
    state = cluster(
        nodes=[node("n1", taints=taints)], pods=[pod("p", constraints=Constraints(tolerations=(Toleration(operator="Exists"),)))]
    )
    assert allowed(state, "p") == {"n1"}


def test_a_soft_taint_keeps_nobody_out() -> None:
    """PreferNoSchedule only scores; NoExecute rejects, with the taint in the sentence."""
    state = cluster(
        nodes=[node("soft", taints=[Taint("hot", "", "PreferNoSchedule")]), node("hard", taints=[Taint("hot", "x", "NoExecute")])],
        pods=[pod("p")],
    )
    assert allowed(state, "p") == {"soft"}
    assert why_not(state, "p", "hard") == "Untolerated taint hot=x:NoExecute"


def test_a_cordoned_node_takes_only_pods_that_tolerate_cordons() -> None:
    """spec.unschedulable acts like its taint."""
    cordon = Toleration("node.kubernetes.io/unschedulable", "Exists")
    state = cluster(nodes=[node("n1", unschedulable=True)], pods=[pod("p"), pod("daemon", constraints=Constraints(tolerations=(cordon,)))])
    assert allowed(state, "p") == set()
    assert allowed(state, "daemon") == {"n1"}
    assert why_not(state, "p", "n1") == "Node n1 is cordoned"


def test_a_node_that_is_not_ready_takes_nothing() -> None:
    """Also before the node controller has tainted it."""
    state = cluster(nodes=[node("n1", ready=False), node("n2")], pods=[pod("p")])
    assert allowed(state, "p") == {"n2"}
    assert why_not(state, "p", "n1") == "Node n1 is not Ready"


def test_e11_host_ports_clash_by_protocol_port_and_ip() -> None:
    """10.0.0.1:8080/TCP clashes with 0.0.0.0:8080/TCP, not with another IP, nor with UDP."""
    used = HostPort("10.0.0.1", "TCP", 8080)
    assert clash(used, HostPort("0.0.0.0", "TCP", 8080))
    assert clash(used, HostPort("", "", 8080))
    assert not clash(used, HostPort("10.0.0.2", "TCP", 8080))
    assert not clash(used, HostPort("10.0.0.1", "UDP", 8080))


def test_a_host_port_is_taken_on_its_node_and_by_the_pod_that_leaves() -> None:
    """A host-port pod cannot return to its own node while its predecessor is terminating."""
    port = Constraints(host_ports=(HostPort("", "TCP", 8080),))
    state = cluster(
        nodes=[node("n1"), node("n2"), node("n3")], pods=[pod("p", on="n1", constraints=port), pod("q", on="n2", constraints=port)]
    )
    assert allowed(state, "p") == {"n3"}
    assert why_not(state, "p", "n2") == "Host port 0.0.0.0:8080/TCP is in use on n2"


def test_e12_a_request_fits_up_to_the_last_millicore() -> None:
    """3500m of 4000m requested: 500m fits, 501m does not."""
    state = cluster(
        nodes=[node("n1", cpu=4, pods=110)],
        pods=[*(pod(f"b{i}", on="n1", cpu=0.35) for i in range(10)), pod("p", cpu=0.5), pod("q", cpu=0.501)],
    )
    assert allowed(state, "p") == {"n1"}
    assert allowed(state, "q") == set()
    assert why_not(state, "q", "n1") == "Insufficient cpu: needs 0.50, 0.50 free of 4.00"


def test_e13_an_over_committed_node_takes_a_pod_without_that_request() -> None:
    """5000m requested of 4000m: a pod that asks for no cpu fits."""
    state = cluster(nodes=[node("n1", cpu=4)], pods=[pod("big", on="n1", cpu=5), pod("p", cpu=0, memory="1Gi")])
    assert allowed(state, "p") == {"n1"}


def test_e14_a_request_above_the_whole_node_is_rejected() -> None:
    """4001m on an empty node of 4000m."""
    state = cluster(nodes=[node("n1", cpu=4)], pods=[pod("p", cpu=4.001)])
    assert allowed(state, "p") == set()


def test_e15_a_full_number_of_pods_rejects_a_pod_without_requests() -> None:
    """110 of 110 pods: too many, whatever the requests."""
    state = cluster(
        nodes=[node("n1", pods=110)], pods=[*(pod(f"b{i}", on="n1", cpu=0, memory=0) for i in range(110)), pod("p", cpu=0, memory=0)]
    )
    assert allowed(state, "p") == set()
    assert why_not(state, "p", "n1") == "Too many pods: 110 of 110"


def test_an_extended_resource_that_the_node_lacks_rejects() -> None:
    """Two GPUs asked: not on a node without, not on one with one left."""
    gpu = "nvidia.com/gpu"
    state = cluster(
        nodes=[node("none"), node("busy", extended={gpu: 4}), node("free", extended={gpu: 4})],
        pods=[pod("b", on="busy", extended={gpu: 3}), pod("p", extended={gpu: 2})],
    )
    assert allowed(state, "p") == {"free"}
    assert why_not(state, "p", "busy") == "Insufficient nvidia.com/gpu: needs 2, 1 free of 4"


def test_decimal_requests_add_up_exactly() -> None:
    """Seven times 100m leave exactly 300m of one core."""
    state = cluster(nodes=[node("n1", cpu=1)], pods=[*(pod(f"b{i}", on="n1", cpu=0.1) for i in range(7)), pod("p", cpu=0.3)])
    assert allowed(state, "p") == {"n1"}


def test_the_pod_that_leaves_still_holds_its_requests() -> None:
    """The source has no room for a second instance until the first is gone."""
    state = cluster(nodes=[node("n1", cpu=4), node("n2", cpu=4)], pods=[pod("p", on="n1", cpu=3)])
    assert allowed(state, "p") == {"n2"}


def test_an_unknown_request_on_a_node_is_not_zero() -> None:
    """A node with a request that nobody knows takes nothing, and says so."""
    state = cluster(nodes=[node("n1"), node("n2")], pods=[pod("b", on="n1", cpu=float("nan")), pod("p")])
    assert allowed(state, "p") == {"n2"}
    assert why_not(state, "p", "n1") == "The requests on node n1 are not known"


def test_a_local_volume_pins_its_pod() -> None:
    """Node affinity of a bound volume leaves the nodes it names, and the sentence names the claim."""
    pinned = Constraints(volume_terms=((_term(Requirement("kubernetes.io/hostname", "In", ("n1",))),),))
    state = cluster(nodes=[node("n1"), node("n2")], pods=[pod("p", constraints=pinned, volumes=PodVolumes(claims=("data-0",)))])
    assert allowed(state, "p") == {"n1"}
    assert why_not(state, "p", "n2") == "A volume of the pod (data-0) is bound to other nodes"


def test_a_zone_label_of_a_volume_must_contain_the_zone_of_the_node() -> None:
    """Several zones are a choice, a beta label is tried against the new one, and nodes without any zone label are not asked."""
    zones = Constraints(volume_zones=(VolumeZone("failure-domain.beta.kubernetes.io/zone", frozenset({"a", "b"})),))
    state = cluster(nodes=[node("n1", zone="a"), node("n2", zone="c"), node("n3")], pods=[pod("p", constraints=zones)])
    assert allowed(state, "p") == {"n1", "n3"}
    assert "a or b" in why_not(state, "p", "n2")


def test_a_claim_that_is_not_bound_is_promised_no_node() -> None:
    """Missing, lost or waiting: rejected everywhere, with its name."""
    state = cluster(nodes=[node("n1")], pods=[pod("p", constraints=Constraints(unbound_claims=("default/data",)))])
    assert allowed(state, "p") == set()
    assert why_not(state, "p", "n1") == "Claim default/data is missing or not bound"


def test_a_read_write_once_pod_claim_has_one_user() -> None:
    """While any pod uses the claim, the leaving one included, nobody else that names it fits; an unused one does not matter."""
    claim = Constraints(exclusive_claims=("default/data",))
    used = cluster(nodes=[node("n1"), node("n2")], pods=[pod("p", on="n1", constraints=claim)])
    unused = cluster(nodes=[node("n1"), node("n2")], pods=[pod("p", constraints=claim)])
    assert allowed(used, "p") == set()
    assert why_not(used, "p", "n2") == "Claim default/data is ReadWriteOncePod and a pod still uses it"
    assert allowed(unused, "p") == {"n1", "n2"}


def test_d8_a_pod_of_another_scheduler_fits_nowhere_and_the_sentence_names_it() -> None:
    """Unless that scheduler is among the steered ones."""
    state = cluster(nodes=[node("n1")], pods=[pod("p", constraints=Constraints(scheduler_name="volcano"))])
    assert allowed(state, "p") == set()
    assert why_not(state, "p", "n1") == "Its scheduler is volcano, where only default-scheduler can be predicted"
    steered = Feasibility(state, Placements(state), steered_schedulers=("default-scheduler", "volcano"))
    assert steered.allowed(0).tolist() == [True]


@pytest.mark.parametrize(
    ("shared", "sentence"),
    [
        (True, "Resource claim gpu is shared by name and holds the pod to the nodes of its devices"),
        (False, "Free devices for resource claim gpu are not known"),
    ],
)
def test_v11_a_pod_with_a_resource_claim_is_promised_no_node(shared: bool, sentence: str) -> None:
    """Shared by name: bound to its devices. From a template: free devices are not known."""
    state = cluster(
        nodes=[node("n1"), node("n2")], pods=[pod("p", on="n1", volumes=PodVolumes(resource_claims=(ResourceClaim("gpu", shared),)))]
    )
    assert allowed(state, "p") == set()
    assert why_not(state, "p", "n2") == sentence


def test_the_tally_counts_each_node_under_its_first_rejection() -> None:
    """Scarce resources by name, the most frequent first; allowed nodes are not in it."""
    state = cluster(
        nodes=[
            node("ok"),
            node("cpu-1", cpu=1),
            node("cpu-2", cpu=1, memory="1Gi"),
            node("memory", memory="1Gi"),
            node("tainted", cpu=1, taints=[Taint("x")]),
        ],
        pods=[pod("p", cpu=2, memory="4Gi")],
    )
    tally = Feasibility(state, Placements(state)).tally(row_of(state, "p"))
    assert list(tally.items()) == [("cpu", 2), ("memory", 1), ("taints", 1)]


def test_an_allowed_node_has_no_reason() -> None:
    """`why_not` is empty exactly where `allowed` is true."""
    state = cluster(nodes=[node("n1")], pods=[pod("p")])
    assert why_not(state, "p", "n1") == ""


def test_placements_of_another_state_are_refused() -> None:
    """Mixing two snapshots is a programming error."""
    state, other = cluster(nodes=[node("n1")]), cluster(nodes=[node("n1")])
    with pytest.raises(ValueError, match="another state"):
        Feasibility(state, Placements(other))


def test_a_cluster_without_pods_or_nodes_is_answered() -> None:
    """Nothing in, nothing out."""
    assert allowed(cluster(nodes=[], pods=[pod("p")]), "p") == set()
    assert Placements(cluster(nodes=[node("n1")])).pod_count.tolist() == [0]
    assert np.isfinite(Placements(cluster(nodes=[node("n1")])).free).all()
