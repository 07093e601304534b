"""Retries of reads, and what they are called in the words of RBAC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesThrottled, KubernetesUnreachable
from rebalancer.kube.failures import NotAnApiServer, NotSent, TlsRefused
from rebalancer.kube.operations import Operation, describe
from rebalancer.kube.retries import Backoff, is_passing, retry
from rebalancer.kube.status import Status, read_status, retry_after_s


@given(failures=st.integers(min_value=1, max_value=10_000), chance=st.floats(min_value=0, max_value=1, exclude_max=True))
def test_ki3_waits_grow_to_a_ceiling_and_keep_their_jitter(failures: int, chance: float) -> None:
    """Never above the ceiling, never below half of the full wait, never shorter than after one failure less."""
    backoff = Backoff(first_s=0.5, factor=2.0, ceiling_s=10.0)
    wait = backoff.delay(failures, chance=chance)
    full = backoff.delay(failures, chance=0.0)
    assert full / 2 <= wait <= full <= 10.0
    assert backoff.delay(failures + 1, chance=chance) >= wait


def test_ki3_the_gaps_grow_while_it_fails() -> None:
    """The full waits of four failures: 0.5, 1, 2, 4 seconds."""
    assert [Backoff(first_s=0.5, ceiling_s=10.0).delay(n, chance=0.0) for n in (1, 2, 3, 4, 6)] == [0.5, 1.0, 2.0, 4.0, 10.0]


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (KubernetesUnreachable("x"), True),
        (NotSent("x"), True),
        (KubernetesThrottled("x"), True),
        (KubernetesError("x", status=500), True),
        (KubernetesError("x", status=503), True),
        (KubernetesError("x", status=501), False),
        (KubernetesError("x", status=422), False),
        (KubernetesError("x"), False),
        (KubernetesForbidden("x", status=403), False),
        (TlsRefused("x"), False),
        (NotAnApiServer("x"), False),
    ],
)
def test_only_what_passes_is_tried_again(error: KubernetesError, passing: bool) -> None:
    """Wrong rights, wrong certificates and wrong addresses stay wrong."""
    calls = []

    def call() -> None:
        calls.append(1)
        raise error

    assert is_passing(error) is passing
    with pytest.raises(type(error)):
        retry(call, deadline=Deadline.after(20.0), backoff=Backoff(first_s=0.001, ceiling_s=0.001, attempts=3))
    assert len(calls) == (3 if passing else 1)


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/api/v1/pods", Operation("list", "", "pods")),
        ("GET", "/api/v1/namespaces/shop/pods", Operation("list", "", "pods", "shop")),
        ("GET", "/api/v1/namespaces/shop/pods/web", Operation("get", "", "pods", "shop", "web")),
        ("POST", "/api/v1/namespaces/shop/pods/web/eviction", Operation("create", "", "pods/eviction", "shop", "web")),
        ("GET", "/api/v1/namespaces/kube-system", Operation("get", "", "namespaces", "", "kube-system")),
        ("GET", "/api/v1/namespaces", Operation("list", "", "namespaces")),
        ("PATCH", "/api/v1/nodes/n", Operation("patch", "", "nodes", "", "n")),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/b", Operation("update", "apps", "deployments", "a", "b")),
        ("GET", "/apis/metrics.k8s.io/v1beta1/nodes", Operation("list", "metrics.k8s.io", "nodes")),
        ("GET", "/version", Operation("get", "", "/version")),
    ],
)
def test_a_request_in_the_words_of_rbac(method: str, path: str, operation: Operation) -> None:
    """Verb, group, resource with subresource, namespace, name."""
    assert describe(method, path) == operation


def test_rules_and_questions() -> None:
    """They can be pasted into a role and into a shell."""
    deployments = describe("PATCH", "/apis/apps/v1/namespaces/a/deployments/b")
    assert deployments.rule == '{apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"]}'
    assert deployments.question == "kubectl auth can-i patch deployments.apps -n a"
    version = describe("GET", "/version")
    assert version.rule == '{nonResourceURLs: ["/version"], verbs: ["get"]}'
    assert version.question == "kubectl auth can-i get /version"


@pytest.mark.parametrize("body", [b"", b"<html>", b'"text"', b"[1]", b'{"message": 3}', b"\xff\xfe", b'{"details": []}'])
def test_what_is_no_status_reads_as_an_empty_one(body: bytes) -> None:
    """The explanation is missing, not the answer."""
    assert read_status(body) == Status()


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10.0), ("0", 0.0), ("", None), ("-1", None), ("nan", None), ("inf", None), ("Thu, 05 Nov 2026", None)]
)
def test_retry_after_is_a_number_of_seconds_or_unknown(text: str, seconds: float | None) -> None:
    """Never zero by accident."""
    assert retry_after_s({"retry-after": text}) == seconds
    assert retry_after_s({}) is None
