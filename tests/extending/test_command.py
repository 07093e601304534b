"""`rebalancer extender` as a process, asked over HTTP as kube-scheduler asks, with an API server that has its bad moments."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.runtime.memory import Memory, OpenMove
from rebalancer.runtime.store import ConfigMapStore
from rebalancer.simulate.pods import with_condition
from rebalancer.simulate.world import World, updated
from rebalancer.steer.own_annotation import LOAD, NodeLoad, SignalLoad, format_node_load
from tests.extending.feeding import move
from tests.steer.test_reservations import STRANGER, pod
from tests.support.embedded import Process, Stage, eventually, stage
from tests.watch.kit import certificate

Json = dict[str, Any]
EXTENDER = ("extender", "--listen", "127.0.0.1:0", "--log-format", "json")
NAMES = ("node-0001", "node-0002", "node-0003")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own:
        yield own


def annotate(world: World, **cpu: float) -> None:
    """Loads of nodes by their last digit: ``n1=0.9``."""
    for short, load in cpu.items():
        name = f"node-000{short[1:]}"
        signals = {"cpu": SignalLoad(avg_5m=load), "memory": SignalLoad(avg_5m=0.0)}
        value = format_node_load(NodeLoad(time.time(), time.time() + 600, signals))
        node = world.get("nodes", name)
        annotations = {**(node["metadata"].get("annotations") or {}), LOAD: value}
        world.replace("nodes", updated(node, "metadata", {"annotations": annotations}))


@dataclass
class Asking:
    """A scheduler's connection to the extender: one, kept alive."""

    process: Process
    tls: ssl.SSLContext | None = None
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        address = eventually(lambda: self.process.messages("serving"), seconds=30)[0]["listen"]
        if self.tls is None:
            self.connection = http.client.HTTPConnection(address, timeout=10)
        else:
            self.connection = http.client.HTTPSConnection(address, timeout=10, context=self.tls)

    def __call__(self, path: str, body: Json | None = None) -> tuple[int, Any]:
        method = "GET" if body is None else "POST"
        data = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        with self.connection.getresponse() as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if method == "POST" else text

    def scores(self, asking: Mapping[str, object], *names: str) -> dict[str, int]:
        status, found = self("/prioritize", {"Pod": asking, "Nodes": None, "NodeNames": list(names or NAMES)})
        assert status == 200
        return {each["Host"]: each["Score"] for each in found}

    def passed(self, asking: Mapping[str, object], *names: str) -> list[str]:
        status, found = self("/filter", {"Pod": asking, "Nodes": None, "NodeNames": list(names or NAMES)})
        assert (status, found["Error"], found["Nodes"]) == (200, "", None)
        return list(found["NodeNames"])

    def metric(self, name: str) -> float:
        page: str = self("/metrics")[1]
        return float(next(line for line in page.splitlines() if line.startswith(f"{name} ")).rpartition(" ")[2])


@contextmanager
def asking(cluster: Stage, *, env: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Asking]:
    """A running extender that knows the nodes."""
    with cluster.process(*EXTENDER, env=env) as process:
        asker = Asking(process, tls)
        with closing(asker.connection):
            eventually(lambda: process.messages("steering"), seconds=30)
            yield asker


def ready(asker: Asking) -> int:
    return int(asker("/readyz")[0])


