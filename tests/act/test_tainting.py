"""Soft taints: on warm nodes while there is somewhere cooler, ours alone, and never in the way of a plan."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.act.names import SOFT_TAINTS
from rebalancer.act.tainting import SoftTainting, TaintResult, TaintWork, taint_work
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.plan.model import NodeReport
from rebalancer.policy.model import Pool, Spec
from rebalancer.policy.quantities import LabelSelector
from tests.act.plans import move, plan, report
from tests.support.scripted_api import Reply, ScriptedApi, page, status

OURS, OURS_TOO = ({"key": taint.key, "value": taint.value, "effect": "PreferNoSchedule"} for taint in SOFT_TAINTS)
HOT, BOTH = ("rebalancer.dev/hot",), ("rebalancer.dev/hot", "rebalancer.dev/warm")
WARM = ("rebalancer.dev/warm",)
THEIRS = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def node(name: str, *taints: dict[str, str], version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}, "spec": {"taints": list(taints)}, "status": {}}


def serve(api: ScriptedApi, name: str, *taints: dict[str, str]) -> str:
    path = f"/api/v1/nodes/{name}"
    api.on("GET", path, Reply(body=node(name, *taints)))
    api.on("PATCH", path, Reply(body=node(name)))
    return path


def patched(api: ScriptedApi, name: str) -> list[object]:
    """The lists of taints that were written to a node."""
    return [asked.json["spec"]["taints"] for asked in api.requests("PATCH", f"/api/v1/nodes/{name}")]  # type: ignore[index]


def work(*nodes: NodeReport, taints: tuple[str, ...] = (), moves: bool = True, soft_tainting: bool = True) -> TaintWork:
    return taint_work(plan(*([move()] if moves else []), nodes=nodes, soft_taints=taints, soft_tainting=soft_tainting))


COOL = report("cool", 0.2)


def test_the_nodes_that_the_plan_names_get_the_taint_unless_they_have_it() -> None:
    """Written only on change."""
    nodes = (report("hot", 0.9), report("warm", 0.6, tainted=True), COOL)
    assert work(*nodes, taints=("hot", "warm")) == TaintWork(put=(("hot", HOT),))


def test_a_node_that_is_no_longer_warm_loses_the_taint() -> None:
    """The reason is gone, so the taint is; what counts as warm, the plan has decided."""
    assert work(report("was-hot", 0.55, tainted=True), COOL, moves=False) == TaintWork(remove=("was-hot",))


def test_a_plan_without_moves_adds_none_and_keeps_those_of_warm_nodes() -> None:
    """While a node cools down, replacements that are still on their way should not land there."""
    nodes = (report("cooling", 0.6, tainted=True, warm=True), report("warm", 0.6, warm=True), COOL)
    assert work(*nodes, moves=False) == TaintWork()


def test_a_node_that_no_pool_claims_any_more_loses_the_taint_that_we_put() -> None:
    """It has no target that it could be above; what another controller put on its own node stays."""
    nodes = (report("stray", 0.9, pool=None, target=None, tainted=True), report("theirs", 0.9, pool=None, target=None, tainted=True), COOL)
    assert taint_work(plan(nodes=nodes), put={"stray", "gone"}) == TaintWork(remove=("stray",))
    assert work(*nodes, moves=False) == TaintWork()


def test_a_policy_that_gives_soft_taints_up_takes_off_what_is_left() -> None:
    """Switching steering off must not leave warm nodes tainted for as long as they are warm."""
    assert work(report("warm", 0.6, tainted=True, warm=True), COOL, soft_tainting=False) == TaintWork(remove=("warm",))


def test_what_a_node_carries_is_changed_for_what_is_right_now() -> None:
    """Also without a move: one that has cooled from hot to warm, one that has grown hot, and one that knew a single grade."""
    nodes = (
        report("cooling", 0.6, warm=True, right=WARM, carries=BOTH),
        report("growing", 0.9, warm=True, right=BOTH, carries=WARM),
        report("older", 0.6, warm=True, right=WARM, carries=HOT),
        report("as-it-is", 0.9, warm=True, right=BOTH, carries=BOTH),
        report("untainted", 0.6, warm=True, right=WARM),
    )
    assert work(*nodes, moves=False) == TaintWork(put=(("cooling", WARM), ("growing", BOTH), ("older", WARM)))


def test_each_node_that_the_plan_names_gets_what_is_right_for_it() -> None:
    """Hot ones both taints, warm ones one; what an earlier version left on a node that is cool now goes."""
    nodes = (report("hot", 0.9, right=BOTH), report("warm", 0.6, right=WARM), report("cool", 0.2, right=(), carries=HOT))
    assert work(*nodes, taints=("hot", "warm")) == TaintWork(put=(("hot", BOTH), ("warm", WARM)), remove=("cool",))


def test_taints_of_others_survive_both_ways(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Only the one of our key and effect is added or taken."""
    serve(api, "a", THEIRS)
    serve(api, "b", THEIRS, OURS)
    notes = SoftTainting(client).apply(TaintWork(put=(("a", HOT),), remove=("b",)), deadline=deadline)
    assert patched(api, "a") == [[THEIRS, OURS]]
    assert patched(api, "b") == [[THEIRS]]
    assert notes == ("soft taint rebalancer.dev/hot put on a", "soft taint rebalancer.dev/hot taken off b")


