"""Placement hints of `rebalancer run`: a hot cluster is cured with every replacement as planned, and whoever dies, no pod is kept.

How pods come to wait with nobody to let them go: the leader is stopped (SIGSTOP) in the second after its announcement, the workload is
scaled up, and then the leader is killed.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rebalancer.runtime.rights import gang_rights, optional_rights
from rebalancer.units import format_time
from tests.deploy.charts import kustomized
from tests.e2e import test_rights as rights
from tests.e2e.api import until
from tests.e2e.audit import audited
from tests.e2e.ground import Ground, ground
from tests.e2e.heat import HOT, REPLICAS, SHOP, heated, hot
from tests.e2e.hinting import ENABLED, admission, announce, announced, gated, policy_in_force, traces
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane, account_kubeconfig
from tests.e2e.table import Row
from tests.e2e.test_cure import POLICY
from tests.support.embedded import Process

OWN = "e2e-hints-run"
CALM = "e2e-hints-calm"
WANTED = f"{POLICY}  steering: {{hints: true}}\n"
CURE_S = 240.0
PODS = 6
MORE = 20
RUNS_WITHIN_S = 30.0
ALONE = {"REBALANCER_NAMESPACE": OWN}
ELECTED = {**ALONE, "REBALANCER_LEADER_ELECTION__ENABLED": "true"}
ARGUMENTS = ("run", "--mode", "evict", "--listen", "127.0.0.1:0")


def test_a_cure_with_hints_lands_as_planned(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Hints: `rebalancer run` cures hot nodes, every replacement on its planned node, and leaves nothing behind."""
    with heated(plane, tmp_path) as own:
        own.namespace(OWN)
        own.api.patch("namespaces", SHOP, {"metadata": {"labels": ENABLED}})
        before = {pod["metadata"]["uid"] for pod in own.pods(SHOP)}
        with admission(own, namespace=OWN):
            policy_in_force(own, own.pods(SHOP)[0], namespace=OWN)
            with own.process(*ARGUMENTS, "--policy", own.policy(WANTED), env=ALONE) as process:
                try:
                    until(lambda: not hot(own), "the cure", seconds=CURE_S, step=0.5)
                    own.settled(SHOP, REPLICAS)
                except AssertionError as error:
                    raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error
                assert process.terminate() == 0
        moves = [move for move in process.messages("move") if move["result"] == "evicted"]
        arrived = [pod for pod in own.pods(SHOP) if pod["metadata"]["uid"] not in before]
        planned = Counter((workload(move["pod"]), move["destination"]) for move in moves)
        landed = Counter((f"{SHOP}/{pod['metadata']['labels']['app']}", pod["spec"]["nodeName"]) for pod in arrived)
        waits = [line["seconds"] for line in process.messages("ungated")]
        scenario.shows(f"{(planned & landed).total()} of {len(moves)} replacements as planned, at most {max(waits):.3f} s at the gate")
        assert planned == landed
        assert len(waits) == len(moves)
        assert traces(own) == []
        assert not announced(own, namespace=OWN)


QUIET = 5
"""Deployments of two replicas that ask for 0.6 cores and more, and use 0.1: by requests their nodes are the full ones."""
UNTAINTED = f"{POLICY}  steering: {{softTaint: false}}\n"
HINTED = f"{POLICY}  steering: {{softTaint: false, hints: true}}\n"


