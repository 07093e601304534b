"""Explanations carry the numbers, the word of every gate, and help with names."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.detect.classify import detect
from rebalancer.errors import UsageError
from rebalancer.guard.gate import Booked, Scene, all_gates
from rebalancer.policy.model import Mode, Spec
from rebalancer.report.explain import explain_node, explain_pod, explain_workload
from rebalancer.report.explanation import Explanation, Ruling
from rebalancer.state.history import NOTHING_HAPPENED, History, PastEviction, Quarantine
from tests.report import cases
from tests.support.builder import NOW, cluster, node, pod
from tests.support.gangs import gang


def _fact(explanation: Explanation, topic: str) -> str:
    return next(fact.sentence for fact in explanation.facts if fact.topic == topic)


def _node(name: str) -> Explanation:
    state = cases.state()
    return explain_node(state=state, findings=cases.findings(state), plan=cases.plan(state), name=name)


def _pod(name: str, *, history: History | None = None, namespace: str | None = None, with_plan: bool = True) -> Explanation:
    state = cases.state()
    return explain_pod(
        scene=cases.scene(state, history),
        findings=cases.findings(state),
        plan=cases.plan(state) if with_plan else None,
        name=name,
        namespace=namespace,
    )


def _workload(name: str, *, history: History | None = None, namespace: str | None = None, kind: str | None = None) -> Explanation:
    state = cases.state()
    return explain_workload(
        scene=cases.scene(state, history), findings=cases.findings(state), plan=cases.plan(state), name=name, namespace=namespace, kind=kind
    )


def test_a_hot_node_is_explained_with_its_numbers() -> None:
    """Load, packing, marks and windows."""
    cpu = _fact(_node(cases.HOT), "cpu")
    assert "load 91 % (14.56 cores of 16.00 cores)" in cpu
    assert "packed to 44 % by requests" in cpu
    assert "low 40 %, target 55 %, high 70 %" in cpu
    assert "over high in 9 of the last 10 windows of 1m (lowest 60 %, highest 91 %)" in cpu


def test_an_unknown_load_is_called_unknown_with_its_reason() -> None:
    """Not zero per cent."""
    explanation = _node(cases.LOST)
    assert _fact(explanation, "cpu").startswith("load is unknown: no series for the node")
    assert explanation.conclusion.startswith("unknown: ")


def test_a_node_lists_what_leaves_arrives_and_stays() -> None:
    """With the gate and the sentence of each refusal."""
    hot, cool = _node(cases.HOT), _node(cases.COOL)
    assert [(verdict.subject, verdict.ruling, verdict.gate) for verdict in hot.verdicts] == [
        ("shop/cart-0", Ruling.MOVES, None),
        (f"shop/{cases.WEB_POD}", Ruling.REFUSED, "disruption-budget"),
    ]
    assert [(verdict.subject, verdict.ruling) for verdict in cool.verdicts] == [("shop/cart-0", Ruling.ARRIVES)]


def test_usage_that_no_pod_explains_is_named() -> None:
    """14.56 cores measured, 7.10 of them by pods."""
    assert "7.46 cores of cpu not explained by a measured pod" in _fact(_node(cases.HOT), "pods")


def test_e2_every_gate_is_asked_about_a_pod() -> None:
    """Each gate has its verdict; those that refuse carry a sentence."""
    verdicts = {verdict.subject: verdict for verdict in _pod(cases.WEB_POD).verdicts}
    assert list(verdicts) == [gate.name for gate in all_gates()]
    assert verdicts["disruption-budget"].ruling is Ruling.REFUSED
    assert "shop/web allows 0 disruptions" in verdicts["disruption-budget"].sentence
    assert verdicts["bare-pod"].ruling is Ruling.ALLOWED
    assert all(verdict.rule for verdict in verdicts.values())


def test_e1_a_pod_behind_a_closed_budget_stays_and_names_it() -> None:
    """Without a plan too, the first gate that refuses is the answer."""
    assert _pod(cases.WEB_POD, with_plan=False).conclusion.startswith("stays, refused by disruption-budget: PDB shop/web allows 0")


def test_a_pod_that_moves_says_where_and_why() -> None:
    """The plan's move is the conclusion."""
    assert _pod("cart-0").conclusion.startswith(f"moves to {cases.COOL}: cpu load 91 %")


def test_a_pod_on_a_calm_node_stays_because_of_that() -> None:
    """Nothing has to leave the node."""
    assert f"nothing has to leave its node {cases.COOL}, which is cold" in _pod("bare", with_plan=False).conclusion


def test_a_pending_pod_has_no_gates() -> None:
    """It is on no node that it could leave."""
    explanation = _pod("web-waiting")
    assert explanation.verdicts == ()
    assert explanation.conclusion == "stays: it is not running on a node"


def test_what_the_plan_spent_does_not_change_the_word_of_the_gates() -> None:
    """Gates are asked as for the first move of a plan, whatever the scene has booked."""
    state = cases.state()
    spent = Scene(state=state, spec=Spec(), history=History(), booked=Booked(total=10_000))
    arguments = {"findings": cases.findings(state), "plan": None, "name": "cart-0"}
    fresh = explain_pod(scene=cases.scene(state), **arguments)
    assert explain_pod(scene=spent, **arguments).verdicts == fresh.verdicts


