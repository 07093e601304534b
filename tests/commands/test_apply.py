"""`apply`: a reviewed plan is checked again and carried out as far as it still holds, in the mode that is in force."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.embedded import Json, Stage


@pytest.fixture
def plan_file(cluster: Stage) -> Path:
    path = cluster.folder / "plan.json"
    cluster.run("plan", "--out", path).ended(0)
    cluster.forget_writes()
    return path


def moves_of(path: Path) -> list[Json]:
    return msgspec.json.decode(path.read_bytes())["moves"]


def names_of(path: Path) -> list[str]:
    return [f"{move['pod']['namespace']}/{move['pod']['name']}" for move in moves_of(path)]


def test_by_default_it_only_says_what_still_holds(cluster: Stage, plan_file: Path) -> None:
    """Dry run is the default of apply too: one line a move, and nothing is written."""
    ran = cluster.run("apply", plan_file).ended(0)
    for name in names_of(plan_file):
        assert f"holds      {name}" in ran.out
    assert "nothing is written in mode dry-run" in ran.out
    assert (cluster.written, ran.err) == ([], "")


def test_evict_mode_really_evicts_the_planned_pods(cluster: Stage, plan_file: Path) -> None:
    """Exactly these, in the plan's order, each by its UID, and the replacements leave the hot nodes cool."""
    ran = cluster.run("apply", plan_file, "--mode", "evict").ended(0)
    assert cluster.evictions == names_of(plan_file)
    uids = [move["pod"]["uid"] for move in moves_of(plan_file)]
    bodies = [request.json() for request in cluster.writes if request.path.endswith("/eviction")]
    assert [body["deleteOptions"]["preconditions"]["uid"] for body in bodies] == uids
    assert "4 of 4 moves carried out in mode evict (from the flag --mode)" in ran.out
    cluster.cluster.advance(300.0)
    assert cluster.cluster.world.hot_nodes("cpu", 0.7) == []


def test_p2_no_pod_is_ever_deleted(cluster: Stage, plan_file: Path) -> None:
    """The only write on a pod is its eviction."""
    cluster.run("apply", plan_file, "--mode", "evict").ended(0)
    on_pods = [line for line in cluster.written if "/pods/" in line]
    assert on_pods
    assert all(line.startswith("POST ") and line.endswith("/eviction") for line in on_pods)
    assert not [line for line in cluster.written if line.startswith("DELETE")]


def test_soft_taints_come_before_the_first_eviction(cluster: Stage, plan_file: Path) -> None:
    """So that no replacement lands on a warm node meanwhile; and the memory is written before each eviction."""
    cluster.run("apply", plan_file, "--mode", "evict").ended(0)
    first = next(number for number, line in enumerate(cluster.written) if line.endswith("/eviction"))
    before = cluster.written[:first]
    assert {f"PATCH /api/v1/nodes/{move['source']}" for move in moves_of(plan_file)} <= set(before)
    assert before[-1].endswith("/configmaps/rebalancer-state")


def test_a_second_time_nothing_holds_any_more(cluster: Stage, plan_file: Path) -> None:
    """The pods are going or gone: status 6, a reason for each, and no further eviction."""
    cluster.run("apply", plan_file, "--mode", "evict").ended(0)
    cluster.forget_writes()
    ran = cluster.run("apply", plan_file, "--mode", "evict").ended(6)
    assert ran.out.count("terminating: it is being deleted already") == 4
    assert ran.error.startswith(f"Error: 4 of 4 moves of {plan_file} were not carried out. ")
    assert cluster.evictions == []
    cluster.cluster.advance(120.0)
    later = cluster.run("apply", plan_file, "--mode", "evict").ended(6)
    assert later.out.count("the pod is gone") == 4
    assert cluster.evictions == []


def opt_out(cluster: Stage, pod: Json) -> None:
    world = cluster.cluster.world
    now = world.get("pods", pod["name"], pod["namespace"])
    annotations = {**(now["metadata"].get("annotations") or {}), "rebalancer.dev/evict": "false"}
    world.replace("pods", {**now, "metadata": {**now["metadata"], "annotations": annotations}})


def test_what_changed_since_the_plan_is_dropped_and_the_rest_is_done(cluster: Stage, plan_file: Path) -> None:
    """A pod was opted out after the review: it stays, the others go, and the status says partly."""
    pod = moves_of(plan_file)[-1]["pod"]
    opt_out(cluster, pod)
    ran = cluster.run("apply", plan_file, "--mode", "evict").ended(6)
    assert f"dropped    {pod['namespace']}/{pod['name']}" in ran.out
    assert "opt-out: " in ran.out
    assert cluster.evictions == names_of(plan_file)[:-1]
    assert ran.error.startswith(f"Error: 1 of 4 moves of {plan_file} was not carried out. ")


def test_a_dry_run_says_with_the_same_status_what_would_be_dropped(cluster: Stage, plan_file: Path) -> None:
    """Whoever tries first learns the same as whoever acts."""
    opt_out(cluster, moves_of(plan_file)[-1]["pod"])
    ran = cluster.run("apply", plan_file).ended(6)
    assert ran.out.startswith("3 of 4 planned moves still hold")
    assert ran.error == f"Error: 1 of 4 moves of {plan_file} does not hold any more. Read the lines above, then make a new plan."
    assert cluster.written == []


def test_annotate_mode_marks_the_pods_of_the_plan(cluster: Stage, plan_file: Path) -> None:
    """Apply obeys the mode in force, not the one that the plan was made in; nothing is evicted."""
    ran = cluster.run("apply", plan_file, "--mode", "annotate")
    assert ran.status in (0, 6)
    assert cluster.evictions == []
    assert all(line.startswith("PATCH /api/v1/namespaces/") and "/pods/" in line for line in cluster.written)


def test_a_plan_in_evict_mode_is_carried_out_only_where_evict_mode_is_in_force(cluster: Stage) -> None:
    """A file cannot raise the rights of the one who applies it."""
    path = cluster.folder / "evict.json"
    cluster.run("plan", "--mode", "evict", "--out", path).ended(0)
    cluster.run("apply", path).ended(0)
    assert cluster.written == []


def test_an_empty_plan_is_carried_out_by_doing_nothing(cluster: Stage) -> None:
    """A script need not look before it applies."""
    path = cluster.folder / "empty.json"
    calm = cluster.policy("  pools:\n  - name: default\n    signals:\n      cpu: {low: 20, target: 97, high: 99}\n")
    cluster.run("plan", "--policy", calm, "--out", path).ended(0)
    assert "0 of 0 moves carried out" in cluster.run("apply", path, "--mode", "evict").ended(0).out
    assert cluster.evictions == []


def test_the_next_plan_is_empty(cluster: Stage, plan_file: Path) -> None:
    """Right after the evictions, although Prometheus' means are still high, nothing more is proposed."""
    cluster.run("apply", plan_file, "--mode", "evict").ended(0)
    for seconds in (0.0, 60.0, 120.0, 300.0):
        cluster.cluster.advance(seconds)
        assert cluster.run("plan", "-o", "json").ended(0).document["moves"] == []
