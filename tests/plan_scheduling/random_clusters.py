"""Small random clusters in which every filter has something to do."""

from __future__ import annotations

from hypothesis import strategies as st

from rebalancer.plan.replacement import NAMED
from rebalancer.state.cluster import ClusterState
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
)
from rebalancer.state.tables import Phase
from tests.plan_scheduling.asking import HOSTNAME, ZONE
from tests.support.builder import NodeSpec, PodSpec, cluster

APPS = ("a", "b", "c")
NAMESPACES = {"default": {"team": "x"}, "far": {"team": "y"}}


def _requirement(key: str, values: tuple[str, ...]) -> st.SearchStrategy[Requirement]:
    some = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True).map(tuple)
    listed = st.builds(Requirement, st.just(key), st.sampled_from(("In", "NotIn")), some)
    return st.one_of(listed, st.builds(Requirement, st.just(key), st.sampled_from(("Exists", "DoesNotExist"))))


selectors = st.one_of(st.none(), st.lists(_requirement("app", APPS), max_size=2).map(lambda r: Selector(tuple(r))))
keys = st.sampled_from((HOSTNAME, ZONE))
pod_terms = st.builds(
    PodTerm,
    topology_key=keys,
    selector=selectors,
    namespaces=st.sampled_from(((), ("far",), ("default", "far"))),
    namespace_selector=st.one_of(st.none(), st.just(Selector()), _requirement("team", ("x", "y")).map(lambda r: Selector((r,)))),
)
spreads = st.builds(
    SpreadConstraint,
    topology_key=keys,
    max_skew=st.integers(1, 2),
    hard=st.booleans(),
    selector=selectors,
    min_domains=st.integers(1, 3),
    honor_node_affinity=st.booleans(),
    honor_node_taints=st.booleans(),
)
node_terms = st.lists(_requirement("disk", ("ssd", "hdd")), max_size=2).map(lambda r: NodeTerm(expressions=tuple(r)))
weighted_terms = st.lists(st.tuples(st.integers(1, 100), pod_terms), max_size=1).map(tuple)


_preferred = {
    "preferred_nodes": st.lists(st.tuples(st.integers(0, 100), node_terms), max_size=2).map(tuple),
    "preferred_affinity": weighted_terms,
    "preferred_anti_affinity": weighted_terms,
}
_required = {
    "node_selector": st.sampled_from(("ssd", "hdd")).map(lambda disk: (("disk", disk),)),
    "node_terms": st.lists(node_terms, max_size=2).map(tuple),
    "tolerations": st.sampled_from(((Toleration(operator="Exists"),), (Toleration("k", "Equal", "v"),))),
    "affinity": st.lists(pod_terms, min_size=1, max_size=2).map(tuple),
    "anti_affinity": st.lists(pod_terms, min_size=1, max_size=2).map(tuple),
    "spread": st.lists(spreads, min_size=1, max_size=2).map(tuple),
    "host_ports": st.builds(HostPort, st.sampled_from(("0.0.0.0", "10.0.0.1")), st.just("TCP"), st.just(80)).map(lambda port: (port,)),
}


@st.composite
def constraints(draw: st.DrawFn) -> Constraints:
    """One or two things required, and often something preferred: pods that ask for everything fit nowhere and prove little."""
    chosen = draw(st.lists(st.sampled_from(sorted(_required)), max_size=2, unique=True))
    wished = draw(st.lists(st.sampled_from(sorted(_preferred)), max_size=1))
    return Constraints(**{name: draw({**_required, **_preferred}[name]) for name in (*chosen, *wished)})


taints = st.lists(
    st.builds(Taint, st.just("k"), st.sampled_from(("v", "w")), st.sampled_from(("NoSchedule", "PreferNoSchedule"))), max_size=1
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    troubles = st.sampled_from(("", "", "", "", "", "", "taint", "taint", "cordon", "not ready"))
    nodes = [
        NodeSpec(
            name=f"n{i}",
            cpu=draw(st.sampled_from((2.0, 4.0))),
            pods=draw(st.sampled_from((2, 110))),
            zone=draw(st.sampled_from((None, "a", "b", "c"))),
            labels={"disk": disk} if (disk := draw(st.sampled_from(("", "ssd", "hdd")))) else {},
            taints=draw(taints) if trouble == "taint" else (),
            ready=trouble != "not ready",
            unschedulable=trouble == "cordon",
        )
        for i in range(draw(st.integers(2, 5)))
        for trouble in (draw(troubles),)
    ]
    places = st.sampled_from((None, *(each.name for each in nodes)))
    pods = [
        PodSpec(
            name=f"p{i}",
            on=draw(places),
            namespace=draw(st.sampled_from(("default", "far"))),
            workload=app,
            labels=draw(st.sampled_from((None, None, {"app": app, NAMED: f"p{i}"}))),
            cpu=draw(st.sampled_from((0.0, 0.1, 0.7, 1.5))),
            memory=draw(st.sampled_from(("0", "1Gi"))),
            constraints=draw(constraints()),
            terminating=draw(st.sampled_from((False, False, True))),
            phase=draw(st.sampled_from((Phase.RUNNING, Phase.RUNNING, Phase.SUCCEEDED))),
        )
        for i in range(draw(st.integers(2, 8)))
        for app in (draw(st.sampled_from(APPS)),)
    ]
    return cluster(nodes=nodes, pods=pods, namespaces=NAMESPACES)
