"""Whose the samples are, what load is a share of, and what stays unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rebalancer.state.cluster import ClusterState, Share
from rebalancer.state.ledger import node_load, node_requested, node_residual, node_usage
from rebalancer.state.tables import Signal
from tests.collect_cluster.objects import CPU, MEMORY, WINDOWS, container, node, owner, pod, row_of, samples, state_of

GI = 2.0**30


def _cpu(state: ClusterState, pod_name: str, namespace: str = "default") -> float:
    return float(state.pods.usage[row_of(state, pod_name, namespace), 0])


def test_m14_load_is_usage_and_packing_is_requests() -> None:
    """Requests 25 %, usage 94 %: the load is 0.94."""
    state = state_of(
        nodes=[node("a", cpu="8")],
        pods=[pod("x", on="a", containers=[container(cpu="2")])],
        measured=samples(nodes={"cpu": {"a": 7.52}}, pods={"cpu": {("default", "x", "a"): 7.0}}),
    )
    assert node_load(state)[0, 0] == pytest.approx(0.94)
    assert node_requested(state)[0, 0] == 2.0


def test_m15_load_is_a_share_of_allocatable_not_of_capacity() -> None:
    """Capacity 10, allocatable 8, usage 6: 0.75 now and in every window."""
    state = state_of(nodes=[node("a", cpu="8")], measured=samples(nodes={"cpu": {"a": 6.0}}))
    assert node_load(state)[0, 0] == 0.75
    assert state.nodes.history[0, 0].tolist() == [0.75] * WINDOWS


def test_m16_an_amplified_allocatable_is_no_base_of_load_where_the_raw_one_is_published() -> None:
    """Amplified to 16, raw 8, usage 6: load 0.75, the scheduler's allocatable stays 16, and the notes say which base was used."""
    raw = {"node.koordinator.sh/raw-allocatable": '{"cpu":"8","memory":"16Gi"}'}
    state = state_of(
        nodes=[node("a", cpu="16", memory="32Gi", annotations=raw), node("b", cpu="16")],
        measured=samples(nodes={"cpu": {"a": 6.0, "b": 6.0}}),
    )
    assert node_load(state)[:, 0].tolist() == [0.75, 0.375]
    assert state.nodes.capacity[0].tolist() == [8.0, 16 * GI]
    assert state.nodes.allocatable[0, :2].tolist() == [16.0, 32 * GI]
    assert any("raw allocatable" in note for note in state.coverage.notes)


@pytest.mark.parametrize("text", ["not json", "[]", '{"cpu": 3}', '{"cpu": "lots"}', '{"cpu": "0"}'])
def test_an_unreadable_raw_allocatable_is_as_good_as_none(text: str) -> None:
    """The plain allocatable is the base then."""
    state = state_of(nodes=[node("a", annotations={"node.koordinator.sh/raw-allocatable": text})], measured=samples())
    assert state.nodes.capacity[0, 0] == 8.0


def test_m19_requests_of_finished_pods_count_nowhere() -> None:
    """A Succeeded pod with 4 GPUs is listed, and its node has none requested."""
    gpus = container(cpu="1", resources={"requests": {"nvidia.com/gpu": "4", "cpu": "1"}})
    state = state_of(nodes=[node("a", extended={"nvidia.com/gpu": "8"})], pods=[pod("done", on="a", phase="Succeeded", containers=[gpus])])
    assert state.resources == ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu")
    assert state.pods.request[0].tolist() == [1.0, 0.0, 0.0, 1.0, 4.0]
    assert node_requested(state)[0].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0]


def test_m20_a_resize_in_place_follows_the_schedulers_rule() -> None:
    """Spec 2, status 1, deferred: 2. Infeasible: 1, while a replacement would ask for 2."""

    def resized(name: str, reason: str) -> dict[str, object]:
        return pod(
            name,
            on="a",
            containers=[container(cpu="2")],
            status={
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                "containerStatuses": [
                    {
                        "name": "main",
                        "allocatedResources": {"cpu": "1", "memory": "1Gi"},
                        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                    }
                ],
            },
        )

    state = state_of(nodes=[node("a")], pods=[resized("deferred", "Deferred"), resized("infeasible", "Infeasible")])
    assert state.pods.request[:, 0].tolist() == [2.0, 1.0]
    assert state.pods.incoming_request[:, 0].tolist() == [2.0, 2.0]


