"""Policy files for tests: a header, and the spec that a test is about."""

from __future__ import annotations

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import RebalancePolicy

HEADER = "apiVersion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\n"


def policy_text(spec: str) -> str:
    """A whole policy whose spec begins in line 4, indented by two."""
    return HEADER + "spec:\n" + "".join(f"  {line}\n" for line in spec.strip("\n").splitlines())


def policy(spec: str) -> RebalancePolicy:
    return parse_policy(policy_text(spec), origin="policy.yaml")


def refusal(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, origin="policy.yaml")
    return caught.value


def told(text: str) -> str:
    """What the loader says about a text; empty when it is a policy."""
    try:
        parse_policy(text, origin="policy.yaml")
    except PolicyError as error:
        return str(error)
    return ""
