"""Who we are and what we may."""

from __future__ import annotations

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesUnreachable
from rebalancer.kube.access import REVIEWS, can_i, cluster_uid, server_version
from rebalancer.kube.client import KubeClient
from tests.support.scripted_api import Reply, ScriptedApi, status


@pytest.mark.parametrize("allowed", [True, False])
def test_a_right_is_asked_for_by_review(api: ScriptedApi, client: KubeClient, deadline: Deadline, allowed: bool) -> None:
    """The review names verb, resource, subresource and namespace, and leaves out what is not meant."""
    api.on("POST", REVIEWS, Reply(status=201, body={"status": {"allowed": allowed, "reason": "RBAC"}}))
    answer = can_i(client, verb="create", resource="pods", subresource="eviction", namespace="shop", deadline=deadline)
    assert answer is allowed
    assert api.asked[0].json == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction", "namespace": "shop"}},
    }


def test_a_review_is_tried_again(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """It only asks, so it may be sent twice."""
    api.on("POST", REVIEWS, status(503, "starting"), Reply(drop=True), Reply(status=201, body={"status": {"allowed": True}}))
    assert can_i(client, verb="list", resource="pods", deadline=deadline) is True
    assert len(api.asked) == 3


def test_a_review_without_verdict_is_not_taken_for_a_no(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Unknown is an error, not False."""
    api.on("POST", REVIEWS, Reply(status=201, body={"status": {}}))
    with pytest.raises(KubernetesUnreachable):
        can_i(client, verb="list", resource="pods", deadline=deadline)


@pytest.mark.parametrize(("minor", "number"), [("37", 37), ("29+", 29), ("", -1), ("x", -1)])
def test_the_version_of_the_server(api: ScriptedApi, client: KubeClient, deadline: Deadline, minor: str, number: int) -> None:
    """Distributions add a plus; what is no number is not guessed."""
    api.on("GET", "/version", Reply(body={"major": "1", "minor": minor, "gitVersion": "v1.x"}))
    version = server_version(client, deadline=deadline)
    assert (version.major, version.minor, version.git_version) == (1, number, "v1.x")


def test_the_cluster_is_known_by_its_oldest_namespace(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The UID of kube-system."""
    api.on("GET", "/api/v1/namespaces/kube-system", Reply(body={"metadata": {"uid": "the-uid"}}))
    assert cluster_uid(client, deadline=deadline) == "the-uid"