def test_v4_a_pod_without_a_sample_is_unknown_not_idle() -> None:
    """NaN measured, NaN used, and counted as a gap."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a")], measured=samples(nodes={"cpu": {"a": 4.0}}))
    assert np.isnan(state.pods.measured[0]).all()
    assert np.isnan(state.pods.usage[0]).all()
    assert not state.pods.estimated.any()
    assert state.coverage.pods["cpu"] == Share(0, 1)
    assert node_usage(state)[0, 0] == 4.0


def test_v5_pods_of_one_name_in_two_namespaces_have_their_own_usage() -> None:
    """a/web-0 and b/web-0 with 0.1 and 3 cores."""
    state = state_of(
        nodes=[node("n")],
        pods=[pod("web-0", on="n", namespace="a"), pod("web-0", on="n", namespace="b")],
        measured=samples(pods={"cpu": {("a", "web-0", "n"): 0.1, ("b", "web-0", "n"): 3.0}}),
    )
    assert (_cpu(state, "web-0", "a"), _cpu(state, "web-0", "b")) == (0.1, 3.0)


def test_what_a_pod_used_where_it_no_longer_is_has_departed() -> None:
    """A StatefulSet's pod that moved, a pod that is gone, a pod that has finished: taken off the node, given to nobody."""
    state = state_of(
        nodes=[node("old"), node("new")],
        pods=[pod("db-0", on="new"), pod("done", on="old", phase="Succeeded")],
        measured=samples(
            nodes={"cpu": {"old": 5.0, "new": 2.0}},
            pods={
                "cpu": {
                    ("default", "db-0", "old"): 2.0,
                    ("default", "db-0", "new"): 1.0,
                    ("default", "gone", "old"): 0.5,
                    ("default", "done", "old"): 0.25,
                }
            },
        ),
    )
    assert state.nodes.departed[:, 0].tolist() == [0.0, 2.75]
    assert state.nodes.names == ("new", "old")
    assert _cpu(state, "db-0") == 1.0
    assert node_residual(state)[:, 0].tolist() == [1.0, 2.25]


def test_a_series_without_a_node_goes_to_the_pod_that_exists() -> None:
    """One that says its node goes before it; one of no pod at all is dropped and counted."""
    state = state_of(
        nodes=[node("a")],
        pods=[pod("x", on="a"), pod("y", on="a")],
        measured=samples(
            pods={
                "cpu": {
                    ("default", "x", ""): 1.0,
                    ("default", "y", "a"): 3.0,
                    ("default", "y", ""): 2.0,
                    ("default", "z", ""): 9.0,
                    ("default", "x", "elsewhere"): 9.0,
                }
            }
        ),
    )
    assert (_cpu(state, "x"), _cpu(state, "y")) == (1.0, 3.0)
    assert state.coverage.dropped == {"foreign": 2}
    assert not state.nodes.departed.any()


def test_a_sample_that_is_no_number_is_nobodys_usage() -> None:
    """NaN stays NaN for a pod that is there, and takes nothing off the node for one that is not."""
    state = state_of(
        nodes=[node("a")],
        pods=[pod("x", on="a")],
        measured=samples(nodes={"cpu": {"a": 4.0}}, pods={"cpu": {("default", "x", "a"): math.nan, ("default", "gone", "a"): math.nan}}),
    )
    assert np.isnan(_cpu(state, "x"))
    assert node_usage(state)[0, 0] == 4.0


def test_t7_pods_bound_a_moment_ago_weigh_what_their_siblings_use() -> None:
    """Ten pods without samples on a cool node: its load includes ten times their siblings' mean."""
    young = [pod(f"web-{i}", on="cool", age_s=20, owner=owner("Foo", "web")) for i in range(10)]
    old = [pod(f"old-{i}", on="busy", owner=owner("Foo", "web")) for i in range(2)]
    state = state_of(
        nodes=[node("busy", cpu="16"), node("cool", cpu="16")],
        pods=[*young, *old],
        measured=samples(
            nodes={"cpu": {"busy": 4.0, "cool": 1.0}}, pods={"cpu": {("default", "old-0", "busy"): 0.5, ("default", "old-1", "busy"): 1.5}}
        ),
    )
    assert node_usage(state)[:, 0].tolist() == [4.0, 11.0]
    assert _cpu(state, "web-3") == 1.0
    assert state.pods.estimated[row_of(state, "web-3"), 0]
    assert not state.pods.estimated[row_of(state, "old-0"), 0]
    assert np.isnan(state.pods.measured[row_of(state, "web-3"), 0])


