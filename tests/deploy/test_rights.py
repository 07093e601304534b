"""What is granted is what is used: the chart's and the overlays' roles against the rights that the code lists."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rebalancer.cli.main import run
from rebalancer.policy.model import Mode, Spec, Steering
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


def used(mode: Mode, *, lease: str = "rebalancer", steering: Steering | None = None) -> set[tuple[str, str, str, str]]:
    roles = roles_for(Spec(steering=steering or Steering()), mode, namespace="ops", lease=lease, memory=f"{lease}-state")
    rights: list[Right] = [right for role in roles for right in role.rights]
    return {(right.group, right.path, right.verb, right.name) for right in rights}


def widened(rights: set[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
    """The overlays grant patch of nodes and pods alike: the only room beyond what one policy uses."""
    marks = {("", resource, "patch", "") for resource in ("nodes", "pods")} if any(verb == "patch" for _, _, verb, _ in rights) else set()
    return rights | marks


@pytest.mark.parametrize("mode", list(Mode))
def test_the_chart_grants_every_right_that_the_mode_uses_and_no_other(mode: Mode) -> None:
    """Missing is a 403 at night, more is a power that nobody opted into."""
    rights = granted(objects(f"mode={mode.value}"))
    assert rights == used(mode, lease="release-rebalancer")


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("taint", ["true", "false"])
@pytest.mark.parametrize("kind", ["none", "own", "crane", "both"])
def test_the_chart_follows_what_the_policy_has_written_on_nodes(mode: Mode, taint: str, kind: str) -> None:
    """Patching nodes for taints or annotations alone, reading Events for crane's hot value alone; the value says it where the policy is not
    the chart's."""
    steering = Steering(annotate_nodes=kind, soft_taint=taint == "true")  # type: ignore[arg-type]
    wanted = used(mode, lease="release-rebalancer", steering=steering)
    switches = (f"mode={mode.value}", f"policy.spec.steering.softTaint={taint}")
    assert granted(objects(*switches, f"policy.spec.steering.annotateNodes={kind}")) == wanted
    assert granted(objects(*switches, f"annotateNodes={kind}")) == wanted


@pytest.mark.parametrize(
    ("overlay", "mode", "kind"), [("dry-run", Mode.DRY_RUN, "none"), ("evict", Mode.EVICT, "none"), ("evict-annotated", Mode.EVICT, "both")]
)
def test_the_overlays_grant_every_right_that_the_mode_uses_and_no_other(overlay: str, mode: Mode, kind: str) -> None:
    """The same for kustomize."""
    rights, wanted = granted(kustomized(overlay)), used(mode, steering=Steering(annotate_nodes=kind))  # type: ignore[arg-type]
    assert wanted <= rights
    assert rights <= widened(wanted)


@pytest.mark.parametrize("method", ["reclaim", "defragment"])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_chart_lets_pods_be_nominated_where_the_policy_makes_room_for_them(mode: Mode, method: str) -> None:
    """In evict mode, and fenced: of the status of pods nothing but that."""
    rendered = objects(f"mode={mode.value}", f"policy.spec.{method}.enabled=true")
    roles = roles_for(
        Spec.model_validate({method: {"enabled": True}}),
        mode,
        namespace="ops",
        lease="release-rebalancer",
        memory="release-rebalancer-state",
    )
    assert granted(rendered) == {(right.group, right.path, right.verb, right.name) for role in roles for right in role.rights}
    fenced = [rule for d in of_kind(rendered, "ValidatingAdmissionPolicy") for rule in d["spec"]["matchConstraints"]["resourceRules"]]
    assert any("pods/status" in rule["resources"] for rule in fenced) == (mode is Mode.EVICT)


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


def test_policy_rbac_prints_what_the_extender_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """For an account of its own: it reads nodes, pods and the one ConfigMap of the controller, and writes nothing."""
    assert run(["policy", "rbac", str(ROOT / "config" / "policy.yaml"), "--extender", "-n", "ops", "--state", "team-state"]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    read = {("", resource, verb, "") for resource in ("nodes", "pods") for verb in ("list", "watch")}
    assert granted(documents) == read | {("", "configmaps", verb, "team-state") for verb in ("list", "watch")}
    assert {(d["metadata"]["name"], d["metadata"].get("namespace")) for d in documents} == {
        ("rebalancer-extender-steer", None),
        ("rebalancer-extender-recall", "ops"),
    }
    assert {s["name"] for d in documents if "subjects" in d for s in d["subjects"]} == {"rebalancer-extender"}


def test_policy_rbac_prints_what_sharing_gpus_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """Binding, the registers in its own namespace, and the ConfigMaps of unhealthy devices; nothing of it without the option."""
    arguments = ["policy", "rbac", str(ROOT / "config" / "policy.yaml"), "-n", "ops", "--gpushare"]
    assert run(arguments) == 2
    capsys.readouterr()
    assert run([*arguments, "--extender"]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    pods = {("", "pods/binding", "create", ""), *(("", "pods", verb, "") for verb in ("get", "patch"))}
    maps = {("", "configmaps", verb, "") for verb in ("get", "list", "create", "update", "delete", "watch")}
    assert {right for right in granted(documents) if right[2] not in ("list", "watch") or (right[1] == "configmaps" and not right[3])} == (
        pods | maps
    )
    assert {d["metadata"].get("namespace") for d in documents if d["kind"] == "Role"} == {"ops", "kube-system"}


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
