"""Effective requests: the worked examples of kube-scheduler, and what must hold for any pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.state.requests import (
    ContainerRequest,
    PodRequest,
    amount,
    amounts,
    in_units,
    incoming_request,
    request,
    scored_incoming,
    scored_request,
)

MI = 1024 * 1024
DEFAULT_MEMORY = 209_715_200

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"]), st.integers(0, 10_000), max_size=4
)
CONTAINERS = st.builds(ContainerRequest, request=AMOUNTS, sidecar=st.booleans(), allocated=st.none() | AMOUNTS, actual=st.none() | AMOUNTS)
POD_REQUESTS = st.builds(
    PodRequest,
    containers=st.lists(CONTAINERS, max_size=3).map(tuple),
    init_containers=st.lists(CONTAINERS, max_size=3).map(tuple),
    overhead=AMOUNTS,
    infeasible=st.booleans(),
)


def _container(cpu: str | None = None, memory: str | None = None, *, sidecar: bool = False) -> ContainerRequest:
    texts = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text is not None}
    return ContainerRequest(request=amounts(texts), sidecar=sidecar)


MAIN = (_container("500m", "1024Mi"), _container("250m", "512Mi"))
SIDECAR = _container("100m", "128Mi", sidecar=True)
INIT = _container("1000m", "256Mi")
OVERHEAD = {"cpu": 50, "memory": 64 * MI}


def test_e1_an_init_container_runs_beside_the_sidecars_before_it() -> None:
    """1150m / 1728Mi."""
    pod = PodRequest(containers=MAIN, init_containers=(SIDECAR, INIT), overhead=OVERHEAD)
    assert request(pod) == {"cpu": 1150, "memory": 1728 * MI}


def test_e2_an_init_container_does_not_see_the_sidecars_after_it() -> None:
    """1050m / 1728Mi."""
    pod = PodRequest(containers=MAIN, init_containers=(INIT, SIDECAR), overhead=OVERHEAD)
    assert request(pod) == {"cpu": 1050, "memory": 1728 * MI}


def test_e3_a_pod_level_request_replaces_the_containers() -> None:
    """2000m / 1536Mi: cpu from the pod, memory from the containers."""
    assert request(PodRequest(containers=MAIN, level={"cpu": 2000})) == {"cpu": 2000, "memory": 1536 * MI}


def test_e4_overhead_comes_on_top_of_a_pod_level_request() -> None:
    """2050m / 1600Mi."""
    assert request(PodRequest(containers=MAIN, level={"cpu": 2000}, overhead=OVERHEAD)) == {"cpu": 2050, "memory": 1600 * MI}


def test_e5_a_resize_counts_at_its_largest_unless_it_is_infeasible() -> None:
    """Spec 3000m, allocated and actual 1000m: 3000m while deferred, 1000m when infeasible; a replacement asks for the spec."""
    container = ContainerRequest(request={"cpu": 3000}, allocated={"cpu": 1000}, actual={"cpu": 1000})
    assert request(PodRequest(containers=(container,))) == {"cpu": 3000}
    assert request(PodRequest(containers=(container,), infeasible=True)) == {"cpu": 1000}
    assert incoming_request(PodRequest(containers=(container,), infeasible=True)) == {"cpu": 3000}


def test_m20_a_deferred_shrink_still_holds_what_runs() -> None:
    """Spec 1000m while 2000m run: the node still gives 2000m, the replacement will ask for 1000m."""
    container = ContainerRequest(request={"cpu": 1000}, allocated={"cpu": 2000}, actual={"cpu": 2000})
    pod = PodRequest(containers=(container,))
    assert (request(pod), incoming_request(pod)) == ({"cpu": 2000}, {"cpu": 1000})


def test_m20_a_pod_level_resize_follows_the_same_rule() -> None:
    """The pod-level spec, allocation and actual value: the largest counts."""
    pod = PodRequest(containers=MAIN, level={"cpu": 2000}, level_allocated={"cpu": 1000}, level_actual={"cpu": 1500})
    assert request(pod)["cpu"] == 2000
    assert incoming_request(pod)["cpu"] == 2000


def test_an_ordinary_init_container_never_follows_its_status() -> None:
    """Only containers and sidecars can be resized."""
    init = ContainerRequest(request={"cpu": 100}, actual={"cpu": 900})
    assert request(PodRequest(containers=(), init_containers=(init,))) == {"cpu": 100}


def test_e6_scoring_gives_each_container_its_own_defaults() -> None:
    """Requested 300m / 0, scored 400m / 400Mi."""
    pod = PodRequest(containers=(_container("300m"), _container()), init_containers=(_container(),))
    assert request(pod) == {"cpu": 300}
    assert scored_request(pod) == {"cpu": 400, "memory": 2 * DEFAULT_MEMORY}


def test_an_explicit_zero_gets_no_default() -> None:
    """0 is a request."""
    assert scored_request(PodRequest(containers=(_container("0", "0"),))) == {"cpu": 0, "memory": 0}


def test_pod_level_requests_leave_defaults_only_to_what_is_missing() -> None:
    """cpu is set for the pod, so the empty container adds nothing to it; memory is missing, so it gets its default."""
    pod = PodRequest(containers=(_container(),), level={"cpu": 2000})
    assert scored_request(pod) == {"cpu": 2000, "memory": DEFAULT_MEMORY}


def test_least_allocated_sees_only_the_containers_of_a_pod_that_comes() -> None:
    """2 cores for the whole pod count once it is on a node; while it is scored, its container's 500m do."""
    pod = PodRequest(containers=(_container("500m"),), level={"cpu": 2000}, overhead={"cpu": 50})
    assert scored_incoming(pod) == {"cpu": 550, "memory": DEFAULT_MEMORY}
    assert scored_request(pod)["cpu"] == 2050


