"""Node load annotations on the real API server: written through the fence, read back fresh, taken off without a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from rebalancer.steer.annotation_work import CRANE_KEYS
from rebalancer.steer.crane_policy import DEFAULT
from rebalancer.steer.dynamic import usage_in_force
from rebalancer.steer.load_annotations import SERIES, LoadColumns, read_nodes, zone_named
from rebalancer.steer.own_annotation import LOAD, OwnColumns, read_node_loads
from tests.deploy.charts import kustomized
from tests.e2e.api import MERGE, Api, Json, Refused, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HOLLOW, HollowNode
from tests.e2e.objects import deployment, pod_spec, uses
from tests.e2e.plane import ControlPlane, account_kubeconfig
from tests.e2e.table import Row
from tests.e2e.test_rights import ACCOUNT, NAMESPACE, PLURALS, in_force
from tests.support.embedded import Process

SHOP = "e2e-annotated"
NODES = 6
ALREADY = "node-5"
"""Somebody else writes crane's annotations there."""
THEIRS = {"cpu_usage_avg_5m": "0.11000,2026-01-02T11:04:05Z"}
OTHER = "crane-controller"
WORK_S = 120.0
ZONE = zone_named("Asia/Shanghai")
POLICY = f"""\
  mode: annotate
  interval: 10s
  pools:
    - name: default
      nodeSelector: {{matchLabels: {{{HOLLOW}: "true"}}}}
      signals:
        cpu: {{low: 30, target: 80, high: 95}}
        memory: {{low: 30, target: 80, high: 95}}
  signals:
    # Over twenty seconds whatever the window is: a Prometheus that has just begun knows no five minutes.
    - name: cpu
      unit: cores
      nodeQuery: 'sum without (cpu, mode) (rate(node_cpu_seconds_total{{mode!~"idle|iowait|steal"}}[20s]))'
      podQuery: 'sum by (namespace, pod, node) (rate(container_cpu_usage_seconds_total{{container!="",container!="POD"}}[20s]))'
      capacity: {{resource: cpu}}
  metrics: {{window: 5m, maxAge: 30s, minCoverage: 50}}
  confirm: {{windows: 3, atLeast: 2, step: 10s}}
  steering: {{annotateNodes: both}}
"""


@dataclass(frozen=True)
class Annotated:
    ground: Ground
    policy: Path
    kubeconfig: Path
    """Of the account, with the rights that the policy needs, behind the fence that it needs."""

    def annotations(self) -> dict[str, dict[str, str]]:
        """Node -> its load annotations, of us or of anybody."""
        found = {}
        for node in self.ground.api.list("nodes", labelSelector=f"{HOLLOW}=true"):
            there = node["metadata"].get("annotations") or {}
            found[node["metadata"]["name"]] = {key: there[key] for key in (LOAD, *CRANE_KEYS) if key in there}
        return dict(sorted(found.items()))

    def all_written(self) -> bool:
        there = self.annotations()
        return all({LOAD, *SERIES} <= values.keys() for name, values in there.items() if name != ALREADY) and LOAD in there[ALREADY]

    def read(self) -> tuple[LoadColumns, OwnColumns]:
        rows = [values for name, values in self.annotations().items() if name != ALREADY]
        return read_nodes(rows, zone=ZONE), read_node_loads(rows)

    def none_of_ours(self) -> bool:
        return all(values == (THEIRS if name == ALREADY else {}) for name, values in self.annotations().items())

    def managers(self, name: str, key: str) -> set[str]:
        fields = self.ground.api.get("nodes", name)["metadata"]["managedFields"]
        return {each["manager"] for each in fields if f"f:{key}" in each.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})}

    def running(self) -> AbstractContextManager[Process]:
        """`rebalancer run` as the account."""
        return self.ground.process("run", "--policy", self.policy, "--listen", "127.0.0.1:0", env={"KUBECONFIG": str(self.kubeconfig)})


def waited(process: Process, what: str, done: Callable[[], object]) -> None:
    try:
        until(done, what, seconds=WORK_S, step=0.3)
    except AssertionError as error:
        raise AssertionError(f"{error}: {process.err.read_text()[-6000:]}") from error


def applied(own: Ground, documents: list[Json]) -> None:
    for each in documents:
        own.api.create(PLURALS[each["kind"]], each)


