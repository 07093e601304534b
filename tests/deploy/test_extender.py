"""The scheduler extender as it is installed: beside the controller, with rights of its own, reachable while replicas change."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rebalancer.runtime.rights import extender_roles, gpushare_roles
from rebalancer.settings.model import ExtenderSettings
from tests.deploy.charts import ROOT, kustomized, objects, of_kind, render

ON = "extender.enabled=true"
SHARING = (ON, "extender.gpushare.enabled=true")
COMPONENT = ROOT / "deploy" / "kustomize" / "components" / "extender"


def rendered(source: str) -> list[dict[str, Any]]:
    return objects("mode=evict", ON) if source == "chart" else kustomized("evict-extender")


def granted(documents: list[dict[str, Any]], account: str) -> set[tuple[str, str, str, str, str]]:
    """(namespace or "", group, resource, verb, name) of the rules that are bound to ``account``."""
    rules = {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d["rules"] for d in documents if d["kind"] in ROLES}
    bindings = [d for d in documents if d["kind"] in ("ClusterRoleBinding", "RoleBinding") and d["subjects"][0]["name"] == account]
    found = set()
    for binding in bindings:
        place = binding["metadata"].get("namespace", "")
        for rule in rules[binding["roleRef"]["kind"], place, binding["roleRef"]["name"]]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    names = rule.get("resourceNames", [""])
                    found |= {(place, group, resource, verb, name) for verb in rule["verbs"] for name in names}
    return found


ROLES = ("ClusterRole", "Role")


@pytest.mark.parametrize("sharing", [False, True])
def test_the_chart_grants_the_extender_what_it_uses_and_no_more(sharing: bool) -> None:
    """Its account reads; only the verbs that bind pods add rights to write."""
    roles = (*extender_roles(namespace="ops", memory="release-rebalancer-state"), *(gpushare_roles(namespace="ops") if sharing else ()))
    used = {
        ((role.elsewhere or "ops") if role.namespaced else "", right.group, right.path, right.verb, right.name)
        for role in roles
        for right in role.rights
    }
    assert granted(objects(*(SHARING if sharing else (ON,))), "release-rebalancer-extender") == used


def test_the_overlay_grants_the_extender_what_it_uses_and_no_more() -> None:
    """The same for kustomize, without shared GPUs."""
    used = {
        ("rebalancer" if role.namespaced else "", right.group, right.path, right.verb, right.name)
        for role in extender_roles(namespace="rebalancer")
        for right in role.rights
    }
    assert granted(kustomized("evict-extender"), "rebalancer-extender") == used


@pytest.mark.parametrize("source", ["chart", "overlay"])
def test_neither_service_nor_budget_of_one_program_selects_pods_of_the_other(source: str) -> None:
    """kube-scheduler must not ask the controller, and a drain must not count the pods of both."""
    documents = rendered(source)
    labels = {d["metadata"]["name"]: d["spec"]["template"]["metadata"]["labels"] for d in of_kind(documents, "Deployment")}
    assert len(labels) == 2
    for kind in ("Service", "PodDisruptionBudget", "Deployment"):
        for document in of_kind(documents, kind):
            selector = document["spec"]["selector"]
            wanted = selector.get("matchLabels", selector)
            chosen = [name for name, has in labels.items() if wanted.items() <= has.items()]
            assert chosen == [document["metadata"]["name"]]


@pytest.mark.parametrize("source", ["chart", "overlay"])
def test_the_extender_is_locked_down_and_stays_reachable_while_replicas_change(source: str) -> None:
    """No capability, read-only root; a new replica is ready before an old one goes, and an old one answers on until it is forgotten."""
    (deployment,) = of_kind(rendered(source), "Deployment", "-extender")
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert spec["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "sleep" in " ".join(container["lifecycle"]["preStop"]["exec"]["command"])
    assert container["args"][0] == "extender"


def test_tls_reaches_the_settings_the_mount_and_the_probes() -> None:
    """One value, and the extender serves https and is probed by it."""
    documents = objects(ON, "extender.tls.existingSecret=extender-tls")
    (settings,) = of_kind(documents, "ConfigMap", "-settings")
    read = ExtenderSettings.model_validate(yaml.safe_load(settings["data"]["settings.yaml"])["extender"])
    (deployment,) = of_kind(documents, "Deployment", "-extender")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(read.cert_file) == f"{mounts['tls']}/tls.crt"
    assert str(read.key_file) == f"{mounts['tls']}/tls.key"
    assert {"name": "tls", "secret": {"secretName": "extender-tls"}} in pod["volumes"]
    assert {container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")} == {"HTTPS"}


def test_the_fence_of_the_verbs_that_bind_allows_no_change_of_a_pod_but_a_passing_mark() -> None:
    """It comes with the right to patch pods, and not without."""
    assert not of_kind(objects(ON), "ValidatingAdmissionPolicy")
    (fence,) = of_kind(objects(*SHARING), "ValidatingAdmissionPolicy", "-extender-fence")
    assert "system:serviceaccount:ops:release-rebalancer-extender" in fence["spec"]["matchConditions"][0]["expression"]
    assert any(rule["expression"] == "object.spec == oldObject.spec" for rule in fence["spec"]["validations"])


def test_the_extender_is_off_until_it_is_switched_on() -> None:
    """Nothing of it is installed by default, and a drain that is too long is refused."""
    assert not [d for d in objects() if d["metadata"]["name"].endswith("-extender")]
    assert "drain" in render(ON, "extender.drain=40s", check=False).stderr


def test_the_configuration_of_kube_scheduler_never_lets_a_pod_wait_for_the_extender() -> None:
    """The file that operators copy: ignorable, a short time-out, names instead of whole nodes, and a positive weight."""
    configuration = yaml.safe_load((COMPONENT / "kube-scheduler.yaml").read_text())
    (extender,) = configuration["extenders"]
    assert configuration["kind"] == "KubeSchedulerConfiguration"
    assert extender["ignorable"] is True
    assert extender["nodeCacheCapable"] is True
    assert extender["httpTimeout"].endswith("ms")
    assert extender["weight"] > 0
    assert {extender["filterVerb"], extender["prioritizeVerb"]} == {"filter", "prioritize"}