def test_a_taint_that_is_there_already_is_not_written_again(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """No patch, no note."""
    serve(api, "a", OURS)
    assert SoftTainting(client).apply(TaintWork(put=(("a", HOT),)), deadline=deadline) == ()
    assert patched(api, "a") == []


def test_a_conflict_is_done_again_from_what_is_there_then(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Somebody wrote to the node in between: their taint is kept."""
    path = "/api/v1/nodes/a"
    api.on("GET", path, Reply(body=node("a")), Reply(body=node("a", THEIRS, version="2")))
    api.on("PATCH", path, status(409, "the object has been modified", reason="Conflict"), Reply(body=node("a")))
    notes = SoftTainting(client).apply(TaintWork(put=(("a", HOT),)), deadline=deadline)
    assert patched(api, "a") == [[OURS], [THEIRS, OURS]]
    assert notes == ("soft taint rebalancer.dev/hot put on a",)


def test_a_node_that_is_gone_is_passed_over_in_silence(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """An autoscaler may take a node at any time; the next one is still done."""
    serve(api, "there")
    notes = SoftTainting(client).apply(TaintWork(put=(("gone", HOT), ("there", HOT))), deadline=deadline)
    assert notes == ("soft taint rebalancer.dev/hot put on there",)


def test_a_failure_on_one_node_is_told_and_the_next_one_is_done(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A webhook that refuses one node says nothing about another."""
    serve(api, "there")
    api.on("GET", "/api/v1/nodes/odd", Reply(body=node("odd")))
    api.on("PATCH", "/api/v1/nodes/odd", status(422, "a webhook says no", reason="Invalid"))
    notes = SoftTainting(client).apply(TaintWork(put=(("odd", HOT), ("there", HOT))), deadline=deadline)
    assert len(notes) == 2
    assert notes[0].startswith("soft taint of node odd could not be changed: ")
    assert notes[1] == "soft taint rebalancer.dev/hot put on there"


def test_the_nodes_that_lack_their_taint_are_named(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Those that were not tried any more too; not one that is gone, nor one that has it, nor one whose taint should go."""
    serve(api, "there")
    serve(api, "has", OURS)
    for name in ("x1", "x2", "x3"):
        api.on("GET", f"/api/v1/nodes/{name}", status(403, "nodes is forbidden", reason="Forbidden"))
    work = TaintWork(put=(("gone", HOT), ("has", HOT), ("there", HOT), ("x1", HOT), ("x2", HOT)), remove=("x3",))
    assert SoftTainting(client).steer(work, deadline=deadline).untainted == ("x1", "x2")


def test_a_missing_right_is_told_once_with_how_many_nodes_it_concerns(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Not once for each of a hundred hot nodes, and without trying them."""
    for name in ("a", "b", "c"):
        api.on("GET", f"/api/v1/nodes/{name}", status(403, "nodes is forbidden", reason="Forbidden"))
    notes = SoftTainting(client).apply(TaintWork(put=(("a", HOT), ("b", HOT)), remove=("c",)), deadline=deadline)
    assert len(notes) == 1
    assert notes[0].startswith("soft taint of node a could not be changed, nor 2 more: ")
    assert len(api.asked) == 1


def test_what_was_put_and_taken_is_told_by_its_keys(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """One patch a node, and one sentence for each set of taints."""
    serve(api, "hot")
    serve(api, "cooling", OURS, OURS_TOO)
    serve(api, "growing", OURS_TOO)
    serve(api, "cool", OURS, OURS_TOO)
    work = TaintWork(put=(("hot", BOTH), ("cooling", WARM), ("growing", BOTH)), remove=("cool",))
    assert SoftTainting(client).apply(work, deadline=deadline) == (
        "soft taint rebalancer.dev/hot put on growing",
        "soft taints rebalancer.dev/hot and rebalancer.dev/warm put on hot",
        "soft taint rebalancer.dev/hot taken off cooling",
        "soft taints rebalancer.dev/hot and rebalancer.dev/warm taken off cool",
    )
    assert [patched(api, name) for name in ("hot", "cooling", "growing", "cool")] == [
        [[OURS, OURS_TOO]],
        [[OURS_TOO]],
        [[OURS_TOO, OURS]],
        [None],
    ]


def test_every_node_that_was_tried_is_told_with_its_result(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """From a closed set, for a metric."""
    serve(api, "new")
    serve(api, "has", OURS)
    conflict = status(409, "the object has been modified", reason="Conflict")
    for name, refusal in (
        ("raced", conflict),
        ("refused", status(422, "a webhook says no")),
        ("secret", status(403, "no", reason="Forbidden")),
    ):
        api.on("GET", f"/api/v1/nodes/{name}", Reply(body=node(name)))
        api.on("PATCH", f"/api/v1/nodes/{name}", refusal)
    heard: list[TaintResult] = []
    names = ("new", "has", "gone", "raced", "refused", "secret", "never-tried")
    SoftTainting(client, told=heard.append).apply(TaintWork(put=tuple((name, HOT) for name in names)), deadline=deadline)
    assert heard == [
        TaintResult.CHANGED,
        TaintResult.UNCHANGED,
        TaintResult.GONE,
        TaintResult.CONFLICT,
        TaintResult.FAILED,
        TaintResult.FORBIDDEN,
    ]


def test_no_time_left_is_told_once(api: ScriptedApi, client: KubeClient) -> None:
    """At the end of the process the clean-up has seconds; what is left is left in one sentence."""
    notes = SoftTainting(client).apply(TaintWork(remove=("a", "b", "c")), deadline=Deadline.after(0))
    assert len(notes) == 1
    assert "nor 2 more" in notes[0]
    assert api.asked == []


def test_clean_up_finds_our_taints_on_every_node_whoever_put_them(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A crashed controller's too, without any memory of it."""
    api.on("GET", "/api/v1/nodes", page([node("a", OURS), node("b", THEIRS), node("c", THEIRS, OURS)]))
    serve(api, "a", OURS)
    serve(api, "c", THEIRS, OURS)
    assert SoftTainting(client).remove_all(deadline=deadline) == ("soft taint rebalancer.dev/hot taken off a, c",)
    assert patched(api, "a") == [None]
    assert patched(api, "c") == [[THEIRS]]


def test_clean_up_takes_off_every_grade_in_one_patch(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Whichever a node carries, of this version or of an earlier one."""
    api.on("GET", "/api/v1/nodes", page([node("both", OURS, OURS_TOO), node("older", OURS), node("warm", THEIRS, OURS_TOO)]))
    serve(api, "both", OURS, OURS_TOO)
    serve(api, "older", OURS)
    serve(api, "warm", THEIRS, OURS_TOO)
    SoftTainting(client).remove_all(deadline=deadline)
    assert [patched(api, name) for name in ("both", "older", "warm")] == [[None], [None], [[THEIRS]]]


GPU = (Pool(name="gpu", node_selector=LabelSelector(match_labels={"pool": "gpu"}), signals=Spec().pools[0].signals),)


def labelled(name: str, pool: str, *taints: dict[str, str]) -> dict[str, object]:
    found = node(name, *taints)
    return {**found, "metadata": {**found["metadata"], "labels": {"pool": pool}}}  # type: ignore[dict-item]


def test_clean_up_leaves_the_nodes_of_other_controllers_alone(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Those of the own pools are cleaned whoever tainted them, and those that this process tainted before they left the pool."""
    nodes = [labelled("mine", "gpu", OURS), labelled("theirs", "cpu", OURS), labelled("left", "cpu", OURS)]
    api.on("GET", "/api/v1/nodes", page(nodes))
    for name in ("mine", "left"):
        serve(api, name, OURS)
    tainting = SoftTainting(client)
    tainting.apply(TaintWork(put=(("left", HOT),)), deadline=deadline)
    assert tainting.put == {"left"}
    assert tainting.remove_all(deadline=deadline, pools=GPU) == ("soft taint rebalancer.dev/hot taken off left, mine",)
    assert api.requests("PATCH", "/api/v1/nodes/theirs") == []
    assert tainting.put == set()


def test_a_pool_without_a_selector_cleans_every_node(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """It claims them all."""
    api.on("GET", "/api/v1/nodes", page([labelled("a", "gpu", OURS), labelled("b", "cpu", OURS)]))
    for name in ("a", "b"):
        serve(api, name, OURS)
    assert SoftTainting(client).remove_all(deadline=deadline, pools=Spec().pools) == ("soft taint rebalancer.dev/hot taken off a, b",)


def test_clean_up_that_cannot_see_the_nodes_fails_loudly(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """ "Nothing of ours was there" must not be said by somebody who could not look."""
    api.on("GET", "/api/v1/nodes", status(403, "nodes is forbidden", reason="Forbidden"))
    with pytest.raises(KubernetesError):
        SoftTainting(client).remove_all(deadline=deadline)


def test_a_long_list_of_nodes_is_cut_in_the_note(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Five names, then how many more."""
    names = tuple(f"n{i}" for i in range(7))
    for name in names:
        serve(api, name)
    assert SoftTainting(client).apply(TaintWork(put=tuple((name, HOT) for name in names)), deadline=deadline) == (
        "soft taint rebalancer.dev/hot put on n0, n1, n2, n3, n4 and 2 more",
    )