@pytest.fixture(scope="module")
def annotated(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Annotated]:
    """Six nodes with some load, the account of the chart with what `policy rbac` prints, and the fence of the overlay that annotates."""
    fence = [each for each in kustomized("evict-annotated") if each["kind"].startswith("ValidatingAdmission")]
    folder = tmp_path_factory.mktemp("annotated")
    with ground(plane, folder, [HollowNode(f"node-{number}") for number in range(NODES)]) as own:
        own.namespace(NAMESPACE)
        own.api.create("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}})
        policy = own.policy(POLICY)
        roles = list(yaml.safe_load_all(own.run("policy", "rbac", policy, "-n", NAMESPACE).ended(0).out))
        applied(own, [*fence, *roles])
        try:
            until(lambda: in_force(own), "the roles are in force", seconds=30)
            own.namespace(SHOP)
            own.apply(
                deployment("web", SHOP, pod_spec(cpu="100m", memory="64Mi"), replicas=12, annotations=uses(cpu="300m", memory="256Mi"))
            )
            own.settled(SHOP, 12)
            query = {"fieldManager": OTHER}
            own.api.request("PATCH", f"api/v1/nodes/{ALREADY}", {"metadata": {"annotations": THEIRS}}, query=query, content_type=MERGE)
            yield Annotated(own, policy, account_kubeconfig(plane, NAMESPACE, ACCOUNT))
        finally:
            for each in [*fence, *roles]:
                own.api.delete(PLURALS[each["kind"]], each["metadata"]["name"], each["metadata"].get("namespace", ""))


def test_every_node_says_its_load_and_is_clean_after_a_stop(annotated: Annotated, scenario: Row) -> None:
    """Annotations: through the fence, fresh for readers of the default zone, hot by bindings, gone after SIGTERM."""
    own = annotated.ground
    with annotated.running() as process:
        started = time.monotonic()
        waited(process, "every node is annotated", annotated.all_written)
        scenario.shows(f"all of {NODES} nodes annotated after {time.monotonic() - started:.0f} s, the fence and the rights in place")
        crane, ours = annotated.read()
        assert np.isfinite(usage_in_force(DEFAULT, crane, now=time.time())).all()
        assert (ours.expires_at > time.time()).all()
        np.testing.assert_allclose(ours.load[:, :2], crane.usage[:, [0, 3]], atol=0.2)
        truth = np.array([load for name, load in sorted(own.loads().items()) if name != ALREADY])

        def off() -> float:
            return float(np.abs(annotated.read()[0].usage[:, 0] - truth).max())

        # The rate of a Prometheus that has just begun is too low; a jump of five points is written in the next cycle.
        waited(process, "the annotations say the true loads", lambda: off() < 0.05)
        scenario.shows(f"largest difference to the true CPU load: {off():.3f}")
        assert annotated.managers("node-0", SERIES[0]) == {"rebalancer"}
        with own.only("node-1"):
            own.apply(deployment("burst", SHOP, pod_spec(cpu="10m", memory="16Mi"), replicas=10))
            own.settled(SHOP, 22)
        waited(process, "the burst makes its node hot", lambda: np.nan_to_num(annotated.read()[0].hot)[1] >= 2)
        scenario.shows(f"ten pods bound to one node at once: hot value {annotated.read()[0].hot[1]:.0f}")
        assert process.terminate() == 0
        notes = [line["text"] for line in process.messages("note")]
    assert annotated.none_of_ours(), annotated.annotations()
    scenario.shows(f"after SIGTERM: {'; '.join(note for note in notes if 'taken off' in note)}")
    assert not [note for note in notes if "could not be written" in note or "node_hot_value is not written" in note]
    assert len([note for note in notes if f"are written by {OTHER} and left alone" in note]) == 1


def test_switching_annotations_off_while_it_runs_takes_them_off(annotated: Annotated, scenario: Row) -> None:
    """Annotations: an edit of the policy is enough."""
    with annotated.running() as process:
        waited(process, "every node is annotated", annotated.all_written)
        try:
            annotated.ground.policy(POLICY.replace("annotateNodes: both", "annotateNodes: none"))
            started = time.monotonic()
            waited(process, "no annotation of ours is left", annotated.none_of_ours)
            scenario.shows(f"none left {time.monotonic() - started:.0f} s after the edit")
        finally:
            annotated.ground.policy(POLICY)
        assert process.terminate() == 0


def test_cleanup_after_a_kill_leaves_nothing_of_ours(annotated: Annotated, scenario: Row) -> None:
    """Annotations: the process is killed, `rebalancer cleanup` takes off what it left, and nothing of others."""
    with annotated.running() as process:
        waited(process, "every node is annotated", annotated.all_written)
        process.popen.kill()
        process.popen.wait()
    assert annotated.all_written()
    done = annotated.ground.run("cleanup", "--policy", annotated.policy, env={"KUBECONFIG": str(annotated.kubeconfig)}).ended(0)
    assert annotated.none_of_ours(), annotated.annotations()
    assert f"load annotations taken off {NODES} nodes" in done.out
    assert f"crane annotations of 1 node stay: {OTHER} wrote them" in done.out
    scenario.shows("; ".join(line for line in done.out.splitlines() if "annotations" in line))


def test_the_fence_lets_exactly_the_keys_of_crane_through_and_on_nodes_alone(annotated: Annotated, scenario: Row) -> None:
    """Annotations: the account may write them on nodes, and nothing else of others."""
    account = Api(annotated.kubeconfig)

    def said(resource: str, name: str, key: str, namespace: str = "") -> str:
        try:
            account.patch(resource, name, {"metadata": {"annotations": {key: "x"}}}, namespace)
        except Refused as error:
            return error.words
        account.patch(resource, name, {"metadata": {"annotations": {key: None}}}, namespace)
        return ""

    pod = annotated.ground.pods(SHOP)[0]["metadata"]["name"]
    try:
        assert [said("nodes", "node-0", key) for key in (LOAD, *CRANE_KEYS)] == [""] * (1 + len(CRANE_KEYS))
        for resource, name, key, namespace in (
            ("nodes", "node-0", "cpu_usage_avg_7m", ""),
            ("nodes", "node-0", "team.example/note", ""),
            ("pods", pod, CRANE_KEYS[0], SHOP),
        ):
            assert "may change only annotations under rebalancer.dev/, and on nodes those of crane-scheduler" in said(
                resource, name, key, namespace
            )
    finally:
        account.close()
    scenario.shows(f"{1 + len(CRANE_KEYS)} keys allowed on a node, others and pods denied")
