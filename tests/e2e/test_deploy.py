"""What an operator installs, given to the real API server: chart and overlays are accepted without a warning, the fence holds."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.charts import kustomized, objects, tool
from tests.e2e.api import STRATEGIC, Api, Json, Refused, until
from tests.e2e.ground import ground
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import pod, pod_spec
from tests.e2e.plane import ControlPlane, account_kubeconfig
from tests.e2e.table import Row

UNKNOWN = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of an operator that this server has not: its definitions are no part of Kubernetes."""
EVERYTHING = (
    "networkPolicy.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "metrics.prometheusRule.enabled=true",
    "metrics.dashboard.enabled=true",
    'policy={"interval": "2m"}',
    "annotateNodes=both",
)
WITH_HINTS = 'policy={"apiVersion": "rebalancer.dev/v1alpha1", "kind": "RebalancePolicy", "spec": {"steering": {"hints": true}}}'
OVERLAY_NAMESPACE = "rebalancer"
CHART_NAMESPACE = "ops"
FENCE_S = 30.0
"""From a new admission policy to its first effect: the API server reads them by watch."""
NODE = "node-0"
POD = "fenced"
GATED = "gated"
STEER = "rebalancer.dev/steer"
FOREIGN_GATE = "team.example/hold"
HOT = "rebalancer.dev/hot"
WARM = "rebalancer.dev/warm"
ABOUT_ANNOTATIONS = "the rebalancer may change only annotations under rebalancer.dev/"
ABOUT_LABELS = "the rebalancer may not change labels, but take its own off"
ABOUT_FINALIZERS = "the rebalancer may not change finalizers"
ABOUT_PODS = "the rebalancer may change nothing of a pod's spec but take its own gate off"
ABOUT_STATUS = "the rebalancer may change nothing of a pod's status but the node that is proposed for it"
ABOUT_NODES = "the rebalancer may change nothing of a node's spec but its soft taints"
ABOUT_TAINTS = "the rebalancer may change only the taints rebalancer.dev/hot and rebalancer.dev/warm"
ABOUT_EFFECT = "the taints rebalancer.dev/hot and rebalancer.dev/warm may only be PreferNoSchedule"


