"""The chart renders what an operator dares to install, and refuses what would not work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import Mode
from rebalancer.settings import load_settings
from rebalancer.steer.annotation_work import CRANE_KEYS
from rebalancer.steer.crane_policy import parse_crane_policy
from tests.deploy.charts import CHART, ROOT, kustomized, objects, of_kind, render, tool


def loaded(document: dict[str, dict[str, str]], tmp_path: Path):
    """The rendered settings through the strict loader; files that only exist in the pod are left out."""
    values = {key: value for key, value in yaml.safe_load(document["data"]["settings.yaml"]).items() if not key.endswith("_file")}
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump(values))
    return load_settings(settings_file=path, flags={}, environ={})


def test_the_chart_lints() -> None:
    """With the one value that it requires."""
    done = subprocess.run(
        [tool("helm"), "lint", "--strict", str(CHART), "--set", "prometheus.url=http://p:9090"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout


def test_the_default_is_dry_run_with_two_replicas_and_nothing_but_reading() -> None:
    """Installing it changes nothing in the cluster."""
    documents = objects()
    (deployment,) = of_kind(documents, "Deployment")
    assert deployment["spec"]["replicas"] == 2
    assert [d["roleRef"]["name"].rsplit("-", 1)[1] for d in of_kind(documents, "ClusterRoleBinding")] == ["observe"]
    assert not of_kind(documents, "ValidatingAdmissionPolicy")


def test_the_settings_of_the_chart_pass_the_strict_loader(tmp_path: Path) -> None:
    """What Helm renders is what the program reads."""
    (settings,) = of_kind(objects("mode=evict", "log.level=debug"), "ConfigMap", "-settings")
    read = loaded(settings, tmp_path)
    assert read.mode is Mode.EVICT
    assert read.prometheus.url == "http://prometheus:9090"
    assert read.log.level == "debug"


def test_an_inline_policy_is_mounted_without_a_checksum_and_read_by_the_strict_loader() -> None:
    """It is reloaded without a restart, so the pods must not be rolled for it."""
    inline = 'policy={"apiVersion":"rebalancer.dev/v1alpha1","kind":"RebalancePolicy","spec":{"interval":"5m"}}'
    documents = objects(inline)
    (config,) = of_kind(documents, "ConfigMap", "-policy")
    assert parse_policy(config["data"]["policy.yaml"], origin="chart").spec.interval == 300
    (deployment,) = of_kind(documents, "Deployment")
    (other,) = of_kind(objects(inline.replace("5m", "9m")), "Deployment")
    assert deployment == other


def test_a_change_of_settings_rolls_the_pods() -> None:
    """Settings are read at start only."""
    (one,), (two,) = of_kind(objects(), "Deployment"), of_kind(objects("log.level=debug"), "Deployment")
    assert one["spec"]["template"]["metadata"]["annotations"] != two["spec"]["template"]["metadata"]["annotations"]


@pytest.mark.parametrize("source", ["chart", "overlay"])
def test_the_pods_are_locked_down(source: str) -> None:
    """Non-root, read-only root, no capability, RuntimeDefault, no token it does not need to escalate."""
    (deployment,) = of_kind(objects("mode=evict") if source == "chart" else kustomized("evict"), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert "limits" in container["resources"]


def test_the_image_goes_by_digest_where_there_is_one() -> None:
    """A digest wins over a tag."""
    digest = "sha256:" + "a" * 64
    (deployment,) = of_kind(objects(f"image.digest={digest}", "image.tag=v9"), "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"rebalancer@{digest}"


def test_account_and_roles_can_be_brought_along() -> None:
    """rbac.create and serviceAccount.create are apart."""
    documents = objects("rbac.create=false", "serviceAccount.create=false", "serviceAccount.name=own")
    assert not of_kind(documents, "ServiceAccount")
    assert not of_kind(documents, "ClusterRole")
    (deployment,) = of_kind(documents, "Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "own"


@pytest.mark.parametrize("kind", ["none", "own", "crane", "both"])
def test_the_fence_lets_cranes_annotations_through_only_where_they_are_written(kind: str) -> None:
    """Exactly its keys, on nodes alone; our own are under our prefix anyway."""
    (fence,) = of_kind(objects("mode=evict", f"policy.spec.steering.annotateNodes={kind}"), "ValidatingAdmissionPolicy")
    variables = {each["name"]: each["expression"] for each in fence["spec"]["variables"]}
    assert ("ours" in variables) is (kind in ("crane", "both"))
    if "ours" in variables:
        assert variables["ours"].startswith("request.resource.resource == 'nodes' ?")
        assert set(re.findall(r"'([a-z0-9_]+)'", variables["ours"])) == {"nodes", *CRANE_KEYS}


def test_the_overlay_has_the_fence_of_the_chart() -> None:
    """Word for word."""
    (theirs,) = of_kind(kustomized("evict-annotated"), "ValidatingAdmissionPolicy")
    (ours,) = of_kind(objects("mode=evict", "annotateNodes=both"), "ValidatingAdmissionPolicy")
    assert theirs["spec"]["variables"] == ours["spec"]["variables"]
    assert theirs["spec"]["validations"][0] == ours["spec"]["validations"][0]


def test_the_policy_of_crane_scheduler_is_mounted_and_named_in_the_settings() -> None:
    """And read as crane-scheduler's is."""
    spec = '{"syncPolicy":[{"name":"cpu_usage_avg_5m","period":"1m"}]}'
    inline = f'cranePolicy={{"apiVersion":"scheduler.policy.crane.io/v1alpha1","kind":"DynamicSchedulerPolicy","spec":{spec}}}'
    documents = objects(inline)
    (config,) = of_kind(documents, "ConfigMap", "-policy")
    assert parse_crane_policy(config["data"]["crane-policy.yaml"], origin="chart").fresh_for_s("cpu_usage_avg_5m") == 360
    (settings,) = of_kind(documents, "ConfigMap", "-settings")
    assert yaml.safe_load(settings["data"]["settings.yaml"])["crane_policy_file"] == "/etc/rebalancer/policy/crane-policy.yaml"
    (deployment,) = of_kind(documents, "Deployment")
    assert {"name": "policy", "mountPath": "/etc/rebalancer/policy", "readOnly": True} in deployment["spec"]["template"]["spec"][
        "containers"
    ][0]["volumeMounts"]


