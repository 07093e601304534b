"""The verbs over HTTP, on a cluster that changes."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from rebalancer.kube.client import KubeClient
from rebalancer.kube.operations import describe
from rebalancer.runtime.gpushare.service import GpuShareService
from rebalancer.runtime.rights import extender_roles, gpushare_roles
from rebalancer.simulate.faults import Act, Fault
from tests.gpushare.kit import ASK, EACH, bind_question, filter_question, gpu_node
from tests.gpushare.live import Scene, asking, held_on, scene
from tests.support.embedded import eventually


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path) as found:
        yield found
        assert found.auditor.over == []


def test_a_pod_from_filter_to_inspect(stage: Scene) -> None:
    """The bytes of each answer, and what stands on the pod in the end."""
    pod = stage.pod("p", ASK)
    with stage.service() as service, asking(service) as ask:
        status, body = ask("POST", "/gpushare-scheduler/filter", filter_question(["n1", "cpu"], pod))
        assert (status, json.loads(body)["FailedNodes"]) == (200, {"cpu": "The node cpu is not for GPU share, need skip"})
        assert ask("POST", "/gpushare-scheduler/bind", bind_question(pod, "n1")) == (200, b'{"Error":""}')
        bound = stage.get("p")
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["annotations"] == {
            "ALIYUN_COM_GPU_MEM_IDX": "0",
            "ALIYUN_COM_GPU_MEM_DEV": "16276",
            "ALIYUN_COM_GPU_MEM_POD": "8138",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767323045000000000",
        }
        one = (
            b'{"name":"n1","totalGPU":32552,"usedGPU":8138,'
            b'"devs":[{"id":0,"totalGPU":16276,"usedGPU":8138,"pods":[{"name":"p","namespace":"default","usedGPU":8138}]},'
            b'{"id":1,"totalGPU":16276,"usedGPU":0,"pods":[]}]}'
        )
        empty = one.replace(b"n1", b"n2").replace(b"8138", b"0").replace(b'[{"name":"p","namespace":"default","usedGPU":0}]', b"[]")
        assert ask("GET", "/gpushare-scheduler/inspect") == (200, b'{"nodes":[' + one + b"," + empty + b"]}")
        assert ask("GET", "/gpushare-scheduler/inspect/n1") == (200, b'{"nodes":[' + one + b"]}")
        assert ask("GET", "/gpushare-scheduler/inspect/cpu") == (
            200,
            b'{"nodes":[],"error":"node cpu is not known, or is not for GPU share"}',
        )
        assert ask("GET", "/version") == ask("GET", "/gpushare-scheduler/version") == (200, b"0.1.0")


def test_devices_are_packed_and_refused_when_full(stage: Scene) -> None:
    """Two pods share the first device before the second one is begun; the node takes four halves."""
    with stage.service() as service, asking(service) as ask:
        answers = [ask.bind(stage.pod(f"p{i}", ASK), "n1") for i in range(5)]
        assert [status for status, _ in answers] == [200, 200, 200, 200, 500]
        assert answers[-1][1] == "pod default/p4 is not bound to node n1: Insufficient GPU Memory in one device"
        devices = [stage.get(f"p{i}")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] for i in range(4)]
        assert devices == ["0", "0", "1", "1"]


@pytest.mark.parametrize(
    ("asks", "more", "words"),
    [
        ((EACH + 1,), {}, "Insufficient GPU Memory in one device"),
        ((10, 20), {}, "it asks for aliyun.com/gpu-mem in 2 containers, of which the device plugin can serve one"),
        ((), {"early": 5}, "it asks for aliyun.com/gpu-mem in an init container, which the device plugin cannot serve"),
    ],
    ids=["too large", "two containers", "init container"],
)
def test_what_cannot_be_served_is_a_clear_error(stage: Scene, asks: tuple[int, ...], more: dict[str, int], words: str) -> None:
    """Status 500, one sentence."""
    with stage.service() as service, asking(service) as ask:
        status, error = ask.bind(stage.pod("p", *asks, **more), "n1")
        assert status == 500
        assert error.startswith(f"pod default/p is not bound to node n1: {words}")
    assert "nodeName" not in stage.get("p")["spec"]


def test_a_pod_that_asks_for_nothing_is_bound_without_a_device(stage: Scene) -> None:
    """kube-scheduler leaves every pod to us that names the resource; one with a limit of 0 is in nobody's way."""
    with stage.service() as service, asking(service) as ask:
        assert ask.bind(stage.pod("p", 0), "cpu") == (200, "")
        assert stage.get("p")["spec"]["nodeName"] == "cpu"
        assert stage.get("p")["metadata"]["annotations"] == {}


