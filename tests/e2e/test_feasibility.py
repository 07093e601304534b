"""Our filters and scores against the real kube-scheduler: hundreds of random pods, one at a time, each predicted before it is scheduled.

A pod waits behind a scheduling gate while it is predicted from the API objects, then the gate is lifted. So both sides see the same
cluster, and nothing but the scheduler decides.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.e2e import hollow, scenes
from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground
from tests.e2e.plane import ControlPlane
from tests.e2e.prediction import Prediction, Predictor, predictor
from tests.e2e.table import Row

NODES = 30
PODS = int(os.environ.get("REBALANCER_E2E_PODS", "300"))
SEED = int(os.environ.get("REBALANCER_E2E_SEED", "7"))
LEAVE_EVERY = 3
"""One pod leaves for this many that come, so that the nodes stay about as full."""
SECOND_LOOK_S = 12.0
"""How long a pod that we call feasible may stay refused before that counts: what freed its place may reach the scheduler late."""
GOOD_PREDICTIONS = 0.99
RESOURCES = ("cpu", "memory", "pods", scenes.FPGA)
BY_NAME = "the node's name"


@dataclass(frozen=True)
class Case:
    """One pod: what was predicted, and where the scheduler put it (None: it stays Pending, with ``words``)."""

    pod: Json
    predicted: Prediction
    picked: str | None
    words: str = ""


@dataclass
class Trial:
    cases: list[Case] = field(default_factory=list)

    @property
    def placed(self) -> list[Case]:
        return [case for case in self.cases if case.picked is not None]

    @property
    def pending(self) -> list[Case]:
        return [case for case in self.cases if case.picked is None]


@pytest.fixture(scope="module")
def trial(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("feasibility")
    nodes = scenes.nodes(NODES, seed=SEED)
    with ground(plane, folder, nodes, monitored=False, start_s=0.0) as own, predictor(plane.kubeconfig) as ours:
        volumes = scenes.volumes()
        for volume in volumes:
            plane.api.delete("persistentvolumes", volume["metadata"]["name"])
            plane.api.create("persistentvolumes", volume)
        for name, labels in scenes.NAMESPACES.items():
            own.namespace(name, labels=labels)
        own.apply(*scenes.claims())
        until(lambda: _bound(own), "the claims are bound")
        yield run(own, ours)
    for volume in volumes:
        plane.api.delete("persistentvolumes", volume["metadata"]["name"])


def _bound(own: Ground) -> bool:
    claims = own.api.list("persistentvolumeclaims", scenes.CLAIMED)
    return all(claim["status"].get("phase") == "Bound" for claim in claims)


def run(own: Ground, ours: Predictor) -> Trial:
    rng, trial = random.Random(SEED), Trial()
    there: list[Json] = []
    for number in range(PODS):
        pod = own.api.create("pods", scenes.random_pod(rng, number))
        predicted = ours.predict(pod["metadata"]["uid"], leaving=False, at=time.time())
        case = schedule(own, pod, predicted)
        trial.cases.append(case)
        if case.picked is None:
            _forget(own, pod)
        else:
            there.append(pod)
        if len(there) > NODES and number % LEAVE_EVERY == 0:
            _one_leaves(own, there, rng)
    return trial


def schedule(own: Ground, pod: Json, predicted: Prediction) -> Case:
    """Lift the gate and see what the scheduler says."""
    meta = pod["metadata"]
    own.api.patch("pods", meta["name"], {"spec": {"schedulingGates": None}}, meta["namespace"])
    end = time.monotonic() + SECOND_LOOK_S

    def answer() -> Case | None:
        found = own.api.get("pods", meta["name"], meta["namespace"])
        if node := found["spec"].get("nodeName"):
            return Case(pod=pod, predicted=predicted, picked=node)
        words: Json = next((each for each in found["status"].get("conditions") or () if each["type"] == "PodScheduled"), {})
        refused = words.get("reason") == "Unschedulable"
        if refused and (not predicted.allowed or time.monotonic() > end):
            return Case(pod=pod, predicted=predicted, picked=None, words=words.get("message", ""))
        return None

    found: Case = until(answer, f"kube-scheduler's word on {meta['name']}", step=0.01)
    return found


def _one_leaves(own: Ground, there: list[Json], rng: random.Random) -> None:
    """At once, or by a deletion that lingers until it is this pod's turn again: terminating pods still hold their place."""
    pod = there.pop(rng.randrange(len(there)))
    meta = pod["metadata"]
    if hollow.ENDS_AFTER in (meta.get("annotations") or {}) and rng.random() < 0.7:
        own.api.delete("pods", meta["name"], meta["namespace"], grace_s=30)
    else:
        _forget(own, pod)


def _forget(own: Ground, pod: Json) -> None:
    meta = pod["metadata"]
    own.api.delete("pods", meta["name"], meta["namespace"], grace_s=0)
    until(lambda: own.api.find("pods", meta["name"], meta["namespace"]) is None, f"the end of {meta['name']}")


