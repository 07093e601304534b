"""Tenants: a starved one gets back what it is guaranteed, and the real kube-scheduler binds its pods where room was made for them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HOLLOW, HollowNode
from tests.e2e.objects import deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row

OWN, BORROWER, STARVED = "e2e-tenants", "e2e-vision", "e2e-speech"
NODES, CORES = 3, 4
WANTED = 3
POLICY = f"""\
  mode: evict
  interval: 10s
  pools:
    - name: default
      nodeSelector: {{matchLabels: {{{HOLLOW}: "true"}}}}
      signals: {{cpu: {{low: 40, target: 90, high: 99}}}}
  metrics: {{window: 30s, maxAge: 30s, minCoverage: 50}}
  confirm: {{windows: 3, atLeast: 3, step: 10s}}
  budgets: {{window: 10m, total: 20, perNode: 4, perNamespace: 20, perWorkload: 10, perTenant: 20}}
  cooldown: {{workload: 30s, node: 0s}}
  victims: {{minAge: 10s}}
  reclaim: {{enabled: true, after: 10s}}
"""
TENANTS = f"""\
apiVersion: rebalancer.dev/v1alpha1
kind: TenantQuotas
metadata: {{name: e2e}}
spec:
  tenants:
  - {{name: vision, guaranteed: {{cpu: 8}}, members: [{{namespaces: [{BORROWER}]}}]}}
  - {{name: speech, guaranteed: {{cpu: 4}}, members: [{{namespaces: [{STARVED}]}}]}}
"""
SERVED_S = 180.0


def _bound(own: Ground, namespace: str) -> list[Json]:
    return [each for each in own.pods(namespace) if each["spec"].get("nodeName") and not each["metadata"].get("deletionTimestamp")]


@pytest.mark.timeout(600)
def test_a_starved_tenant_gets_its_guarantee_back(plane: ControlPlane, tmp_path: Path, scenario: Row) -> None:
    """Tenants: waiting pods are bound to the nodes that room was made on, ahead of the borrower's replacements; nobody loses a
    guarantee."""
    with ground(plane, tmp_path, [HollowNode(f"node-{number}", cpu=CORES) for number in range(NODES)]) as own:
        for name in (OWN, BORROWER, STARVED):
            own.namespace(name)
        spec = pod_spec(cpu="1", memory="64Mi")
        own.apply(deployment("vision", BORROWER, spec, replicas=NODES * CORES, annotations=uses(cpu="300m", memory="64Mi")))
        own.settled(BORROWER, NODES * CORES)
        own.apply(deployment("speech", STARVED, spec, replicas=WANTED, annotations=uses(cpu="300m", memory="64Mi")))
        until(lambda: len(own.pods(STARVED)) == WANTED, "the pods that wait")
        assert _bound(own, STARVED) == []
        file = tmp_path / "tenants.yaml"
        file.write_text(TENANTS, encoding="utf-8")
        arguments = ("run", "--policy", own.policy(POLICY), "--tenants", file, "--listen", "127.0.0.1:0")
        with own.process(*arguments, env={"REBALANCER_NAMESPACE": OWN}) as process:
            try:
                until(lambda: len(_bound(own, STARVED)) == WANTED, "the starved tenant runs", seconds=SERVED_S, step=0.5)
            except AssertionError as error:
                nominated = {each["metadata"]["name"]: each["status"].get("nominatedNodeName") for each in own.pods(STARVED)}
                raise AssertionError(f"{error}: {nominated}: {process.err.read_text()[-6000:]}") from error
            own.settled(STARVED, WANTED)
            assert process.terminate() == 0
        moves = [move for move in process.messages("move") if move["result"] == "evicted"]
        made = Counter(move["source"] for move in moves)
        landed = Counter(each["spec"]["nodeName"] for each in _bound(own, STARVED))
        scenario.shows(f"{len(moves)} evictions for {WANTED} pods that waited, all bound where room was made: {dict(landed)}")
        assert landed == made
        assert len(_bound(own, BORROWER)) == NODES * CORES - WANTED
        waits = [each for each in own.pods(BORROWER) if not each["spec"].get("nodeName")]
        scenario.shows(
            f"the borrower keeps {len(_bound(own, BORROWER))} cores of 8 guaranteed; {len(waits)} replacements wait, and took no room"
        )
        assert len(waits) == WANTED
        assert all("holds" in move["reason"] and "guaranteed" in move["reason"] for move in moves)