def test_requests_that_make_no_sense_get_a_sentence(stage: Scene) -> None:
    """By the status that the protocol has for each verb."""
    with stage.service() as service, asking(service) as ask:
        assert ask("POST", "/gpushare-scheduler/bind", b"{")[0] == 500
        assert (
            "rebalancer gpushare, bind: the request of 1 bytes cannot be read" in ask("POST", "/gpushare-scheduler/bind", b"{")[1].decode()
        )
        status, body = ask("POST", "/gpushare-scheduler/filter", b"{")
        assert (status, json.loads(body)["NodeNames"]) == (200, None)
        assert "cannot be read" in json.loads(body)["Error"]
        assert ask("GET", "/gpushare-scheduler/bind")[0] == 405


def test_unhealthy_devices_are_left_out_while_they_are(stage: Scene) -> None:
    """By the ConfigMap of the node, followed by watch."""
    metadata = {"name": "unhealthy-gpu-n1", "namespace": "kube-system"}
    stage.world.create("configmaps", {"metadata": metadata, "data": {"gpus": "0,x"}})
    with stage.service() as service, asking(service) as ask:
        eventually(lambda: service.book.most_free.get("n1") == EACH and service.book.oddities())
        assert ask.bind(stage.pod("p", ASK), "n1") == (200, "")
        assert stage.get("p")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "1"
        error = json.loads(ask("GET", "/gpushare-scheduler/inspect/n1")[1])["error"]
        assert error == "ConfigMap unhealthy-gpu-n1 names x, which is no device"
        stage.world.remove("configmaps", "unhealthy-gpu-n1", "kube-system")
        eventually(lambda: not service.book.oddities())
        assert ask.bind(stage.pod("q", EACH), "n1") == (200, "")


def test_a_pod_of_which_nobody_knows_the_device_counts_on_every_one(stage: Scene) -> None:
    """Bound past the extender; inspect says so."""
    stage.pod("lost", ASK, node="n1", annotations={"ALIYUN_COM_GPU_MEM_IDX": "-1"})
    with stage.service() as service, asking(service) as ask:
        assert ask.bind(stage.pod("p", ASK + 1), "n1")[0] == 500
        assert [ask.bind(stage.pod(f"q{i}", ASK), "n1")[0] for i in range(3)] == [200, 200, 500]
        answer = json.loads(ask("GET", "/gpushare-scheduler/inspect/n1")[1])
        assert answer["nodes"][0]["usedGPU"] == 3 * ASK
        assert "pod default/lost has the annotation ALIYUN_COM_GPU_MEM_IDX: '-1', which is no device; its 8138 count" in answer["error"]


def test_the_watch_tells_of_pods_that_end_and_leave(stage: Scene) -> None:
    """What they held is free for filter and bind."""
    first = stage.pod("first", EACH)
    with stage.service() as service, asking(service) as ask:
        assert ask.bind(first, "n1") == (200, "")
        assert ask.bind(stage.pod("second", EACH), "n1") == (200, "")
        eventually(lambda: service.book.most_free["n1"] == 0)
        stage.world.replace("pods", {**stage.get("first"), "status": {"phase": "Succeeded"}})
        eventually(lambda: service.book.most_free["n1"] == EACH)
        stage.world.remove("pods", "second", "default")
        eventually(lambda: [service.book.ledger("n1").used] == [(0, 0)])  # type: ignore[union-attr]


def test_nodes_come_change_and_go(stage: Scene) -> None:
    """A new one is used at once, one without devices any more is not."""
    with stage.service() as service:
        stage.world.create("nodes", gpu_node("n9", each=100, devices=1))
        eventually(lambda: service.book.most_free.get("n9") == 100)
        stage.world.replace("nodes", {**stage.world.get("nodes", "n9"), "status": {"capacity": {}}})
        eventually(lambda: "n9" not in service.book.most_free)
        stage.world.remove("nodes", "n1")
        eventually(lambda: "n1" not in service.book.most_free)


def test_a_forgotten_past_is_listed_anew(stage: Scene) -> None:
    """410 for a watch that was away while things changed."""
    with stage.service() as service:
        stage.cluster.faults.expire(path="watch=", count=3)
        stage.world.forget_changes()
        stage.pod("p", ASK, node="n1", device=0)
        eventually(lambda: service.book.is_on("n1", stage.get("p")["metadata"]["uid"]))


def test_a_missing_right_is_named(stage: Scene) -> None:
    """The rule that is missing; the pod stays, and the room is free again."""
    with stage.service() as service, asking(service) as ask:
        stage.cluster.api.rights.deny("create", "pods/binding")
        status, error = ask.bind(stage.pod("p", ASK), "n1")
        assert status == 500
        assert 'resources: ["pods/binding"], verbs: ["create"]' in error
        assert service.book.pending("n1") == ()
        stage.cluster.api.rights.allow_all()
        assert ask.bind(stage.get("p"), "n1") == (200, "")