def test_estimates_are_called_estimates() -> None:
    """A young pod's number is no measurement."""
    assert "estimated, the pod is too young to be measured" in _fact(_pod("web-5f6d7c8b9-young"), "cpu")


def test_what_an_eviction_would_disturb_is_said() -> None:
    """With the weight, and with the time that a slow start takes."""
    assert _fact(_pod("cart-0"), "disturbance").startswith("an eviction weighs ")
    slow = _workload("web", history=History(start_up={cases.WEB: 300.0}))
    assert _fact(slow, "disturbance").endswith("Deployment shop/web takes 5m to become Ready, gain.startUp is 1m")


def test_a_workload_is_explained_with_its_past() -> None:
    """Replicas, budgets, evictions, quarantine."""
    past = PastEviction(
        at=NOW - 900, pod_uid="u", namespace="shop", pod="web-old", workload=cases.WEB, controller_uid="c", tenant=None,
        source=cases.HOT, destination=cases.COOL,
    )  # fmt: skip
    history = History(evictions=(past,), quarantine={cases.WEB: Quarantine(until=NOW + 3600, returns=2, node=cases.HOT)})
    explanation = _workload("web", history=history)
    assert _fact(explanation, "replicas") == "2 ready of 3 wanted"
    assert _fact(explanation, "disruption budgets").startswith("shop/web allows 0 (3 healthy of 3 desired)")
    assert "web-old" in _fact(explanation, "past evictions")
    assert _fact(explanation, "quarantine").startswith("until 2025-06-15T")
    assert len(explanation.verdicts) == 3


def test_unmeasured_pods_of_a_workload_are_in_no_sum() -> None:
    """They are counted, and told."""
    assert "1 of 3 pods with unknown usage, in neither number" in _fact(_workload("web"), "memory")


@pytest.mark.parametrize("name", ["web", "shop/web", "Deployment/web", "deployment/web"])
def test_a_workload_can_be_named_in_several_ways(name: str) -> None:
    """As kubectl users write it."""
    assert _workload(name).subject == "shop/web"


def test_an_unknown_name_gets_near_ones() -> None:
    """A typing mistake is answered with what was meant."""
    with pytest.raises(UsageError, match=f"there is no node {cases.HOT[:-1]}: did you mean {cases.HOT}"):
        _node(cases.HOT[:-1])
    with pytest.raises(UsageError, match=f"there is no pod web-5f6d7c8b9-q8w7 in the cluster: did you mean {cases.WEB_POD}"):
        _pod("web-5f6d7c8b9-q8w7")
    with pytest.raises(UsageError, match="there is no workload wep in the cluster"):
        _workload("wep")


def test_an_ambiguous_name_names_the_choices() -> None:
    """Two namespaces have it: the answer lists them and the flag."""
    with pytest.raises(UsageError, match="pod same exists in namespaces one, two: say which one with -n NAMESPACE"):
        _pod("same")
    with pytest.raises(UsageError, match="same is the name of several workloads: Deployment one/same, Deployment two/same"):
        _workload("same")
    assert _pod("same", namespace="two").subject == "two/same"
    assert _pod("one/same").subject == "one/same"


def test_contradicting_namespaces_are_refused() -> None:
    """A name and a flag that disagree are not guessed about."""
    with pytest.raises(UsageError, match="names namespace one, -n names two"):
        _pod("one/same", namespace="two")


def test_a_name_with_escapes_cannot_reach_the_terminal() -> None:
    """The argument is foreign text too."""
    with pytest.raises(UsageError) as caught:
        _pod("\x1b[31mx")
    assert str(caught.value).isprintable()


def test_queries_are_part_of_the_explanation() -> None:
    """Whoever doubts a number can ask Prometheus the same question."""
    state = cases.state()
    explanation = explain_node(state=state, findings=cases.findings(state), plan=None, name=cases.COOL, queries={"node cpu": "up"})
    assert explanation.queries == {"node cpu": "up"}
    assert not np.isnan(state.at)


def _gang_of(words: dict[str, str], *, minimum: int | None = None) -> Explanation:
    pods = [pod(f"w-{i}", on="n", workload="llm", gang="llm", annotations=words, uses={"cpu": 1.0, "memory": 2**30}) for i in range(3)]
    state = cluster(nodes=[node("n", load={"cpu": 0.5, "memory": 0.3})], pods=pods, gangs=[gang("llm", minimum=minimum)])
    scene = Scene(state=state, spec=Spec(), history=NOTHING_HAPPENED, booked=Booked(), mode=Mode.EVICT)
    return explain_pod(scene=scene, findings=detect(state, Spec()), plan=None, name="w-0")


def test_a_member_of_a_gang_says_of_which_and_how_it_moves() -> None:
    """Whole, one by one, or not; and the gates are asked as a plan would ask them."""
    whole = _gang_of({"rebalancer.dev/checkpointed": "true"})
    assert _fact(whole, "gang") == (
        "job-set default/llm of 3 pods, which needs all 3 of them (restartPolicy Always); 3 are Ready; it moves whole, or not at all"
    )
    assert whole.conclusion.endswith("no gate is against a move")
    assert _fact(_gang_of({}, minimum=2), "gang").endswith("1 member may move, one by one")
    assert "it does not move: default/w-0 is not annotated" in _fact(_gang_of({}), "gang")
