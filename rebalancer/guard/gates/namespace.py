"""The operator says in which namespaces pods may move; an exclusion wins over an inclusion."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "namespace"


def _matching(patterns: tuple[str, ...], namespace: str) -> str | None:
    """The first pattern that the namespace matches; a trailing ``*`` matches any ending."""
    for pattern in patterns:
        if namespace == pattern or (pattern.endswith("*") and namespace.startswith(pattern[:-1])):
            return pattern
    return None


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    names = scene.spec.victims.namespaces
    namespace = scene.state.pods.namespaces[candidate.pod]
    excluded_by = _matching(names.exclude, namespace)
    if excluded_by is not None:
        return Refusal(NAME, f"namespace {namespace} is excluded by {excluded_by} (policy victims.namespaces.exclude)", retryable=False)
    if names.include and _matching(names.include, namespace) is None:
        listed = ", ".join(names.include)
        return Refusal(NAME, f"namespace {namespace} is not among {listed} (policy victims.namespaces.include)", retryable=False)
    return None


GATE = Gate(
    name=NAME,
    order=100,
    describe=(
        "Pods in namespaces that `victims.namespaces.exclude` names, or that `victims.namespaces.include` does not name "
        "when it is not empty."
    ),
    check=check,
)