def test_monitoring_is_off_until_it_is_switched_on() -> None:
    """No object of another operator's kinds by default."""
    assert not {"ServiceMonitor", "PrometheusRule", "NetworkPolicy"} & {d["kind"] for d in objects()}
    switched = objects(
        "metrics.serviceMonitor.enabled=true",
        "metrics.prometheusRule.enabled=true",
        "metrics.dashboard.enabled=true",
        "networkPolicy.enabled=true",
        "metrics.serviceMonitor.additionalLabels.release=prom",
    )
    assert {"ServiceMonitor", "PrometheusRule", "NetworkPolicy"} <= {d["kind"] for d in switched}
    (monitor,) = of_kind(switched, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prom"
    (rules,) = of_kind(switched, "PrometheusRule")
    assert len(rules["spec"]["groups"][0]["rules"]) >= 10


def names(*values: str, release: str = "release") -> tuple[str, str, set[str]]:
    """What the settings call the Lease and the memory, and all names that the Role grants."""
    documents = objects(*values, release=release)
    (config,) = of_kind(documents, "ConfigMap", "-settings")
    settings = yaml.safe_load(config["data"]["settings.yaml"])
    (role,) = of_kind(documents, "Role")
    granted = {name for rule in role["rules"] for name in rule.get("resourceNames", [])}
    lease = settings["leader_election"]["lease_name"]
    return lease, settings.get("state_name", f"{lease}-state"), granted


def test_two_releases_in_one_namespace_share_neither_lease_nor_memory() -> None:
    """Each is called after its release, and no object of the one is an object of the other."""
    one, two = names("mode=evict", release="green"), names("mode=evict", release="blue")
    assert one == ("green-rebalancer", "green-rebalancer-state", {"green-rebalancer", "green-rebalancer-state"})
    assert two == ("blue-rebalancer", "blue-rebalancer-state", {"blue-rebalancer", "blue-rebalancer-state"})
    switches = ("mode=evict", "metrics.prometheusRule.enabled=true", "metrics.recordingRules.enabled=true", "networkPolicy.enabled=true")
    green, blue = ({(d["kind"], d["metadata"]["name"]) for d in objects(*switches, release=release)} for release in ("green", "blue"))
    assert not green & blue


def test_the_usual_release_has_the_usual_names() -> None:
    """`helm install rebalancer`."""
    assert names(release="rebalancer") == ("rebalancer", "rebalancer-state", {"rebalancer", "rebalancer-state"})


@pytest.mark.parametrize(
    ("values", "lease", "state"),
    [
        (("leaseName=gpu",), "gpu", "gpu-state"),
        (("settings.leader_election.lease_name=x",), "x", "x-state"),
        (("leaseName=gpu", "settings.state_name=kept"), "gpu", "kept"),
        (("settings.leader_election.enabled=false",), "release-rebalancer", "release-rebalancer-state"),
    ],
)
def test_lease_and_memory_can_be_named(values: tuple[str, ...], lease: str, state: str) -> None:
    """And the Role follows, whichever way they are named."""
    assert names("mode=evict", *values) == (lease, state, {lease, state})


def test_recording_rules_are_a_switch_that_the_controller_follows() -> None:
    """Off by default; on, the rules are those of deploy/rules, and the controller looks up."""

    def recording(*values: str) -> tuple[list[dict[str, Any]], bool]:
        documents = objects(*values)
        (config,) = of_kind(documents, "ConfigMap", "-settings")
        settings = yaml.safe_load(config["data"]["settings.yaml"])
        return of_kind(documents, "PrometheusRule", "-recording"), settings["prometheus"].get("recording_rules", False)

    assert recording() == ([], False)
    (rule,), used = recording("metrics.recordingRules.enabled=true", "metrics.recordingRules.additionalLabels.release=prom")
    assert used is True
    assert rule["metadata"]["labels"]["release"] == "prom"
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy" / "rules" / "rebalancer.rules.yaml").read_text())


def test_rules_for_a_window_that_the_policy_does_not_have_are_refused() -> None:
    """They would be evaluated for nobody."""
    inline = 'policy={"apiVersion":"rebalancer.dev/v1alpha1","kind":"RebalancePolicy","spec":{"metrics":{"window":"10m"}}}'
    done = render(inline, "metrics.recordingRules.enabled=true", check=False)
    assert done.returncode != 0
    assert "rebalancer policy rules FILE" in done.stderr
    same = inline.replace("10m", "300s")
    assert of_kind(objects(same, "metrics.recordingRules.enabled=true"), "PrometheusRule", "-recording")


def test_parameters_of_queries_reach_the_settings(tmp_path: Path) -> None:
    """As text, whatever they look like."""
    (settings,) = of_kind(objects('prometheus.parameters={"partial_response":"false"}'), "ConfigMap", "-settings")
    assert loaded(settings, tmp_path).prometheus.parameters == {"partial_response": "false"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("prometheus.url=", "prometheus.url is required"),
        ("mode=kill", "mode"),
        ("replica=3", "replica"),
        ("image.digest=abc", "digest"),
        ("prometheus.url=http://user:pass@p:9090", "url"),
    ],
)
def test_values_that_would_not_work_are_refused(value: str, words: str) -> None:
    """By the schema, or by a sentence."""
    done = render(value, check=False)
    assert done.returncode != 0
    assert words in done.stderr


def test_a_single_replica_has_no_disruption_budget_that_would_block_a_drain() -> None:
    """maxUnavailable 1 of 1 would be harmless, none at all is plainer."""
    assert not of_kind(objects("replicas=1"), "PodDisruptionBudget")
    assert of_kind(objects(), "PodDisruptionBudget")