def test_the_node_that_kube_scheduler_picks_is_among_ours(trial: Trial, scenario: Row) -> None:
    """Feasibility: every node that kube-scheduler picks is one that we allow."""
    wrong = [case for case in trial.placed if case.picked not in case.predicted.allowed]
    narrow = sum(len(case.predicted.allowed) < NODES for case in trial.placed)
    scenario.shows(f"{len(trial.cases)} random pods on {NODES} nodes, {len(trial.placed)} placed, {narrow} of them restricted")
    scenario.shows(f"{len(wrong)} placed on a node that we do not allow")
    assert len(trial.placed) > PODS / 2
    assert not wrong, [(case.pod, case.picked, case.predicted.why[case.picked or ""]) for case in wrong[:3]]


def test_what_we_call_infeasible_stays_pending_and_nothing_else_does(trial: Trial, scenario: Row) -> None:
    """Feasibility: what fits nowhere by us stays Pending, and nothing else does."""
    ours = {case.pod["metadata"]["name"] for case in trial.cases if not case.predicted.allowed}
    theirs = {case.pod["metadata"]["name"] for case in trial.pending}
    scenario.shows(f"{len(theirs)} of {len(trial.cases)} pods stay Pending, {len(ours ^ theirs)} disagreements")
    assert len(theirs) > PODS / 50
    assert ours == theirs, [
        (case.pod, case.words, case.predicted.tally) for case in trial.cases if case.pod["metadata"]["name"] in ours ^ theirs
    ]


def test_the_nodes_are_refused_for_the_scheduler_s_own_reasons(trial: Trial, scenario: Row) -> None:
    """Feasibility: of pods that stay Pending, we refuse the nodes for kube-scheduler's reasons."""
    off = [case for case in trial.pending if not same_reasons(Counter(case.predicted.tally), theirs(case.words))]
    scenario.shows(
        f"{len(trial.pending) - len(off)} of {len(trial.pending)} messages agree with us, reason by reason, on the number of nodes"
    )
    assert not off, [(case.pod["spec"], case.words, case.predicted.tally) for case in off[:3]]


def test_the_predicted_best_nodes_contain_the_one_that_is_picked(trial: Trial, scenario: Row) -> None:
    """Prediction: the nodes that we score best contain the one kube-scheduler picks."""
    open_cases = [case for case in trial.placed if len(case.predicted.allowed) > 1]
    right = [case for case in open_cases if case.picked in case.predicted.best]
    alone = sum(len(case.predicted.best) == 1 for case in right)
    sizes = Counter(len(case.predicted.best) for case in open_cases)
    scenario.shows(f"{len(right)} of {len(open_cases)} placements with a choice are predicted ({len(right) / len(open_cases):.1%})")
    scenario.shows(f"{alone} of them by a single best node; sizes of the best set: {dict(sorted(sizes.items()))}")
    assert len(right) >= GOOD_PREDICTIONS * len(open_cases), [_miss(case) for case in open_cases if case not in right][:3]


def _miss(case: Case) -> Json:
    seen = {name: (case.predicted.totals.get(name), case.predicted.scores.get(name)) for name in (case.picked or "", *case.predicted.best)}
    return {"spec": case.pod["spec"], "labels": case.pod["metadata"]["labels"], "picked": case.picked, "scores": seen}


PHRASES = {
    "Too many pods": "pods",
    "node(s) were unschedulable": "cordon",
    "node(s) didn't match Pod's node affinity/selector": "node-affinity",
    "node(s) didn't have free ports for the requested pod ports": "host-ports",
    "node(s) didn't match PersistentVolume's node affinity": "volumes",
    "node(s) didn't match pod affinity rules": "affinity",
    "node(s) didn't match pod anti-affinity rules": "anti-affinity",
    "node(s) didn't satisfy existing pods anti-affinity rules": "held-anti-affinity",
    "node(s) didn't match pod topology spread constraints": "topology-spread",
    "node(s) didn't match pod topology spread constraints (missing required label)": "topology-spread",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]": BY_NAME,
}


def theirs(words: str) -> Counter[str]:
    """``0/30 nodes are available: 3 Insufficient cpu, 27 node(s) had untolerated taint(s). …`` as our names of reasons -> nodes."""
    listed = words.partition(": ")[2].partition(". ")[0].rstrip(".")
    found: Counter[str] = Counter()
    for part in listed.split(", "):
        count, _, phrase = part.partition(" ")
        found[_named(phrase)] += int(count)
    return found


def _named(phrase: str) -> str:
    if phrase.startswith("Insufficient "):
        return phrase.removeprefix("Insufficient ")
    return "taints" if phrase.startswith("node(s) had untolerated taint") else PHRASES.get(phrase, phrase)


def same_reasons(ours: Counter[str], said: Counter[str]) -> bool:
    """Whether both refuse as many nodes for each reason.

    The scheduler names every resource that is short on a node, we the first one. And where a pod names its nodes, the scheduler looks at no
    other node, so what we call their taints it calls their names.
    """
    if BY_NAME in said:
        said[BY_NAME] += said.pop("taints", 0) + said.pop("node-affinity", 0)
        ours[BY_NAME] += ours.pop("taints", 0) + ours.pop("node-affinity", 0)
    short = {name for name in ours | said if name in RESOURCES}
    if any(ours[name] > said[name] for name in short):
        return False
    return {name: count for name, count in ours.items() if name not in short} == {
        name: count for name, count in said.items() if name not in short
    }