def test_a_replacement_is_scored_by_its_spec_and_not_by_the_resize_of_the_old_pod() -> None:
    """The old pod runs with 2 cores, the spec says 1."""
    pod = PodRequest(containers=(ContainerRequest(request={"cpu": 1000}, allocated={"cpu": 2000}, actual={"cpu": 2000}),))
    assert scored_incoming(pod)["cpu"] == 1000


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("cpu", "100m", 100),
        ("cpu", "16.1", 16100),
        ("cpu", "1n", 1),
        ("cpu", "0.0005", 1),
        ("cpu", "2", 2000),
        ("memory", "100m", 1),
        ("memory", "1Gi", 1 << 30),
        ("nvidia.com/gpu", "8", 8),
    ],
)
def test_amounts_are_rounded_up(name: str, text: str, expected: int) -> None:
    """CPU to whole millicores, everything else to whole units, and never by a binary fraction."""
    assert amount(name, text) == expected


def test_names_that_the_scheduler_ignores_are_left_out() -> None:
    """A name without a domain that is not native counts nowhere."""
    assert amounts({"cpu": "1", "bogus": "3", "hugepages-2Mi": "4Mi", "example.com/x": "2"}) == {
        "cpu": 1000,
        "hugepages-2Mi": 4 * MI,
        "example.com/x": 2,
    }
    assert in_units("cpu", 1500) == 1.5
    assert in_units("memory", 5) == 5.0


@given(pod=POD_REQUESTS)
def test_a_bound_pod_never_takes_less_than_its_spec_unless_infeasible(pod: PodRequest) -> None:
    """`request` covers `incoming_request` for every resource while a resize can still come true."""
    if not pod.infeasible:
        bound, incoming = request(pod), incoming_request(pod)
        assert all(bound[name] >= value for name, value in incoming.items())


@given(pod=POD_REQUESTS)
def test_scoring_never_sees_less_than_the_request(pod: PodRequest) -> None:
    """Defaults only add."""
    bound, scored = request(pod), scored_request(pod)
    assert all(scored[name] >= bound.get(name, 0) for name in ("cpu", "memory"))


@given(text=st.integers(0, 10**7).map(lambda milli: f"{milli / 1000:.3f}"))
def test_three_decimals_of_cpu_are_exact(text: str) -> None:
    """No millicore is added or lost."""
    assert amount("cpu", text) == int(text.replace(".", ""))
