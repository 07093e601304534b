"""Resizes in place, as they are seen by whoever plans: what a pending one holds on its node, and what its pod would ask for elsewhere."""

from __future__ import annotations

from rebalancer.state.ledger import node_requested
from tests.collect_cluster.objects import Json, container, node, pod, state_of
from tests.plan_scheduling.asking import allowed, why_not


def resized(name: str, *, on: str, wanted: str, granted: str, reason: str) -> Json:
    """A pod whose container asks for ``wanted`` and was granted ``granted`` so far."""
    held = {"cpu": granted, "memory": "1Gi"}
    status = {
        "conditions": [
            {"type": "PodResizePending", "status": "True", "reason": reason},
            {"type": "Ready", "status": "True"},
        ],
        "containerStatuses": [{"name": "main", "allocatedResources": held, "resources": {"requests": held}}],
    }
    return pod(name, on=on, containers=[container(cpu=wanted)], status=status)


def test_v21_a_deferred_resize_keeps_every_pod_with_a_request_out() -> None:
    """4000m with A (1000m, resized to 3000m) and B (2000m): the node counts 5000m; nothing that asks for CPU fits until B goes."""
    a = resized("a", on="n", wanted="3", granted="1", reason="Deferred")
    b = pod("b", on="n", containers=[container(cpu="2")])
    small, none = pod("small", containers=[container(cpu="10m")]), pod("none", containers=[container(cpu=None)])
    full = state_of(nodes=[node("n", cpu="4")], pods=[a, b, small, none])
    assert node_requested(full)[0, 0] == 5.0
    assert allowed(full, "small") == set()
    assert "cpu" in why_not(full, "small", "n")
    assert allowed(full, "none") == {"n"}
    without_b = state_of(nodes=[node("n", cpu="4")], pods=[a, small])
    assert node_requested(without_b)[0, 0] == 3.0
    assert allowed(without_b, "small") == {"n"}


def test_v22_a_resize_beyond_the_node_counts_what_runs_and_its_replacement_fits_nowhere() -> None:
    """Accepted by older servers and infeasible: 1000m on its node, while a new pod of that spec would ask for 4500m of 4000m."""
    a = resized("a", on="n", wanted="4500m", granted="1", reason="Infeasible")
    state = state_of(nodes=[node("n", cpu="4"), node("other", cpu="4"), node("large", cpu="8")], pods=[a])
    assert node_requested(state)[state.node_index["n"], 0] == 1.0
    assert state.pods.incoming_request[0, 0] == 4.5
    assert allowed(state, "a") == {"large"}
    assert "cpu" in why_not(state, "a", "other")
