"""The roles of `rebalancer policy rbac` are what a mode needs: nothing is refused, and nothing is granted that is not used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from rebalancer.policy.model import Mode
from rebalancer.runtime.rights import LEASE, gang_rights, optional_rights
from tests.deploy.charts import kustomized
from tests.e2e.api import Json, until
from tests.e2e.audit import Audit, audited
from tests.e2e.ground import Ground
from tests.e2e.heat import heated, hot, names
from tests.e2e.plane import ControlPlane, account_kubeconfig
from tests.e2e.table import Row
from tests.e2e.test_cure import POLICY

NAMESPACE = ACCOUNT = "rebalancer"
"""The defaults of `policy rbac`, and those that the fence of the overlay names."""
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
ELECTED = {"REBALANCER_NAMESPACE": NAMESPACE, "REBALANCER_LEADER_ELECTION__ENABLED": "true"}
EVERYBODYS = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""What any account may ask without a role."""
RECHECKS = {("get", "", "pods"), ("get", "", "nodes")}
"""In the role that all modes share, and used right before a write of evict mode; they show nothing that a list does not show."""
WORK_S = 180.0
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
Power = tuple[str, str, str]
"""Verb, group, and resource with subresource."""


@dataclass(frozen=True)
class Watched:
    ground: Ground
    audit: Audit


@pytest.fixture(scope="module")
def watched(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A hot cluster, an account without rights, the fence around it, and an API server that writes down what it is asked."""
    fence = [each for each in kustomized("evict") if each["kind"].startswith("ValidatingAdmission")]
    with audited(plane) as audit, heated(plane, tmp_path_factory.mktemp("rights")) as own:
        own.namespace(NAMESPACE)
        own.api.create("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}})
        create(own, fence)
        yield Watched(own, audit)
        remove(own, fence)


def create(own: Ground, documents: list[Json]) -> None:
    for each in documents:
        own.api.create(PLURALS[each["kind"]], each)


def remove(own: Ground, documents: list[Json]) -> None:
    for each in documents:
        own.api.delete(PLURALS[each["kind"]], each["metadata"]["name"], each["metadata"].get("namespace", ""))


def powers(documents: list[Json]) -> set[Power]:
    rules = [rule for each in documents for rule in each.get("rules", ())]
    return {(verb, group, what) for rule in rules for group in rule["apiGroups"] for what in rule["resources"] for verb in rule["verbs"]}


def worked(watched: Watched, mode: Mode, moves: list[Json], before: set[str]) -> bool:
    """True when the mode has shown all that it does: cured what it may cure, or else planned it."""
    if mode is Mode.EVICT:
        return bool(moves) and not hot(watched.ground)
    assert names(watched.ground) == before
    return bool(moves)


def in_force(own: Ground) -> bool:
    """Roles reach the authorizer by watch. The question is the administrator's, so that the account itself is never refused."""
    spec = {"user": USER, "resourceAttributes": {"verb": "list", "resource": "pods"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(own.api.request("POST", "apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"])


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.ANNOTATE, Mode.EVICT], ids=lambda mode: mode.value)
def test_the_roles_of_a_mode_are_enough_and_not_too_much(watched: Watched, mode: Mode, scenario: Row) -> None:
    """Rights: with the roles of `policy rbac` nothing is refused and everything granted is used."""
    own = watched.ground
    policy = own.policy(POLICY)
    roles = list(yaml.safe_load_all(own.run("policy", "rbac", policy, "--mode", mode.value).ended(0).out))
    own.api.delete("leases", LEASE, NAMESPACE)
    before, since = names(own), len(watched.audit.requests())
    create(own, roles)
    try:
        kubeconfig = account_kubeconfig(own.plane, NAMESPACE, ACCOUNT)
        until(lambda: in_force(own), "the roles are in force", seconds=30)
        env = {**ELECTED, "KUBECONFIG": str(kubeconfig)}
        with own.process("run", "--mode", mode.value, "--policy", policy, "--listen", "127.0.0.1:0", env=env) as process:

            def done() -> bool:
                return worked(watched, mode, process.messages("move"), before) and bool(process.messages("cycle"))

            try:
                until(done, f"{mode.value} does its work", seconds=WORK_S, step=0.5)
            except AssertionError as error:
                raise AssertionError(f"{error}: {process.err.read_text()[-4000:]}") from error
            moves, cycles = process.messages("move"), process.messages("cycle")
            assert process.terminate() == 0
    finally:
        remove(own, roles)
    asked = [each for each in watched.audit.requests()[since:] if each.user == USER and each.path not in EVERYBODYS]
    refused = [each.words for each in asked if each.code in (401, 403)]
    used, granted = {(each.verb, each.group, each.path) for each in asked}, powers(roles)
    scenario.shows(f"{mode.value}: {len(cycles)} cycles, {len(moves)} moves, {len(asked)} requests, {len(refused)} refused")
    scenario.shows(f"{mode.value}: {len(used)} of {len(granted)} powers used")
    assert refused == []
    assert used - granted == set()
    optional = {(right.verb, right.group, right.path) for right in (*optional_rights(), *gang_rights())}  # none of their objects here
    assert granted - used - optional == (set() if mode is Mode.EVICT else RECHECKS)
