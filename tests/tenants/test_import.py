"""Quotas of other systems as a tenants file: each is read back and means the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rebalancer.cli.main import run
from rebalancer.errors import PolicyError
from rebalancer.policy.tenants import Tenant, amount_of
from rebalancer.policy.tenants_import import import_tenants
from rebalancer.policy.tenants_loader import parse_tenants

GI = 2.0**30


def _imported(text: str) -> dict[str, Tenant]:
    written = import_tenants(yaml.safe_load_all(text))
    return {tenant.name: tenant for tenant in parse_tenants(written, origin="imported").spec.all()}


def _values(amounts: dict[str, int | float | str] | None) -> dict[str, float]:
    return {name: amount_of(value, 100.0) for name, value in (amounts or {}).items()}


def test_q5_a_resource_quota_guarantees_and_bounds_a_namespace() -> None:
    """GPUs stand as requests.nvidia.com/gpu; of two quotas the least counts; limits have no counterpart."""
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: ml},
   spec: {hard: {requests.cpu: "10", requests.memory: 64Gi, requests.nvidia.com/gpu: "8", limits.cpu: "20"}}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: b, namespace: ml}, spec: {hard: {cpu: 500m}}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: c, namespace: ml}, spec: {hard: {cpu: 1m}, scopes: [BestEffort]}}
"""
    ml = _imported(text)["ml"]
    assert _values(ml.guaranteed) == _values(ml.limit) == {"cpu": 0.5, "memory": 64 * GI, "gpu": 8.0}
    assert ml.members[0].namespaces == ("ml",)
    assert "# limits.cpu of ResourceQuota a in ml has no counterpart" in import_tenants(yaml.safe_load_all(text))


def test_cluster_queues_of_a_cohort_are_tenants_below_it() -> None:
    """Nominal is guaranteed, with the borrowing limit the most, beyond the lending limit the floor; flavors give GPU models."""
    found = _imported("""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: all
  fairSharing: {weight: 2}
  resourceGroups:
  - flavors:
    - name: a100
      resources: [{name: cpu, nominalQuota: 9}, {name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 2, lendingLimit: 1}]
    - name: plain
      resources: [{name: cpu, nominalQuota: 500m}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}, spec: {nodeLabels: {nvidia.com/gpu.product: A100}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: ns}, spec: {clusterQueue: team-a}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: alone}
spec: {resourceGroups: [{flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 3}]}]}]}
""")
    team = found["team-a"]
    assert [each.name for each in found["all"].tenants] == ["team-a"]
    assert _values(team.guaranteed) == {"cpu": 9.5, "gpu": 4.0, "gpu/A100": 4.0}
    assert _values(team.limit) == {"gpu": 6.0, "gpu/A100": 6.0}
    assert _values(team.floor) == {"gpu": 3.0, "gpu/A100": 3.0}
    assert team.weight == 2
    assert [entry.queues for entry in team.members] == [{"kueueClusterQueue": ("team-a",)}, {"kueue": ("lq",)}]
    assert _values(found["all"].guaranteed) == _values(team.guaranteed)
    assert _values(found["alone"].limit) == {"cpu": 3.0}


def test_q5_kai_queues_count_in_millicores_and_megabytes() -> None:
    """quota -1 is everything and 0 none; limit -1 is none, 0 or unset nothing beyond the quota."""
    found = _imported("""
{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: dept}, spec: {resources: {gpu: {quota: -1, limit: -1}}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  parentQueue: dept
  priority: 200
  resources:
    cpu: {quota: 2000, limit: -1, overQuotaWeight: 3}
    memory: {quota: 1000}
    gpu: {quota: 0, limit: 0.5, overQuotaWeight: 3}
""")
    team = found["team"]
    assert _values(team.guaranteed) == {"cpu": 2.0, "memory": 1e9}
    assert _values(team.limit) == {"memory": 1e9, "gpu": 0.5}
    assert (team.weight, team.priority, team.members[0].queues) == (3, 200, {"kai": ("team",)})
    assert found["dept"].guaranteed == {"gpu": "100%"}
    assert _values(found["dept"].limit) == {"cpu": 0.0, "memory": 0.0}


def test_volcano_queues_keep_what_they_never_lend() -> None:
    """deserved is guaranteed, guarantee the floor within it, capability the limit."""
    queue = _imported("""
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research.gpu}
spec:
  {parent: root, weight: 4, reclaimable: false, deserved: {cpu: "8"}, guarantee: {resource: {cpu: "2", memory: 4Gi}},
   capability: {cpu: "16"}}
""")["research-gpu"]
    assert _values(queue.guaranteed) == {"cpu": 8.0, "memory": 4 * GI}
    assert _values(queue.floor) == {"cpu": 2.0, "memory": 4 * GI}
    assert _values(queue.limit) == {"cpu": 16.0}
    assert queue.members[0].queues == {"volcano": ("research.gpu",)}


def test_elastic_quotas_of_both_schedulers() -> None:
    """koordinator's belong to a tree and may refuse to lend; those of scheduler-plugins are of a namespace."""
    found = _imported("""
{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota,
 metadata: {name: root, labels: {quota.scheduling.koordinator.sh/is-parent: "true"}},
 spec: {min: {cpu: 20}, max: {cpu: 40}}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: web
  labels: {quota.scheduling.koordinator.sh/parent: root, quota.scheduling.koordinator.sh/allow-lent-resource: "false"}
  annotations: {quota.scheduling.koordinator.sh/shared-weight: '{"cpu": 5}'}
spec: {min: {cpu: 10, memory: 10Gi}, max: {cpu: 30}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, namespace: dev}, spec: {min: {cpu: 1}, max: {cpu: 2}}}
""")
    web = found["web"]
    assert [each.name for each in found["root"].tenants] == ["web"]
    assert (found["root"].weight, web.weight, web.lend) == (40, 5, False)
    assert (_values(web.guaranteed), _values(web.limit)) == ({"cpu": 10.0, "memory": 10 * GI}, {"cpu": 30.0})
    assert found["dev"].members[0].namespaces == ("dev",)


def test_queues_that_are_below_themselves_are_refused() -> None:
    """A circle of parents is told by its names."""
    text = """
{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a}, spec: {parentQueue: b}}
---
{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: b}, spec: {parentQueue: a}}
"""
    with pytest.raises(PolicyError, match="each of a, b is below itself"):
        import_tenants(yaml.safe_load_all(text))


def test_the_command_prints_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed is a tenants file; where there is nothing to import the status is 3."""
    quota, other = tmp_path / "quota.yaml", tmp_path / "other.yaml"
    quota.write_text("{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: ml}, spec: {hard: {cpu: 4}}}", encoding="utf-8")
    other.write_text("{apiVersion: v1, kind: Pod}", encoding="utf-8")
    assert run(["tenants", "import", str(quota)]) == 0
    assert [each.name for each in parse_tenants(capsys.readouterr().out, origin="out").spec.tenants] == ["ml"]
    assert run(["tenants", "import", str(other)]) == 3
    assert "no quota to import, only Pod" in capsys.readouterr().err
