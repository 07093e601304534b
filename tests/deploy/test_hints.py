"""Placement hints as they are installed: the policy decides, and chart, overlay and command say the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from rebalancer.cli.main import run
from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import Mode, Spec, Steering
from rebalancer.runtime.rights import roles_for
from rebalancer.steer.hint_policy import announcement_kind, hint_policy
from rebalancer.steer.hinting import owner_label
from tests.deploy.charts import ROOT, kustomized, objects, of_kind
from tests.deploy.test_rights import granted, widened

KINDS = ("CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
WANTED = 'policy={"apiVersion":"rebalancer.dev/v1alpha1","kind":"RebalancePolicy","spec":{"steering":{"hints":true}}}'


def plain(document: Any) -> Any:
    """Without the labels of an installation, and with white space in expressions made even."""
    if isinstance(document, dict):
        return {key: plain(value) for key, value in document.items() if key not in ("labels", "annotations")}
    if isinstance(document, list):
        return [plain(each) for each in document]
    return re.sub(r"\s+", " ", document) if isinstance(document, str) else document


def installed(documents: list[dict[str, Any]]) -> list[Any]:
    return [plain(document) for kind in KINDS for document in of_kind(documents, kind)]


def generated(*, name: str, namespace: str, lease: str) -> list[Any]:
    label = owner_label(namespace=namespace, lease=lease)
    policy = hint_policy(name=name, namespace=namespace, announcement=lease, owner=label)
    return [plain(each) for each in (announcement_kind(), *policy)]


def used(*, lease: str) -> set[tuple[str, str, str, str]]:
    spec = Spec(steering=Steering(hints=True))
    roles = roles_for(spec, Mode.EVICT, namespace="ops", lease=lease, memory=f"{lease}-state")
    return {(right.group, right.path, right.verb, right.name) for role in roles for right in role.rights}


@pytest.mark.parametrize("values", [(), ("mode=evict",), ("mode=annotate", WANTED)])
def test_without_the_wish_of_the_policy_nothing_gates_pods(values: tuple[str, ...]) -> None:
    """Placement hints are opted into, by the policy and by the mode."""
    documents = objects(*values)
    assert installed(documents) == []
    assert not of_kind(documents, "ClusterRole", "-hint")


@pytest.mark.parametrize("release", ["release", "r" * 50])
def test_the_chart_installs_what_the_code_generates(release: str) -> None:
    """Policy and binding, for the names of the release."""
    documents = objects("mode=evict", WANTED, release=release)
    (policy,) = of_kind(documents, "MutatingAdmissionPolicy")
    lease = yaml.safe_load(of_kind(documents, "ConfigMap", "-settings")[0]["data"]["settings.yaml"])["leader_election"]["lease_name"]
    assert installed(documents) == generated(name=policy["metadata"]["name"], namespace="ops", lease=lease)


def test_the_chart_grants_every_right_that_hints_use_and_no_other() -> None:
    """The announcement is the one thing that is ever deleted."""
    rights = granted(objects("mode=evict", WANTED))
    wanted = used(lease="release-rebalancer")
    assert wanted <= rights <= widened(wanted)
    assert {right for right in rights if right[2] == "delete"} == {("rebalancer.dev", "hintannouncements", "delete", "release-rebalancer")}


def test_a_second_release_leaves_the_kind_to_the_first() -> None:
    """Only one of them may own it; and it is kept when its release goes, for the other uses it."""
    documents = objects("mode=evict", WANTED)
    (kind,) = of_kind(documents, "CustomResourceDefinition")
    assert kind["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    second = objects("mode=evict", WANTED, "hints.installKind=false", release="second")
    assert not of_kind(second, "CustomResourceDefinition")
    assert of_kind(second, "MutatingAdmissionPolicy")


def test_the_overlay_installs_what_the_code_generates_and_grants_what_it_uses() -> None:
    """The same for kustomize, and its policy wants hints."""
    documents = kustomized("evict-hinted")
    assert installed(documents) == generated(name="rebalancer-hints", namespace="rebalancer", lease="rebalancer")
    wanted = used(lease="rebalancer")
    assert wanted <= granted(documents) <= widened(wanted)
    (policy,) = of_kind(documents, "ConfigMap", "rebalancer-policy")
    assert parse_policy(policy["data"]["policy.yaml"], origin="overlay").spec.steering.hints


def test_the_overlay_fences_the_status_of_pods() -> None:
    """Where the account may write it at all."""
    (fence,) = of_kind(kustomized("evict-hinted"), "ValidatingAdmissionPolicy")
    (rule,) = fence["spec"]["matchConstraints"]["resourceRules"]
    assert rule["resources"] == ["nodes", "pods", "pods/status"]


def test_the_command_prints_the_overlay(capsys: pytest.CaptureFixture[str]) -> None:
    """With the default names; others by its options."""
    assert run(["policy", "hints"]) == 0
    printed = [plain(each) for each in yaml.safe_load_all(capsys.readouterr().out)]
    file = ROOT / "deploy" / "kustomize" / "components" / "hints" / "admission.yaml"
    assert printed == [plain(each) for each in yaml.safe_load_all(file.read_text())]
    assert run(["policy", "hints", "-n", "ops", "--account", "gpu", "--lease", "gpu"]) == 0
    _, policy, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert policy["metadata"]["name"] == binding["spec"]["policyName"] == "gpu-hints"
    assert binding["spec"]["paramRef"] == {"name": "gpu", "namespace": "ops", "parameterNotFoundAction": "Allow"}
    assert "'rebalancer.dev/steer': 'ops.gpu'" in policy["spec"]["mutations"][0]["applyConfiguration"]["expression"]
