"""What the fence lets the account write on nodes is what the code writes there, and nothing beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rebalancer.act.names import SOFT_TAINTS
from tests.deploy.charts import kustomized, objects, of_kind

LISTED = re.compile(r"t\.key in \[([^\]]*)\]")
ABOUT_TAINTS = 3
"""Before and after the change, and the effect."""


def policy(source: str) -> dict[str, Any]:
    documents = objects("mode=evict") if source == "chart" else kustomized("evict")
    (found,) = of_kind(documents, "ValidatingAdmissionPolicy")
    return found


@pytest.mark.parametrize("source", ["chart", "overlay"])
def test_the_fence_lists_exactly_the_taints_that_are_written(source: str) -> None:
    """A grade that the fence does not know could never be put; a key that nobody writes is a power for nothing."""
    expressions = " ".join(rule["expression"] for rule in policy(source)["spec"]["validations"])
    lists = LISTED.findall(expressions)
    assert len(lists) == ABOUT_TAINTS
    assert {tuple(re.findall(r"'([^']+)'", each)) for each in lists} == {tuple(taint.key for taint in SOFT_TAINTS)}
    assert "t.effect == 'PreferNoSchedule'" in expressions


def test_the_overlay_and_the_chart_have_the_same_fence() -> None:
    """Word for word, but for the name of the account."""
    chart, overlay = (policy(source)["spec"] for source in ("chart", "overlay"))
    texts = [[(" ".join(rule["expression"].split()), rule["message"]) for rule in spec["validations"]] for spec in (chart, overlay)]
    assert texts[0] == texts[1]