def test_t7_without_siblings_a_young_pod_weighs_its_request() -> None:
    """And 100 millicores, as the scheduler assumes, when it requests nothing."""
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("asks", on="a", age_s=5, containers=[container(cpu="2")]),
            pod("silent", on="a", age_s=5, containers=[container(cpu=None)]),
        ],
        measured=samples(nodes={"cpu": {"a": 1.0}}),
    )
    assert (_cpu(state, "asks"), _cpu(state, "silent")) == (2.0, 0.1)
    assert node_usage(state)[0, 0] == pytest.approx(3.1)


def test_a_young_pods_rising_mean_is_never_below_its_estimate() -> None:
    """The larger of the sample and the estimate counts; a sample that is larger is no estimate."""
    measured = samples(pods={"cpu": {("default", "low", "a"): 0.5, ("default", "high", "a"): 3.0}})
    state = state_of(nodes=[node("a")], pods=[pod("low", on="a", age_s=60), pod("high", on="a", age_s=60)], measured=measured)
    assert (_cpu(state, "low"), _cpu(state, "high")) == (1.0, 3.0)
    assert [bool(state.pods.estimated[row_of(state, name), 0]) for name in ("low", "high")] == [True, False]


@pytest.mark.parametrize(("age_s", "known"), [(250.0, True), (400.0, True), (500.0, False)])
def test_a_missing_sample_is_bridged_only_for_as_long_as_metrics_may_be_late(age_s: float, known: bool) -> None:
    """Window 300 s, lateness 180 s: after 480 s a pod without a sample is unknown."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", age_s=age_s)], measured=samples(nodes={"cpu": {"a": 1.0}}))
    assert bool(np.isnan(_cpu(state, "x"))) is not known


def test_a_settled_pods_sample_is_taken_as_it_is() -> None:
    """No estimate above it, whatever it requests."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", age_s=400)], measured=samples(pods={"cpu": {("default", "x", "a"): 0.2}}))
    assert _cpu(state, "x") == 0.2
    assert not state.pods.estimated[0, 0]


def test_a_pod_that_nothing_asks_for_its_signal_has_no_estimate() -> None:
    """A signal without a request (network) stays unknown for a young pod without siblings."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", age_s=5)], measured=samples(signals=[Signal("network", "bytes/s")]))
    assert np.isnan(state.pods.usage[0, 0])
    assert np.isnan(state.nodes.capacity[0, 0])


def test_a_pending_pod_uses_nothing_anywhere() -> None:
    """Not bound: no estimate, no gap."""
    state = state_of(nodes=[node("a")], pods=[pod("x", age_s=5)], measured=samples(nodes={"cpu": {"a": 1.0}}))
    assert state.pods.node.tolist() == [-1]
    assert np.isnan(state.pods.usage[0]).all()
    assert state.coverage.pods["cpu"] == Share(0, 0)


def test_a_node_without_a_trusted_newest_sample_is_unknown_and_says_why() -> None:
    """The source's reason; else the reason of the failed signal; else that no sample names it."""
    state = state_of(
        nodes=[node("a"), node("b")],
        measured=samples(
            nodes={"cpu": {"a": [1.0, 2.0, math.nan]}},
            unknown={"cpu": {"a": "its newest sample is 9 minutes old"}},
            failed={"memory": "HTTP 503"},
        ),
    )
    assert np.isnan(state.nodes.usage[0]).all()
    assert state.nodes.history[0, 0, :2].tolist() == [0.125, 0.25]
    assert state.nodes.unknown == {
        (0, 0): "its newest sample is 9 minutes old",
        (1, 0): "no sample of cpu names this node",
        (0, 1): "HTTP 503",
        (1, 1): "HTTP 503",
    }
    assert state.coverage.failed == {"memory": "HTTP 503"}


def test_a_node_that_is_not_ready_is_no_gap() -> None:
    """Ready Unknown counts as not ready; coverage is asked of the ready ones."""
    state = state_of(nodes=[node("a"), node("b", ready="Unknown")], measured=samples(nodes={"cpu": {"a": 1.0}}))
    assert state.nodes.ready.tolist() == [True, False]
    assert state.coverage.nodes["cpu"] == Share(1, 1)
    assert state.coverage.oldest_sample_s["cpu"] == 30.0
    assert math.isnan(state.coverage.oldest_sample_s["memory"])


def test_a_capacity_of_its_own_goes_before_the_nodes_status() -> None:
    """From the policy's query or value; a node that it leaves out has an unknown load and a sentence."""
    state = state_of(
        nodes=[node("a"), node("b")],
        measured=samples(nodes={"cpu": {"a": 2.0, "b": 2.0}}, capacity={"cpu": {"a": 4.0}}, signals=[CPU]),
    )
    assert node_load(state)[0, 0] == 0.5
    assert np.isnan(node_load(state)[1, 0])
    assert "capacity is unknown" in state.nodes.unknown[1, 0]