def test_it_answers_by_the_loads_that_stand_on_nodes_and_follows_them(cluster: Stage) -> None:
    """By the marks of the built-in policy; names for names, objects for objects; DaemonSet pods pass; and it ends on SIGTERM in seconds."""
    world = cluster.cluster.world
    annotate(world, n1=0.9, n2=0.0, n3=0.275)
    with asking(cluster) as ask:
        assert ready(ask) == 200
        assert ask("/healthz")[0] == 200
        bare = {"metadata": {"name": "p", "namespace": "shop", "uid": "u"}}
        assert ask.scores(bare) == {"node-0001": 0, "node-0002": 10, "node-0003": 7}  # of what pods may have, it is a little more
        assert ask.passed(bare) == ["node-0002", "node-0003"]
        daemon = {"metadata": {"name": "d", "uid": "u", "ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d"}]}}
        assert ask.passed(daemon) == list(NAMES)
        whole = [world.get("nodes", name) for name in NAMES]
        status, found = ask("/filter", {"Pod": bare, "Nodes": {"metadata": {}, "items": whole}, "NodeNames": None})
        assert status == 200
        assert [node["metadata"]["name"] for node in found["Nodes"]["items"]] == ["node-0002", "node-0003"]
        assert found["FailedNodes"] == {"node-0001": "cpu load 90 % of node node-0001 is over 69 %"}  # 70 % of what pods may have
        annotate(world, n1=0.0)
        eventually(lambda: ask.scores(bare)["node-0001"] == 10)
        assert ask("/prioritize", {"Nodes": None})[0] == 400
        assert ask.metric('rebalancer_extender_requests_total{result="ok",verb="filter"}') == 3
        began = time.monotonic()
        assert ask.process.terminate(seconds=8) == 0
        assert time.monotonic() - began < 8
    start = ask.process.messages("start")[0]
    assert (start["judge"], start["state"], start["pools"]) == ("own", "default/rebalancer-state", ["default"])
    assert ask.process.messages("stopped")
    assert ask.process.out.read_text(encoding="utf-8") == ""
    assert cluster.writes == []


class Controller:
    """Writes open moves down as the controller does."""

    def __init__(self, cluster: Stage) -> None:
        self.client = KubeClient.connect(kubeconfig=cluster.folder / "kubeconfig", context=None)
        self.store = ConfigMapStore(self.client, namespace="default")
        self.store.load(deadline=Deadline.after(10))

    def writes(self, *moves: OpenMove) -> None:
        self.store.save(Memory(open_moves=moves), deadline=Deadline.after(10))

    def close(self) -> None:
        self.client.close()