def test_hints_cure_what_the_scheduler_alone_would_not(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Hints: where requests mislead the scheduler and nothing else steers, plans with hints cure what those without refuse."""
    with heated(plane, tmp_path) as own:
        own.namespace(OWN)
        own.api.patch("namespaces", SHOP, {"metadata": {"labels": ENABLED}})
        with own.only(*(node.name for node in own.hollow.nodes if node.name not in HOT)):
            specs = [pod_spec(cpu=f"{700 + 90 * n}m", memory=f"{400 + 150 * n}Mi") for n in range(QUIET)]
            own.apply(*(deployment(f"quiet-{n}", SHOP, each, replicas=2, annotations=uses(cpu="100m")) for n, each in enumerate(specs)))
            own.settled(SHOP, REPLICAS + 2 * QUIET)
        with admission(own, namespace=OWN):
            policy_in_force(own, own.pods(SHOP)[0], namespace=OWN)
            with own.process(*ARGUMENTS, "--policy", own.policy(HINTED), env=ALONE) as process:
                first = until(lambda: process.messages("cycle") and planned(own), "a plan of either kind", seconds=90, step=1)
                try:
                    until(lambda: not hot(own), "the cure", seconds=CURE_S, step=0.5)
                    own.settled(SHOP, REPLICAS + 2 * QUIET)
                except AssertionError as error:
                    raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error
                assert process.terminate() == 0
        moves = [move for move in process.messages("move") if move["result"] == "evicted"]
        hinted = [line for line in process.messages("ungated") if line["result"] == "hinted"]
        scenario.shows(f"without hints: {first}; with hints cured by {len(moves)} moves, {len(hinted)} of them hinted")
        assert Counter(line["node"] for line in hinted) == Counter(move["destination"] for move in moves)
        assert traces(own) == []


def planned(own: Ground) -> str:
    """What a plan without any steering comes to, once something is hot."""
    plan = own.run("plan", "--mode", "evict", "--policy", own.policy(UNTAINTED, name="untainted.yaml"), "-o", "json", env=ALONE).document
    return str(plan["outcome"]) if plan["summary"]["hotNodes"] else ""


def workload(pod: str) -> str:
    """``shop/web-6d5f-x2x`` -> ``shop/web``."""
    return pod.rsplit("-", 2)[0]


def test_the_roles_of_a_policy_with_hints_are_enough_and_not_too_much(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Hints: with the roles of `policy rbac`, behind the fence, nothing is refused and everything granted is used."""
    with audited(plane) as audit, heated(plane, tmp_path) as own:
        own.namespace(rights.NAMESPACE)
        own.api.patch("namespaces", SHOP, {"metadata": {"labels": ENABLED}})
        account = {"kind": "ServiceAccount", "metadata": {"name": rights.ACCOUNT, "namespace": rights.NAMESPACE}}
        own.api.create("serviceaccounts", account)
        policy = own.policy(WANTED)
        roles = list(yaml.safe_load_all(own.run("policy", "rbac", policy).ended(0).out))
        fence = [each for each in kustomized("evict-hinted") if each["kind"].startswith("ValidatingAdmission")]
        with admission(own, namespace=rights.NAMESPACE):
            policy_in_force(own, own.pods(SHOP)[0], namespace=rights.NAMESPACE)
            rights.create(own, [*fence, *roles])
            try:
                env = {**rights.ELECTED, "KUBECONFIG": str(account_kubeconfig(plane, rights.NAMESPACE, rights.ACCOUNT))}
                until(lambda: rights.in_force(own), "the roles are in force", seconds=30)
                with own.process(*ARGUMENTS, "--policy", policy, env=env) as process:
                    try:
                        until(lambda: not hot(own) and process.messages("move"), "the cure", seconds=CURE_S, step=0.5)
                        own.settled(SHOP, REPLICAS)
                    except AssertionError as error:
                        raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error
                    assert process.terminate() == 0
            finally:
                rights.remove(own, [*fence, *roles])
        asked = [each for each in audit.requests() if each.user == rights.USER and each.path not in rights.EVERYBODYS]
        refused = [each.words for each in asked if each.code in (401, 403, 422)]
        used, granted = {(each.verb, each.group, each.path) for each in asked}, rights.powers(roles)
        scenario.shows(f"{len(asked)} requests, {len(refused)} refused; {len(used)} of {len(granted)} powers used")
        assert [line["result"] for line in process.messages("ungated")] == ["hinted"] * len(process.messages("move"))
        assert refused == []
        assert used - granted == set()
        optional = {(right.verb, right.group, right.path) for right in (*optional_rights(), *gang_rights())}  # none of their objects here
        renewing = ("update", "rebalancer.dev", "hintannouncements")  # an announcement may be over before there is anything to change
        assert granted - used <= optional | {renewing}


# ---- when somebody dies -----------------------------------------------------------------------------------------------------


@pytest.fixture
def calm(plane: ControlPlane, tmp_path: Path) -> Iterator[Ground]:
    """Four idle nodes, a workload that asks for hints, the admission policy in force."""
    nodes = [HollowNode(f"node-{number}") for number in range(4)]
    with ground(plane, tmp_path, nodes) as own:
        own.namespace(OWN)
        own.namespace(CALM, labels=ENABLED)
        own.apply(deployment("web", CALM, pod_spec(cpu="50m"), replicas=PODS))
        own.settled(CALM, PODS)
        with admission(own, namespace=OWN):
            policy_in_force(own, own.pods(CALM)[0], namespace=OWN)
            yield own


def dies_with_pods_at_its_gate(own: Ground, leader: Process, *, good_for_s: float) -> None:
    """``good_for_s``: how long its last announcement is good for."""
    leader.popen.send_signal(signal.SIGSTOP)
    (owner,) = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in own.pods(CALM)}
    announce(own, {owner: {"until": format_time(time.time() + good_for_s), "pods": ["somebody"]}}, namespace=OWN)
    time.sleep(0.5)
    own.api.scale("deployments", "web", CALM, PODS + MORE)
    until(lambda: len(gated(own, CALM)) == MORE, f"{MORE} pods at the gate", seconds=20)
    leader.popen.kill()
    leader.wait()


