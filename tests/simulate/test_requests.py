"""Effective requests as the simulated scheduler counts them: E1 to E4 and E6."""

from __future__ import annotations

from typing import Any

from rebalancer.simulate.pods import effective_request

MI = 2.0**20


def _container(cpu: str = "", memory: str = "", **rest: Any) -> dict[str, Any]:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "c", "resources": {"requests": requests}, **rest}


CONTAINERS = [_container("500m", "1024Mi"), _container("250m", "512Mi")]
SIDECAR = _container("100m", "128Mi", restartPolicy="Always")
INIT = _container("1000m", "256Mi")
OVERHEAD = {"cpu": "50m", "memory": "64Mi"}


def _request(nonzero: bool = False, **spec: Any) -> tuple[float, float]:
    request = effective_request({"spec": spec}, nonzero=nonzero)
    return request.get("cpu", 0.0), request.get("memory", 0.0) / MI


def test_e1_a_sidecar_before_an_init_container_runs_beside_it() -> None:
    """The peak of the start counts the sidecar."""
    assert _request(containers=CONTAINERS, initContainers=[SIDECAR, INIT], overhead=OVERHEAD) == (1150, 1728)


def test_e2_a_sidecar_after_an_init_container_does_not() -> None:
    """Only sidecars before it add to an init container."""
    assert _request(containers=CONTAINERS, initContainers=[INIT, SIDECAR], overhead=OVERHEAD) == (1050, 1728)


def test_e3_e4_pod_level_requests_replace_the_sum_and_overhead_comes_on_top() -> None:
    """Only the resources that are named at pod level are replaced."""
    own = {"requests": {"cpu": "2"}}
    assert _request(containers=CONTAINERS, resources=own) == (2000, 1536)
    assert _request(containers=CONTAINERS, resources=own, overhead=OVERHEAD) == (2050, 1600)


def test_e6_scores_assume_something_for_containers_that_ask_for_nothing() -> None:
    """Each container by itself; what is asked for stays."""
    spec: dict[str, Any] = {"containers": [_container("300m"), _container()], "initContainers": [_container()]}
    assert _request(**spec) == (300, 0)
    assert _request(nonzero=True, **spec) == (400, 400)