def test_fewer_windows_than_asked_for_fill_the_newest_ones() -> None:
    """What is missing at the start is unknown."""
    measured = samples(nodes={"cpu": {"a": 4.0}}, signals=[CPU, MEMORY])
    short = measured.signals[0].node_usage
    assert isinstance(short, dict)
    short["a"] = np.array([4.0, 8.0])
    state = state_of(nodes=[node("a")], measured=measured)
    assert np.isnan(state.nodes.history[0, 0, 0])
    assert state.nodes.history[0, 0, 1:].tolist() == [0.5, 1.0]
    assert state.nodes.usage[0, 0] == 8.0


def test_a_pod_on_a_node_that_is_not_listed_counts_nowhere_and_is_told() -> None:
    """It is not pending either: its phase says Running."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="gone")], measured=samples())
    assert state.pods.node.tolist() == [-1]
    assert any("1 pods are on nodes that are not listed" in note for note in state.coverage.notes)


def test_a_node_whose_allocatable_cannot_be_read_takes_nothing() -> None:
    """Zero for the scheduler, unknown for load, and told."""
    state = state_of(nodes=[node("a", cpu="many")], measured=samples(nodes={"cpu": {"a": 1.0}}))
    assert not state.nodes.allocatable.any()
    assert np.isnan(node_load(state)[0, 0])
    assert any("cannot be read" in note for note in state.coverage.notes)


def test_a_pod_whose_request_cannot_be_read_is_left_out_and_told() -> None:
    """One odd pod blinds nobody; its usage stays inside the node's residual."""
    state = state_of(
        nodes=[node("a")],
        pods=[pod("odd", on="a", containers=[container(cpu="x")]), pod("fine", on="a")],
        measured=samples(nodes={"cpu": {"a": 4.0}}, pods={"cpu": {("default", "fine", "a"): 1.0}}),
    )
    assert state.pods.names == ("fine",)
    assert node_usage(state)[0, 0] == 4.0
    assert any("default/odd" in note for note in state.coverage.notes)


def test_a_usage_in_millicores_is_unknown_and_not_a_load_of_thousands() -> None:
    """No node is used ten times over: the sample is dropped, and the sentence asks for the unit. The rest stays as it is."""
    state = state_of(
        nodes=[node("a", cpu="8"), node("b", cpu="8")],
        measured=samples(nodes={"cpu": {"a": 6000.0, "b": 6.0}, "memory": {"a": GI, "b": GI}}),
    )
    assert np.isnan(node_load(state)[:, 0]).tolist() == [True, False]
    assert np.isnan(state.nodes.history[0, 0]).all()
    assert not np.isnan(node_load(state)[:, 1]).any()
    assert state.nodes.unknown[0, 0] == (
        "its newest sample is 6000 cores, 750 times the 8 cores that the node has: is it measured in another unit?"
    )
    assert state.coverage.dropped == {"absurd": WINDOWS}


def test_a_load_of_a_few_times_what_is_allocatable_is_believed() -> None:
    """What is allocatable may be a small part of what there is."""
    state = state_of(nodes=[node("a", cpu="2")], measured=samples(nodes={"cpu": {"a": 19.0}}))
    assert node_load(state)[0, 0] == 9.5


def test_pods_in_millicores_are_unknown_and_what_has_left_took_nothing_along() -> None:
    """Neither a pod that is there nor one that is gone can have used more than its node has."""
    state = state_of(
        nodes=[node("a", cpu="8")],
        pods=[pod("x", on="a"), pod("y", on="a")],
        measured=samples(
            nodes={"cpu": {"a": 6.0}},
            pods={"cpu": {("default", "x", "a"): 2000.0, ("default", "y", "a"): 1.0, ("default", "gone", "a"): 3000.0}},
        ),
    )
    assert np.isnan(state.pods.measured[row_of(state, "x"), 0])
    assert state.pods.measured[row_of(state, "y"), 0] == 1.0
    assert state.nodes.departed[0, 0] == 0.0
    assert state.coverage.dropped == {"absurd": 2}


def test_a_signal_that_is_of_no_resource_may_be_any_multiple_of_its_capacity() -> None:
    """Of an operator's own signal nobody knows what is possible but the operator, who has a maximum for it."""
    own = Signal("queue", "jobs", None)
    measured = samples(signals=(own,), nodes={"queue": {"a": 500.0}}, capacity={"queue": {"a": 4.0}})
    assert node_load(state_of(nodes=[node("a")], measured=measured))[0, 0] == 125.0