def test_a_standby_lets_the_pods_of_a_dead_leader_go(calm: Ground, scenario: Row) -> None:
    """Hints: the leader is killed with 20 pods at its gate; with a standby all of them run within 30 s."""
    own = calm
    arguments = (*ARGUMENTS, "--policy", own.policy(WANTED))
    with own.process(*arguments, env=ELECTED) as first, own.process(*arguments, env=ELECTED) as second:
        both = (first, second)
        (leader,) = until(lambda: [each for each in both if each.messages("leading")], "one of two leads", seconds=60)
        (standby,) = (each for each in both if each is not leader)
        until(lambda: standby.messages("placement hints are on") and leader.messages("cycle"), "both are at work", seconds=60)
        dies_with_pods_at_its_gate(own, leader, good_for_s=RUNS_WITHIN_S)
        killed = time.monotonic()
        own.settled(CALM, PODS + MORE, seconds=RUNS_WITHIN_S)
        scenario.shows(f"all {MORE} run {time.monotonic() - killed:.0f} s after the kill; by default settings of the lease")
        assert traces(own) == []
        assert standby.terminate() == 0


def test_when_everybody_is_dead_nothing_is_gated_any_more(calm: Ground, scenario: Row) -> None:
    """Hints: with every replica killed the announcement ends by itself; a clean-up lets go what was gated before."""
    own, good_for_s = calm, 12.0
    with own.process(*ARGUMENTS, "--policy", own.policy(WANTED), env=ALONE) as leader:
        until(lambda: leader.messages("cycle"), "its first cycle", seconds=60)
        dies_with_pods_at_its_gate(own, leader, good_for_s=good_for_s)
    time.sleep(good_for_s)
    own.api.scale("deployments", "web", CALM, PODS + 2 * MORE)
    until(lambda: len(own.pods(CALM)) == PODS + 2 * MORE, "more pods", seconds=20)
    waiting = len(gated(own, CALM))
    ran = own.run("cleanup", env=ALONE).ended(0)
    own.settled(CALM, PODS + 2 * MORE, seconds=RUNS_WITHIN_S)
    scenario.shows(f"of {2 * MORE} new pods {waiting} were gated, those before the end; after the clean-up all run: {ran.out.strip()}")
    assert waiting == MORE
    assert traces(own) == []
    assert not announced(own, namespace=OWN)
