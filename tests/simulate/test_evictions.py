"""The eviction subresource over HTTP: who is let go, who is charged, and what a refusal looks like (V13 to V18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, Reply, budget, deployment, evict, eviction, node, pod, serving, stateful_set, status_of

Setup = tuple[World, EmbeddedCluster, Http]


@pytest.fixture
def setup() -> Iterator[Setup]:
    world = World(seed=3)
    node(world, "n1")
    with serving(world) as (cluster, client):
        yield world, cluster, client


def _set_status(world: World, name: str, **fields: Any) -> None:
    value = world.get("poddisruptionbudgets", name, "a")
    status = {"observedGeneration": value["metadata"]["generation"], "expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 2, **fields}
    world.replace("poddisruptionbudgets", {**value, "status": status})


def _cause(reply: Reply) -> str:
    return str(reply.json()["details"]["causes"][0]["message"])


def test_an_evicted_pod_is_marked_and_given_its_grace_period(setup: Setup) -> None:
    """201, a DisruptionTarget condition, and a deletion time in the future."""
    world, _, client = setup
    pod(world, "p", on="n1", terminationGracePeriodSeconds=45)
    reply = evict(client, "p")
    assert (reply.status, reply.json()["status"]) == (201, "Success")
    left = world.get("pods", "p", "a")
    assert left["metadata"]["deletionGracePeriodSeconds"] == 45
    assert {c["reason"] for c in left["status"]["conditions"] if c["type"] == "DisruptionTarget"} == {"EvictionByEvictionAPI"}


def test_a_terminating_pod_is_evicted_again_without_a_charge(setup: Setup) -> None:
    """The call is idempotent: 201, and the budget is left alone."""
    world, _, client = setup
    pod(world, "p", on="n1")
    budget(world, "b", maxUnavailable=1)
    _set_status(world, "b", disruptionsAllowed=1)
    assert [evict(client, "p").status, evict(client, "p").status] == [201, 201]
    assert status_of(world, "b")["disruptionsAllowed"] == 0


def test_a_missing_pod_is_404(setup: Setup) -> None:
    """There is nothing to evict."""
    assert evict(setup[2], "nobody").status == 404


def test_another_uid_is_409_and_the_charge_stays(setup: Setup) -> None:
    """The budget is charged before preconditions are looked at: the leak of the real server."""
    world, _, client = setup
    pod(world, "p", on="n1")
    budget(world, "b", maxUnavailable=1)
    _set_status(world, "b", disruptionsAllowed=2)
    assert evict(client, "p", uid="another").status == 409
    assert status_of(world, "b")["disruptionsAllowed"] == 1
    assert "p" in status_of(world, "b")["disruptedPods"]
    assert "deletionTimestamp" not in world.get("pods", "p", "a")["metadata"]


def test_the_right_uid_is_accepted(setup: Setup) -> None:
    """A precondition that holds changes nothing."""
    world, _, client = setup
    assert evict(client, "p", uid=pod(world, "p", on="n1")["metadata"]["uid"]).status == 201


def test_two_budgets_on_a_pod_are_500(setup: Setup) -> None:
    """The subresource does not support more than one."""
    world, _, client = setup
    pod(world, "p", on="n1")
    budget(world, "b", maxUnavailable=1)
    budget(world, "c", maxUnavailable=1)
    reply = evict(client, "p")
    assert reply.status == 500
    assert "more than one PodDisruptionBudget" in reply.json()["message"]


def test_a_dry_run_checks_everything_and_stores_nothing(setup: Setup) -> None:
    """Two dry runs see the same one disruption; the refusal of a full budget shows as well."""
    world, _, client = setup
    pod(world, "p", on="n1")
    budget(world, "b", maxUnavailable=1)
    _set_status(world, "b", disruptionsAllowed=1)
    assert [evict(client, "p", dryRun=["All"]).status, evict(client, "p", query={"dryRun": "All"}).status] == [201, 201]
    assert status_of(world, "b")["disruptionsAllowed"] == 1
    assert "deletionTimestamp" not in world.get("pods", "p", "a")["metadata"]
    _set_status(world, "b", disruptionsAllowed=0)
    assert evict(client, "p", dryRun=["All"]).status == 429


def test_bad_bodies_are_400(setup: Setup) -> None:
    """Another name, another kind, or no JSON at all."""
    world, _, client = setup
    pod(world, "p", on="n1")
    path = "/api/v1/namespaces/a/pods/p/eviction"
    bodies: list[object] = [eviction("q"), {**eviction("p"), "kind": "Pod"}, b"{", [1]]
    assert [client("POST", path, body).status for body in bodies] == [400, 400, 400, 400]


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [("", 2, 201), ("", 1, 429), ("AlwaysAllow", 1, 201)],
    ids=["v13-budget-healthy", "v14-unset", "v14-always"],
)
def test_v13_v14_an_unready_pod_goes_uncharged_or_not_at_all(setup: Setup, policy: str, healthy: int, code: int) -> None:
    """Unready pods pass when the rest is healthy, or when the budget always allows them."""
    world, _, client = setup
    pod(world, "p", on="n1", ready=False)
    budget(world, "b", maxUnavailable=1, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    _set_status(world, "b", disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=2)
    assert evict(client, "p").status == code
    assert "disruptedPods" not in status_of(world, "b")


def test_v15_a_pod_that_has_not_started_needs_no_budget(setup: Setup) -> None:
    """Bound, Pending: evicted and gone at the end of its grace period."""
    world, _, client = setup
    pod(world, "p", on="n1", ready=None)
    budget(world, "b", maxUnavailable=0)
    _set_status(world, "b", disruptionsAllowed=0)
    assert evict(client, "p").status == 201


def test_v16_a_stale_budget_is_429_with_a_retry_time(setup: Setup) -> None:
    """Until the controller has seen the new spec, nobody is let go."""
    world, _, client = setup
    pod(world, "p", on="n1")
    budget(world, "b", maxUnavailable=1)
    _set_status(world, "b", disruptionsAllowed=1)
    value = world.get("poddisruptionbudgets", "b", "a")
    world.replace("poddisruptionbudgets", {**value, "spec": {**value["spec"], "maxUnavailable": 2}})
    reply = evict(client, "p")
    assert (reply.status, reply.headers["retry-after"]) == (429, "10")
    assert _cause(reply) == "The disruption budget b is still being processed by the server."


def test_v17_three_evictions_at_once_with_room_for_two(setup: Setup) -> None:
    """The charge is written in the request: the third is refused, without a Retry-After."""
    world, _, client = setup
    for name in ("p", "q", "r"):
        pod(world, name, on="n1")
    budget(world, "b", maxUnavailable=2)
    _set_status(world, "b", disruptionsAllowed=2, desiredHealthy=1, currentHealthy=1)
    replies = [evict(client, name) for name in ("p", "q", "r")]
    assert [reply.status for reply in replies] == [201, 201, 429]
    assert "retry-after" not in replies[2].headers
    assert replies[2].json()["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert _cause(replies[2]) == "The disruption budget b needs 1 healthy pods and has 1 currently"


def test_v18_the_unready_one_goes_free_and_the_last_ready_one_waits(setup: Setup) -> None:
    """Allowed two: A and B are charged, C is not Ready and costs nothing, D has to wait."""
    world, _, client = setup
    for name in "abd":
        pod(world, name, on="n1")
    pod(world, "c", on="n1", ready=False)
    budget(world, "b", maxUnavailable=2)
    _set_status(world, "b", disruptionsAllowed=2, currentHealthy=5, desiredHealthy=3)
    assert [evict(client, name).status for name in "abcd"] == [201, 201, 201, 429]


def test_a_charge_expires_after_two_minutes_when_nothing_was_deleted() -> None:
    """A leaked charge is given back once it is older than two minutes."""
    world = bare_world(seed=4)
    node(world, "n1")
    deployment(world, "x", 3)
    budget(world, "b", {"matchLabels": {"app": "x"}}, maxUnavailable=1)
    world.advance(60)
    name = next(world.objects("pods"))["metadata"]["name"]
    with serving(world) as (_, client):
        assert evict(client, name, uid="another").status == 409
    world.advance(60)
    assert status_of(world, "b")["disruptionsAllowed"] == 0
    world.advance(90)
    assert status_of(world, "b")["disruptionsAllowed"] == 1


def test_the_budget_comes_back_when_the_replacement_is_ready() -> None:
    """After an eviction nothing is allowed until the new pod runs."""
    world = bare_world(seed=5)
    node(world, "n1")
    deployment(world, "x", 3)
    budget(world, "b", {"matchLabels": {"app": "x"}}, maxUnavailable=1)
    world.advance(60)
    name = next(world.objects("pods"))["metadata"]["name"]
    with serving(world) as (cluster, client):
        assert evict(client, name).status == 201
        cluster.advance(1)
        assert status_of(world, "b")["disruptionsAllowed"] == 0
        assert [evict(client, p["metadata"]["name"]).status for p in world.objects("pods") if p["status"]["phase"] == "Running"][-1] == 429
        cluster.advance(60)
        assert status_of(world, "b")["disruptionsAllowed"] == 1


def test_pod_deletions_are_recorded_so_that_tests_can_forbid_them(setup: Setup) -> None:
    """DELETE works, and everybody can see that it was used."""
    world, cluster, client = setup
    pod(world, "p", on="n1")
    assert client("DELETE", "/api/v1/namespaces/a/pods/p").status == 200
    assert [request.path for request in cluster.api.requests.of("DELETE")] == ["/api/v1/namespaces/a/pods/p"]


def test_an_ordered_set_is_repaired_only_when_the_old_pod_is_gone() -> None:
    """Same name, new uid, and not before the old object has left."""
    world = bare_world(seed=6)
    node(world, "n1")
    stateful_set(world, "db", 3)
    world.advance(120)
    before = world.get("pods", "db-1", "a")["metadata"]["uid"]
    with serving(world) as (cluster, client):
        assert evict(client, "db-1").status == 201
        cluster.advance(1)
        assert world.get("pods", "db-1", "a")["metadata"]["uid"] == before
        cluster.advance(60)
    after = world.get("pods", "db-1", "a")
    assert after["metadata"]["uid"] != before
    assert after["status"]["phase"] == "Running"