@pytest.mark.parametrize(
    ("act", "path", "status"),
    [(Act.DROP_AFTER, "/binding", 200), (Act.DROP, "/binding", 500), (Act.DROP_AFTER, "/configmaps", 200), (Act.DROP, "/configmaps", 200)],
)
def test_lost_answers_are_found_out(stage: Scene, act: Act, path: str, status: int) -> None:
    """Done or not done, of the binding or of the register; what is left open is settled by the next try."""
    with stage.service() as service, asking(service) as ask:
        pod = stage.pod("p", ASK)
        stage.cluster.faults.add(Fault(act, method="POST", path=path, count=1))
        assert ask.bind(pod, "n1")[0] == status
        assert ask.bind(pod, "n1") == (200, "")
        assert held_on(stage.world) == {("n1", "0"): ASK}


def test_before_the_cluster_is_read_nothing_is_refused_and_nothing_bound(stage: Scene, tmp_path: Path) -> None:
    """Every node passes the filter; bind says why it cannot."""
    stage.cluster.api.rights.deny("list", "pods")
    pod = stage.pod("p", ASK)

    client = KubeClient.connect(kubeconfig=stage.kubeconfig, context=None)
    with GpuShareService(client, namespace="rebalancer", now=lambda: 0.0) as service, asking(service) as ask:
        assert json.loads(ask("POST", "/gpushare-scheduler/filter", filter_question(["a"], pod))[1])["NodeNames"] == ["a"]
        assert ask.bind(pod, "n1") == (500, "pod default/p is not bound to node n1: pods and nodes have not been read yet, try again")
        assert "pods have not been read yet" in json.loads(ask("GET", "/gpushare-scheduler/inspect")[1])["error"]
        assert not service.check().passed
    client.close()


def test_no_request_needs_more_than_the_rights_that_are_listed(stage: Scene) -> None:
    """Lists, watches, a binding, one that is overtaken, and registers that are deleted."""
    roles = (*extender_roles(namespace="rebalancer", reservations=False), *gpushare_roles(namespace="rebalancer"))
    allowed = {(right.verb, right.path, right.namespace) for role in roles for right in role.rights}
    with stage.service() as service:
        stage.cluster.faults.add(Fault(Act.DROP, method="POST", path="/binding", count=1))
        assert service.bind(bind_question(stage.pod("open", ASK), "n1")).status == 500
        with (
            mock.patch("rebalancer.runtime.gpushare.registers.PATIENCE_S", -1.0),
            mock.patch("rebalancer.runtime.gpushare.binder.UNHEARD_S", -1.0),
        ):
            service.binder.sweep()
        assert service.bind(bind_question(stage.pod("p", ASK), "n1")).status == 200
        stage.world.remove("nodes", "n1")
        eventually(lambda: service.book.node("n1") is None)
        assert service.binder.purge() == 1
    seen: set[tuple[str, str, str]] = set()
    for request in stage.cluster.api.requests.all():
        operation = describe(request.method, request.path)
        verb = "watch" if request.query.get("watch") else operation.verb
        seen.add((verb, operation.resource, operation.namespace if operation.resource == "configmaps" else ""))
    assert seen <= allowed, seen - allowed
    assert {("create", "pods/binding", ""), ("patch", "pods", ""), ("delete", "configmaps", "rebalancer")} <= seen
    assert "rebalancer.dev/gpu-binding" not in stage.get("open")["metadata"]["annotations"]


def test_several_services_bind_at_the_same_time(stage: Scene) -> None:
    """Three replicas, two callers each, more pods than there is room; every pod is bound that fits somewhere."""
    chance = random.Random(5)
    pods = [stage.pod(f"p{i}", chance.choice([ASK, ASK // 2, EACH])) for i in range(24)]
    with stage.service() as one, stage.service() as two, stage.service() as three:
        services = [one, two, three]

        def caller(index: int) -> None:
            service = services[index % 3]
            for pod in pods[index::6]:
                for node in ("n1", "n2"):
                    if service.bind(bind_question(pod, node)).status == 200:
                        break

        threads = [threading.Thread(target=caller, args=(index,)) for index in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        bound = [pod for pod in pods if stage.get(pod["metadata"]["name"])["spec"].get("nodeName")]
        free = {(node, str(device)): EACH for node in ("n1", "n2") for device in range(2)}
        for place, held in held_on(stage.world).items():
            free[place] -= held
        left = [int(pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"]) for pod in pods if pod not in bound]
        assert len(bound) >= 4
        assert all(ask > max(free.values()) for ask in left)
        eventually(lambda: all(service.book.most_free == one.book.most_free for service in services))
