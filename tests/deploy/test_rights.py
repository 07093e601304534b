"""What is granted is what is used: the chart's and the overlays' roles against the rights that the code lists."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rebalancer.cli.main import run
from rebalancer.policy.model import Mode, Spec
from rebalancer.runtime.rights import Right, roles_for
from tests.deploy.charts import ROOT, kustomized, objects, of_kind


def granted(documents: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """(group, resource, verb, name) of every rule that is bound."""
    bound = {(d["roleRef"]["kind"], d["roleRef"]["name"]) for d in documents if d["kind"] in ("ClusterRoleBinding", "RoleBinding")}
    return {
        (group, resource, verb, name)
        for d in documents
        if (d["kind"], d["metadata"]["name"]) in bound
        for rule in d["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def used(mode: Mode, *, lease: str = "rebalancer") -> set[tuple[str, str, str, str]]:
    roles = roles_for(Spec(), mode, namespace="ops", lease=lease, memory=f"{lease}-state")
    rights: list[Right] = [right for role in roles for right in role.rights]
    return {(right.group, right.path, right.verb, right.name) for right in rights}


def widened(rights: set[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
    """The roles grant patch of nodes and pods alike: the only room beyond what one policy uses."""
    marks = {("", resource, "patch", "") for resource in ("nodes", "pods")} if any(verb == "patch" for _, _, verb, _ in rights) else set()
    return rights | marks


@pytest.mark.parametrize("mode", list(Mode))
def test_the_chart_grants_every_right_that_the_mode_uses_and_no_other(mode: Mode) -> None:
    """Missing is a 403 at night, more is a power that nobody opted into."""
    rights = granted(objects(f"mode={mode.value}"))
    wanted = used(mode, lease="release-rebalancer")
    assert wanted <= rights
    assert rights <= widened(wanted)


@pytest.mark.parametrize(("overlay", "mode"), [("dry-run", Mode.DRY_RUN), ("evict", Mode.EVICT)])
def test_the_overlays_grant_every_right_that_the_mode_uses_and_no_other(overlay: str, mode: Mode) -> None:
    """The same for kustomize."""
    rights = granted(kustomized(overlay))
    assert used(mode) <= rights
    assert rights <= widened(used(mode))


@pytest.mark.parametrize("mode", list(Mode))
def test_nothing_deletes_reads_secrets_or_has_a_wildcard(mode: Mode) -> None:
    """In no mode."""
    for group, resource, verb, _ in granted(objects(f"mode={mode.value}")):
        assert "*" not in (group, resource, verb)
        assert not resource.startswith("secrets")
        assert not verb.startswith("delete")


def test_policy_rbac_prints_what_a_policy_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """As YAML with bindings, equal to the rights that the code lists."""
    assert run(["policy", "rbac", str(ROOT / "config" / "policy.yaml"), "--mode", "evict", "-n", "ops"]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert granted(documents) == used(Mode.EVICT)
    assert [d["metadata"]["name"] for d in of_kind(documents, "ClusterRole")] == [
        f"rebalancer-{n}" for n in ("observe", "mark", "evict", "tell")
    ]


def test_policy_rbac_follows_the_names_of_lease_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several controllers each may use its own alone; the state is named after the Lease unless it is named itself."""
    arguments = ["policy", "rbac", str(ROOT / "config" / "policy.yaml"), "--mode", "evict", "-n", "ops", "--lease", "gpu"]
    assert run(arguments) == 0
    assert granted(list(yaml.safe_load_all(capsys.readouterr().out))) == used(Mode.EVICT, lease="gpu")
    assert run([*arguments, "--state", "memory-of-gpu"]) == 0
    names = {name for _, resource, _, name in granted(list(yaml.safe_load_all(capsys.readouterr().out))) if resource == "configmaps"}
    assert names == {"memory-of-gpu", ""}


def test_evicting_is_a_role_that_holds_nothing_else() -> None:
    """Create pods/eviction and no more."""
    (role,) = of_kind(objects("mode=evict"), "ClusterRole", "-evict")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]
