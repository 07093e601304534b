"""Placement hints as an operator meets them: the service that gives them, its end, and the clean-up of what a dead one left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL
from rebalancer.simulate.hint_admission import HintAdmission
from rebalancer.simulate.kinds import Json
from rebalancer.steer.hint_policy import hint_policy
from rebalancer.steer.hinting import GATE, LABEL, owner_label
from tests.hints.kit import LEASE, OWN, OWNER, SHOP, Shop
from tests.support.embedded import Process, Stage, eventually, run_command, stage

RUN = ("run", "--listen", "127.0.0.1:0", "--log-format", "json", "--mode", "evict")
NAMESPACE = "default"
"""Of the controller, outside of a cluster."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    """A small cluster with two hot nodes; every namespace asks for hints, and the admission policy is installed."""
    with stage(tmp_path) as opened:
        world = opened.cluster.world
        for namespace in list(world.objects("namespaces")):
            meta = namespace["metadata"]
            labels = {**(meta.get("labels") or {}), NAMESPACE_LABEL: ENABLED}
            world.replace("namespaces", {**namespace, "metadata": {**meta, "labels": labels}})
        owner = owner_label(namespace=NAMESPACE, lease="rebalancer")
        world.admission.append(HintAdmission(world, namespace=NAMESPACE, announcement=LEASE, owner=owner))
        _, binding = hint_policy(name="hints", namespace=NAMESPACE, announcement=LEASE, owner=owner)
        world.create("mutatingadmissionpolicybindings", dict(binding))
        yield opened


def held(cluster: Stage) -> list[Json]:
    pods = cluster.cluster.world.objects("pods")
    return [pod for pod in pods if pod["spec"].get("schedulingGates") or LABEL in (pod["metadata"].get("labels") or {})]


def hinted(process: Process) -> list[Json]:
    return [line for line in process.messages("ungated") if line["result"] == "hinted"]


def test_the_service_gives_its_replacements_their_planned_nodes(cluster: Stage) -> None:
    """Every replacement of its plan is gated, hinted and lands as planned; at its end nothing of that is left."""
    world = cluster.cluster.world
    before = {pod["metadata"]["uid"] for pod in world.objects("pods")}
    policy = cluster.policy("  steering: {hints: true}\n")
    env = {"REBALANCER_NAMESPACE": NAMESPACE}
    with cluster.process(*RUN, "--policy", policy, env=env) as process:
        moves = eventually(lambda: process.messages("cycle") and process.messages("move"), seconds=60)
        evicted = [move for move in moves if move["result"] == "evicted"]
        assert evicted
        eventually(lambda: len(hinted(process)) == len(evicted), seconds=30)
        assert process.terminate() == 0
    nodes = {line["pod"]: line["node"] for line in hinted(process)}
    landed = {f"{meta['namespace']}/{meta['name']}": pod for pod in world.objects("pods") if (meta := pod["metadata"])["uid"] not in before}
    assert {name: landed[name]["spec"].get("nodeName") for name in nodes} == nodes
    assert sorted(nodes.values()) == sorted(move["destination"] for move in evicted)
    assert held(cluster) == []
    assert world.find("hintannouncements", LEASE, NAMESPACE) is None


def test_without_the_wish_of_the_policy_nothing_is_announced(cluster: Stage) -> None:
    """Evictions alone gate nobody."""
    env = {"REBALANCER_NAMESPACE": NAMESPACE}
    with cluster.process(*RUN, env=env) as process:
        eventually(lambda: process.messages("cycle"), seconds=60)
        assert process.terminate() == 0
    assert cluster.evictions
    assert not any("hintannouncements" in path or path.startswith("PATCH /api/v1/namespaces") for path in cluster.written)


def hints_check(cluster: Stage, policy: Path) -> tuple[str, str]:
    ran = cluster.run("check", "-o", "json", "--policy", policy, env={"REBALANCER_NAMESPACE": NAMESPACE})
    (found,) = (check for check in ran.document["checks"] if check["name"] == "hints")
    return found["status"], found["sentence"]


def test_the_preflight_says_whether_hints_would_happen(cluster: Stage) -> None:
    """Installed and asked for; installed and asked for by nobody; not installed."""
    world, policy = cluster.cluster.world, cluster.policy("  steering: {hints: true}\n")
    status, words = hints_check(cluster, policy)
    assert (status, "namespaces ask for hints" in words) == ("ok", True)
    for namespace in list(world.objects("namespaces")):
        world.replace("namespaces", {**namespace, "metadata": {**namespace["metadata"], "labels": {}}})
    assert hints_check(cluster, policy)[0] == "warn"
    world.remove("mutatingadmissionpolicybindings", "hints")
    status, words = hints_check(cluster, policy)
    assert (status, "no admission policy goes by HintAnnouncement default/rebalancer" in words) == ("warn", True)


def gated(town: Shop, name: str, *, label: str | None) -> None:
    labels = {} if label is None else {LABEL: label}
    metadata = {"name": name, "namespace": SHOP, "labels": labels}
    spec = {"containers": [], "schedulingGates": [{"name": GATE}]}
    town.world.create("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def names(town: Shop) -> set[str]:
    return {pod["metadata"]["name"] for pod in town.gated()}


def test_cleanup_opens_the_gates_and_withdraws_the_announcement(town: Shop, tmp_path: Path) -> None:
    """Of this controller, and of pods that have lost the label; those of another one with --all alone."""
    town.announce({"uid": {"until": "2099-01-01T00:00:00Z"}})
    gated(town, "ours", label=OWNER)
    gated(town, "nobodys", label=None)
    gated(town, "theirs", label="other.rebalancer")
    env = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "REBALANCER_NAMESPACE": OWN, "HOME": str(tmp_path)}
    ran = run_command("cleanup", env=env).ended(0)
    assert "HintAnnouncement ops/rebalancer deleted" in ran.out
    assert "scheduling gate rebalancer.dev/steer opened for 2 pods" in ran.out
    assert names(town) == {"theirs"}
    assert "opened for 1 pod" in run_command("cleanup", "--all", env=env).ended(0).out
    assert names(town) == set()
    assert run_command("cleanup", env=env).ended(0).out == "nothing of ours was there\n"