def kubectl(plane: ControlPlane, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [tool("kubectl"), f"--kubeconfig={plane.kubeconfig}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 or not check, f"{' '.join(arguments)}: {done.stderr}"
    return done


@pytest.fixture
def namespaces(plane: ControlPlane) -> Iterator[None]:
    """The namespaces that are installed into: a dry run makes none, and what is in them needs one."""
    for name in (OVERLAY_NAMESPACE, CHART_NAMESPACE):
        if plane.api.find("namespaces", name) is None:
            plane.api.create("namespaces", {"kind": "Namespace", "metadata": {"name": name}})
    yield
    for name in (OVERLAY_NAMESPACE, CHART_NAMESPACE):
        plane.api.delete("namespaces", name)
    until(lambda: not any(plane.api.find("namespaces", name) for name in (OVERLAY_NAMESPACE, CHART_NAMESPACE)), "their end")


def rendered(source: str) -> list[dict[str, Any]]:
    kind, _, mode = source.partition(" ")
    if kind == "kustomize":
        return kustomized(mode)
    return objects("mode=evict", *EVERYTHING[:-1], WITH_HINTS) if mode == "hints" else objects(f"mode={mode}", *EVERYTHING)


SOURCES = (
    *("chart dry-run", "chart annotate", "chart evict", "chart hints"),
    *("kustomize dry-run", "kustomize evict", "kustomize evict-annotated", "kustomize evict-hinted"),
)


@pytest.mark.usefixtures("namespaces")
def test_the_server_accepts_everything_without_a_warning(plane: ControlPlane, scenario: Row) -> None:
    """Install: chart and overlays pass a server-side dry run without warnings."""
    for source in SOURCES:
        documents = [document for document in rendered(source) if document["kind"] not in UNKNOWN]
        done = kubectl(
            plane, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(documents)
        )
        scenario.shows(f"{source}: {len(done.stdout.splitlines())} objects accepted, {len(done.stderr.splitlines())} warnings")
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == len(documents)


# ---- the fence ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fenced:
    """The account of the evict overlay, a pod and a node with something in every field that it must leave alone."""

    admin: Api
    account: Api

    def patch(self, resource: str, body: Json, *, api: Api | None = None, pod: str = POD, part: str = "") -> str:
        """What the server said against it; empty when it agreed. ``body`` is a strategic merge, as kubectl would send."""
        name, namespace = (pod, OVERLAY_NAMESPACE) if resource == "pods" else (NODE, "")
        try:
            (api or self.account).patch(resource, name, body, namespace, part=part, content_type=STRATEGIC)
        except Refused as error:
            return error.words if error.status in (403, 422) else str(error)
        return ""


ROLES = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
FENCE = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


@pytest.fixture
def fenced(plane: ControlPlane, tmp_path: Path) -> Iterator[Fenced]:
    """The overlay's account, roles and fence, really there."""
    whole = [document for document in kustomized("evict-hinted") if document["kind"] in ROLES | FENCE]
    with ground(plane, tmp_path, [HollowNode(NODE, taints=[DEDICATED])], monitored=False):
        try:
            kubectl(plane, "apply", "-f", "-", stdin=yaml.safe_dump_all(whole))
            until(lambda: plane.api.find("serviceaccounts", "default", OVERLAY_NAMESPACE), "the default account")
            plane.api.create(
                "pods", pod(POD, OVERLAY_NAMESPACE, hardened(), labels={"app": "fenced"}, annotations={"team.example/note": "kept"})
            )
            account = Api(account_kubeconfig(plane, OVERLAY_NAMESPACE, "rebalancer"))
            found = Fenced(admin=plane.api, account=account)
            # A change that is none passes any fence, so each try writes something new.
            tries = itertools.count()
            until(lambda: found.patch("pods", annotation("team.example/probe", str(next(tries)))), "the fence stands", seconds=FENCE_S)
            yield found
            account.close()
        finally:
            for name in (POD, GATED):
                plane.api.delete("pods", name, OVERLAY_NAMESPACE, grace_s=0)
            kubectl(plane, "delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(whole), check=False)


def hardened() -> Json:
    """A pod that the namespace's level "restricted" lets in."""
    spec = pod_spec(cpu="10m", securityContext={"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}})
    spec["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return spec


def taint(key: str, effect: str) -> dict[str, str]:
    return {"key": key, "value": "true", "effect": effect}


def taints(*all_of_them: dict[str, str]) -> Json:
    """Taints are one list, replaced as a whole."""
    return {"spec": {"taints": list(all_of_them)}}


def annotation(key: str, value: str | None) -> Json:
    return {"metadata": {"annotations": {key: value}}}


DEDICATED = taint("dedicated", "NoSchedule")
ALLOWED: tuple[tuple[str, str, Json], ...] = (
    ("its annotation on a pod", "pods", annotation("rebalancer.dev/candidate", "{}")),
    ("its annotation off a pod", "pods", annotation("rebalancer.dev/candidate", None)),
    ("its annotation on a node", "nodes", annotation("rebalancer.dev/load", "{}")),
    ("its soft taint", "nodes", taints(DEDICATED, taint(HOT, "PreferNoSchedule"))),
    ("its soft taints of both grades", "nodes", taints(DEDICATED, taint(HOT, "PreferNoSchedule"), taint(WARM, "PreferNoSchedule"))),
    ("its soft taint of the lower grade", "nodes", taints(DEDICATED, taint(WARM, "PreferNoSchedule"))),
    ("its soft taints off", "nodes", taints(DEDICATED)),
)
DENIED: tuple[tuple[str, str, Json, str], ...] = (
    ("a foreign annotation", "pods", annotation("team.example/note", "changed"), ABOUT_ANNOTATIONS),
    ("a foreign annotation off", "pods", annotation("team.example/note", None), ABOUT_ANNOTATIONS),
    ("a key that begins alike", "pods", annotation("rebalancer.devious/note", "x"), ABOUT_ANNOTATIONS),
    ("a foreign annotation of a node", "nodes", annotation("node.alpha.kubernetes.io/ttl", "9"), ABOUT_ANNOTATIONS),
    ("crane's annotation where it is not written", "nodes", annotation("cpu_usage_avg_5m", "0.1,2026-01-02T11:04:05Z"), ABOUT_ANNOTATIONS),
    ("a label of a pod", "pods", {"metadata": {"labels": {"app": "other"}}}, ABOUT_LABELS),
    ("a label of a node", "nodes", {"metadata": {"labels": {"pool": "other"}}}, ABOUT_LABELS),
    ("a finalizer", "pods", {"metadata": {"finalizers": ["team.example/hold"]}}, ABOUT_FINALIZERS),
    ("the image of a pod", "pods", {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}, ABOUT_PODS),
    ("a deadline of a pod", "pods", {"spec": {"activeDeadlineSeconds": 5}}, ABOUT_PODS),
    ("cordoning", "nodes", {"spec": {"unschedulable": True}}, ABOUT_NODES),
    ("a foreign taint", "nodes", taints(DEDICATED, taint("team.example/mine", "PreferNoSchedule")), ABOUT_TAINTS),
    ("a foreign taint off", "nodes", taints(), ABOUT_TAINTS),
    ("a taint of its prefix", "nodes", taints(DEDICATED, taint("rebalancer.dev/warmer", "PreferNoSchedule")), ABOUT_TAINTS),
    ("its other taint with NoSchedule", "nodes", taints(DEDICATED, taint(WARM, "NoSchedule")), ABOUT_EFFECT),
    ("its taint with NoSchedule", "nodes", taints(DEDICATED, taint(HOT, "NoSchedule")), ABOUT_EFFECT),
    ("its taint with NoExecute", "nodes", taints(DEDICATED, taint(HOT, "NoExecute")), ABOUT_EFFECT),
)


def test_the_fence_lets_the_account_change_what_is_its_own_and_nothing_else(fenced: Fenced, scenario: Row) -> None:
    """Install: the admission fence denies all but the account's own annotations and soft taint."""
    allowed = {what: fenced.patch(resource, body) for what, resource, body in ALLOWED}
    assert not any(allowed.values()), allowed
    for what, resource, body, message in DENIED:
        said = fenced.patch(resource, body)
        assert message in said, f"{what}: {said or 'allowed'}"
    scenario.shows(f"{len(ALLOWED)} kinds of change allowed, {len(DENIED)} denied with the reason")
    assert fenced.patch("pods", annotation("team.example/note", "by another"), api=fenced.admin) == "", "others are not fenced"


GATED_DENIED: tuple[tuple[str, str, Json, str], ...] = (
    ("the gate of another", "", {"spec": {"schedulingGates": [{"name": FOREIGN_GATE, "$patch": "delete"}]}}, ABOUT_PODS),
    ("a node selector", "", {"spec": {"nodeSelector": {"disk": "ssd"}}}, ABOUT_PODS),
    ("an affinity", "", {"spec": {"affinity": {"nodeAffinity": {}}}}, ABOUT_PODS),
    ("another value of its label", "", {"metadata": {"labels": {STEER: "other"}}}, ABOUT_LABELS),
    ("a label of the pod off", "", {"metadata": {"labels": {"app": None}}}, ABOUT_LABELS),
    ("its phase", "status", {"status": {"phase": "Running"}}, ABOUT_STATUS),
    ("a condition", "status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ABOUT_STATUS),
    ("an address", "status", {"status": {"hostIP": "10.0.0.1"}}, ABOUT_STATUS),
)
GATED_ALLOWED: tuple[tuple[str, str, Json], ...] = (
    ("a node proposed", "status", {"status": {"nominatedNodeName": NODE}}),
    (
        "its gate and its label off",
        "",
        {"metadata": {"labels": {STEER: None}}, "spec": {"schedulingGates": [{"name": STEER, "$patch": "delete"}]}},
    ),
)


def test_the_fence_lets_the_account_open_its_own_gates_and_propose_nodes(fenced: Fenced, scenario: Row) -> None:
    """Install: of a gated pod the account may propose the node and take its own gate and label off, nothing else."""
    held = pod(GATED, OVERLAY_NAMESPACE, hardened(), labels={"app": "fenced", STEER: "rebalancer.rebalancer"})
    held["spec"]["schedulingGates"] = [{"name": STEER}, {"name": FOREIGN_GATE}]
    fenced.admin.create("pods", held)
    for what, part, body, message in GATED_DENIED:
        said = fenced.patch("pods", body, pod=GATED, part=part)
        assert message in said, f"{what}: {said or 'allowed'}"
    allowed = {what: fenced.patch("pods", body, pod=GATED, part=part) for what, part, body in GATED_ALLOWED}
    assert not any(allowed.values()), allowed
    found = fenced.admin.get("pods", GATED, OVERLAY_NAMESPACE)
    assert found["spec"]["schedulingGates"] == [{"name": FOREIGN_GATE}]
    assert found["status"]["nominatedNodeName"] == NODE
    assert STEER not in found["metadata"]["labels"]
    assert ABOUT_LABELS in fenced.patch("pods", {"metadata": {"labels": {STEER: "back"}}}, pod=GATED), "its label is never put by it"
    scenario.shows(f"{len(GATED_ALLOWED)} kinds of change allowed, {len(GATED_DENIED) + 1} denied with the reason")


@pytest.mark.usefixtures("fenced")
def test_the_server_finds_nothing_wrong_with_the_expressions(plane: ControlPlane, scenario: Row) -> None:
    """Install: the fence's expressions pass the server's type checks."""

    def checked() -> Json | None:
        found = plane.api.get("validatingadmissionpolicies", "rebalancer-fence")
        status = found.get("status") or {}
        return status if status.get("observedGeneration") == found["metadata"]["generation"] and "typeChecking" in status else None

    status = until(checked, "the types of the fence are checked")
    warnings = status["typeChecking"].get("expressionWarnings") or []
    scenario.shows(f"{len(warnings)} warnings")
    assert warnings == []
