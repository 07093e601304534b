"""Rules that hold for every small cluster: no accepted set breaks a budget or a PDB, and what is unknown never moves."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.guard.disruption import disruption_cost
from rebalancer.guard.gate import Scene, book, first_refusal
from rebalancer.policy.model import Budgets, Cooldown, Victims
from rebalancer.policy.quantities import limit_of
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History, PastEviction
from rebalancer.state.tables import Phase, WorkloadRef
from tests.guard.scenes import USES, candidate, evicted, scene_of, state_with
from tests.support.builder import budget, node, pod, workload

NODES = ("hot", "warm", "cool")
NAMESPACES = ("shop", "lab")
APPS = tuple(f"app{i}" for i in range(6))
LIMITS = st.sampled_from([20, 20, 5, 3, 2, 1, 0, "100%", "100%", "50%", "30%", "10%", "0%"])

TIGHT = st.sampled_from([1, 2, "10%", "20%", "30%", 3, 0])

budget_policies = st.builds(
    Budgets,
    total=LIMITS,
    per_node=LIMITS,
    per_namespace=LIMITS,
    per_workload=LIMITS,
    per_tenant=LIMITS,
)
pdbs = st.builds(
    budget,
    st.sampled_from(["one", "two"]),
    allowed=st.integers(0, 3),
    healthy=st.integers(0, 4),
    desired=st.integers(0, 4),
    always_allow=st.booleans(),
    stale=st.booleans(),
)
past_evictions = st.builds(
    lambda ago, app, namespace, source, tenant: evicted(
        ago, workload=WorkloadRef("Deployment", namespace, app), source=source, tenant=tenant
    ),
    st.sampled_from([0.0, 60.0, 599.0, 600.0, 1000.0, 5000.0]),
    st.sampled_from(APPS),
    st.sampled_from(NAMESPACES),
    st.sampled_from(NODES),
    st.sampled_from([None, "team-a", "team-b"]),
)


FLAWS: tuple[dict[str, object], ...] = (
    {"ready": False},
    {"ready": False, "age_s": 30.0},
    {"terminating": True},
    {"phase": Phase.PENDING},
    {"phase": Phase.SUCCEEDED},
    {"on": None},
    {"workload": None},
    {"uses": {"cpu": 1.0, "memory": math.nan}},
    {"uses": {}},
    {"estimated": ("cpu",)},
)


def pods_of(*, flaws: tuple[dict[str, object], ...]) -> st.SearchStrategy[dict[str, object]]:
    """Fields of a pod; half of them have one of the flaws."""
    return st.builds(
        lambda on, namespace, app, rules, tenant, flaw: {
            "on": on,
            "namespace": namespace,
            "workload": app,
            "budgets": rules,
            "tenant": tenant,
            "uses": USES,
            **flaw,
        },
        st.sampled_from(NODES),
        st.sampled_from(NAMESPACES),
        st.sampled_from(APPS),
        st.sampled_from([(), (), ("one",), ("one",), ("two",), ("one", "two")]),
        st.sampled_from([None, "team-a", "team-b"]),
        st.sampled_from([{}, *[{}] * len(flaws), *flaws]),
    )


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    rows = [pod(f"pod-{row}", **fields) for row, fields in enumerate(draw(st.lists(pods_of(flaws=FLAWS), min_size=1, max_size=14)))]
    rules = {rule.name: rule for rule in (budget("one"), budget("two"), *draw(st.lists(pdbs, max_size=2)))}
    both = [replace(rule, namespace=namespace) for rule in rules.values() for namespace in NAMESPACES]
    unsaid = draw(st.sampled_from([None, *APPS]))
    sets = [workload(app, namespace=namespace, replicas=math.nan if app == unsaid else 3.0) for app in APPS for namespace in NAMESPACES]
    return state_with(*rows, nodes=tuple(node(name) for name in NODES), budgets=both, workloads=sets)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    evictions = tuple(sorted(draw(st.lists(past_evictions, max_size=4)), key=lambda past: past.at))
    return scene_of(
        draw(states()),
        history=History(evictions=evictions),
        budgets=draw(budget_policies),
        victims=Victims(min_replicas=1, min_age=0),
        cooldown=Cooldown(workload=60, node=draw(st.sampled_from([0, 120]))),
    )


@st.composite
def crowded(draw: st.DrawFn) -> Scene:
    """Pods that nothing but one tight budget holds back."""
    tight = draw(st.sampled_from(["total", "per_node", "per_namespace", "per_workload", "per_tenant"]))
    limits = {"total": 100, "per_node": 100, "per_namespace": 100, "per_workload": 100, "per_tenant": 100, tight: draw(TIGHT)}
    clean = [{**fields, "budgets": ()} for fields in draw(st.lists(pods_of(flaws=()), min_size=5, max_size=12))]
    return scene_of(
        state_with(*(pod(f"pod-{row}", **fields) for row, fields in enumerate(clean)), nodes=tuple(node(name) for name in NODES)),
        history=History(evictions=tuple(draw(st.lists(past_evictions, max_size=4)))),
        budgets=Budgets(**limits),
        cooldown=Cooldown(workload=0, node=0),
    )


def accept_all(scene: Scene) -> list[int]:
    """Offer every pod in turn, and take each one that no gate refuses."""
    accepted = []
    for row in range(len(scene.state.pods.names)):
        if first_refusal(candidate(scene, row), scene) is None:
            book(candidate(scene, row), scene)
            accepted.append(row)
    return accepted


def recent(scene: Scene) -> list[PastEviction]:
    return [past for past in scene.history.evictions if scene.state.at - past.at < scene.spec.budgets.window]


def spent(key: object, chosen: list[object], past: list[object]) -> int:
    return chosen.count(key) + past.count(key)


@given(st.one_of(crowded(), crowded(), scenes()))
@settings(max_examples=200, deadline=None)
def test_no_accepted_set_exceeds_a_budget(scene: Scene) -> None:
    """Window and plan together stay within total, node, namespace, workload and tenant budgets, counted anew from the pods."""
    state, rules, past = scene.state, scene.spec.budgets, recent(scene)
    accepted = accept_all(scene)
    running = [row for row in range(len(state.pods.names)) if state.pods.phase[row] == Phase.RUNNING and state.pods.node[row] >= 0]
    tenant = [*state.tenants, None]
    columns = [
        (rules.per_node, [state.nodes.names[state.pods.node[row]] for row in running], [p.source for p in past]),
        (rules.per_namespace, [state.pods.namespaces[row] for row in running], [p.namespace for p in past]),
        (rules.per_workload, [state.workload_of(row) for row in running], [p.workload for p in past]),
        (rules.per_tenant, [tenant[state.pods.tenant[row]] for row in running], [p.tenant for p in past]),
    ]
    for limit, of_running, of_past in columns:
        of_accepted = [of_running[running.index(row)] for row in accepted]
        for key in {key for key in of_accepted if key is not None}:
            assert spent(key, of_accepted, of_past) <= limit_of(limit, of_running.count(key))
    if accepted:
        assert len(accepted) + len(past) <= limit_of(rules.total, len(running))


@given(scenes())
@settings(max_examples=120, deadline=None)
def test_p4_no_accepted_set_exceeds_what_a_pdb_allows(scene: Scene) -> None:
    """Summed over the plan, no PDB pays for more disruptions than it allows; a stale one pays for none; no pod has two."""
    state = scene.state
    paid: Counter[int] = Counter()
    for row in accept_all(scene):
        assert len(state.pods.budgets[row]) <= 1
        for rule in state.pods.budgets[row]:
            paid[rule] += disruption_cost(state, row, rule)
    for rule, cost in paid.items():
        assert cost <= (0 if state.budgets[rule].stale else state.budgets[rule].allowed)


@given(scenes())
@settings(max_examples=100, deadline=None)
def test_p1_no_accepted_set_has_two_pods_of_a_workload(scene: Scene) -> None:
    """One in flight a workload, whatever the budgets would allow."""
    workloads = [scene.state.workload_of(row) for row in accept_all(scene)]
    assert None not in workloads
    assert len(set(workloads)) == len(workloads)


@given(states())
@settings(max_examples=100, deadline=None)
def test_v4_unknown_usage_is_always_refused(state: ClusterState) -> None:
    """Wherever a NaN or an estimate stands in a judged signal, the pod stays."""
    scene = scene_of(state, victims=Victims(min_replicas=1, min_age=0), budgets=Budgets(total="100%", per_node="100%"))
    for row in range(len(state.pods.names)):
        if np.isnan(state.pods.usage[row]).any() or state.pods.estimated[row].any():
            assert first_refusal(candidate(scene, row), scene) is not None


@given(scenes())
@settings(max_examples=100, deadline=None)
def test_static_gates_answer_the_same_however_far_the_plan_has_grown(scene: Scene) -> None:
    """What a static gate says at the start of a cycle holds to its end."""
    rows = range(len(scene.state.pods.names))
    before = [first_refusal(candidate(scene, row), scene, static=True) for row in rows]
    accept_all(scene)
    assert [first_refusal(candidate(scene, row), scene, static=True) for row in rows] == before


@given(scenes())
@settings(max_examples=100, deadline=None)
def test_e2_every_refusal_has_a_gate_and_a_sentence(scene: Scene) -> None:
    """A sentence names things and numbers: it has words, no NaN, no Python in it, and no full stop, since it stands in a table."""
    for row in range(len(scene.state.pods.names)):
        refusal = first_refusal(candidate(scene, row), scene)
        if refusal is not None:
            assert " " in refusal.reason
            assert not refusal.reason.endswith(".")
            assert re.search(r"\b(nan|inf|None|WorkloadRef|array|np)\b", refusal.reason) is None