def bind(world: World, name: str, node: str, *, controller: str = "rs-1", cpu: str = "2") -> None:
    """A pod of Deployment shop/web is made and bound."""
    meta = {**pod(controller=controller)["metadata"], "name": name, "uid": f"uid-{name}"}  # type: ignore[dict-item]
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"containers": containers, "schedulerName": "other"}
    made = world.create("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    bound = with_condition(made, "PodScheduled", "True", world.now)
    world.replace("pods", {**bound, "spec": {**bound["spec"], "nodeName": node}})


def test_replacements_go_where_the_plan_said_and_others_stay_off_that_room(cluster: Stage) -> None:
    """Two of one workload take one planned node each; what is bound uses the reservation up; a pod just bound is anticipated."""
    world = cluster.cluster.world
    annotate(world, n1=0.0, n2=0.1, n3=0.1)
    with closing(Controller(cluster)) as controller, asking(cluster) as ask:
        cores = float(world.get("nodes", "node-0002")["status"]["capacity"]["cpu"])
        now = time.time()
        controller.writes(move("a", "node-0002", at=now - 2, cores=cores / 2), move("b", "node-0003", at=now - 1, cores=cores / 2))
        eventually(lambda: ask.metric("rebalancer_extender_reservations") == 2)
        assert ask.scores(pod("p1")) == {"node-0001": 0, "node-0002": 10, "node-0003": 0}
        assert ask.scores(pod("p2")) == {"node-0001": 0, "node-0002": 0, "node-0003": 10}
        assert ask.scores(pod("p1"))["node-0002"] == 10
        others = ask.scores(STRANGER)
        assert others["node-0001"] == 10
        assert max(others["node-0002"], others["node-0003"]) <= 4
        bind(world, "web-1", "node-0002")
        eventually(lambda: ask.metric("rebalancer_extender_reservations") == 1)
        assert ask.metric("rebalancer_extender_anticipated_pods") >= 1
        # What the replacement is expected to use is there at once, though no annotation has changed.
        eventually(lambda: ask.scores(STRANGER)["node-0002"] <= 4)
        third = ask.scores(pod("p3"))
        assert (third["node-0001"], third["node-0003"] < 5) == (10, True), "the other reservation is held for p2"
        controller.writes()
        eventually(lambda: ask.metric("rebalancer_extender_reservations") == 0)
        assert ask.scores(STRANGER)["node-0003"] == 9


def test_a_server_that_is_gone_for_a_while_changes_nothing_and_is_caught_up_with(cluster: Stage) -> None:
    """The last view stays; what changed meanwhile is known when it is back; it is told once."""
    world = cluster.cluster.world
    annotate(world, n1=0.9, n2=0.0, n3=0.0)
    bare = {"metadata": {"name": "p"}}
    with asking(cluster) as ask:
        assert ask.passed(bare) == ["node-0002", "node-0003"]
        cluster.cluster.faults.drop()
        cluster.cluster.api.cut()
        world.forget_changes()
        annotate(world, n1=0.0, n2=0.9)
        for _ in range(20):
            assert ask.passed(bare) == ["node-0002", "node-0003"]
            time.sleep(0.02)
        assert (ready(ask), ask("/healthz")[0]) == (200, 200)
        cluster.cluster.faults.clear()
        eventually(lambda: ask.passed(bare) == ["node-0001", "node-0003"], seconds=60)
    assert len(ask.process.messages("cannot be read; what was known last stays in use")) <= 2


def test_a_server_that_never_answers_keeps_nobody_waiting(cluster: Stage) -> None:
    """Alive, not ready, every node passes; SIGTERM ends it while the server hangs."""
    cluster.cluster.faults.hang()
    with cluster.process(*EXTENDER) as process:
        ask = Asking(process)
        with closing(ask.connection):
            assert ask.passed({"metadata": {"name": "p"}}) == list(NAMES)
            assert (ready(ask), ask("/healthz")[0]) == (503, 200)
            assert process.terminate(seconds=8) == 0


def test_missing_rights_cost_what_they_are_for_and_are_said_once(cluster: Stage) -> None:
    """Without pods nothing is anticipated, without the ConfigMap nothing is reserved; nodes are judged."""
    rights = cluster.cluster.api.rights
    rights.deny("*", "pods")
    rights.deny("*", "configmaps")
    annotate(cluster.cluster.world, n1=0.9, n2=0.0, n3=0.0)
    with asking(cluster) as ask:
        assert ask.passed({"metadata": {"name": "p"}}) == ["node-0002", "node-0003"]
        said = eventually(lambda: ask.process.messages("pods just bound are not anticipated"))
        assert "list pods" in said[0]["error"]
        eventually(lambda: ask.process.messages("cannot be read; what was known last stays in use"))
        assert len(ask.process.messages("pods just bound are not anticipated")) == 1


def test_it_serves_https_with_a_certificate_of_ones_own(cluster: Stage) -> None:
    """And so are the probes."""
    crt, key = certificate(cluster.folder)
    env = {"REBALANCER_EXTENDER__CERT_FILE": str(crt), "REBALANCER_EXTENDER__KEY_FILE": str(key)}
    with asking(cluster, env=env, tls=ssl.create_default_context(cafile=str(crt))) as ask:
        assert ready(ask) == 200
        assert ask.passed({"metadata": {"name": "p"}}) == list(NAMES)
        assert ask.process.messages("serving")[0]["scheme"] == "https"


def test_what_cannot_begin_says_why(cluster: Stage, tmp_path: Path) -> None:
    """A port that is taken, a certificate without its key, a policy of crane-scheduler that is none."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = cluster.run("extender", "--listen", f"127.0.0.1:{taken.getsockname()[1]}").ended(3).error
    assert "another process uses the port" in refused
    assert "REBALANCER_EXTENDER__LISTEN" in refused
    refused = cluster.run("extender", env={"REBALANCER_EXTENDER__CERT_FILE": __file__}).ended(3).error
    assert "is set without extender.key_file" in refused
    file = tmp_path / "crane.yaml"
    file.write_text("kind: Policy\n")
    assert "crane.yaml" in cluster.run("extender", env={"REBALANCER_CRANE_POLICY_FILE": str(file)}).ended(3).error
