"""A gang over a whole cycle: read from a served cluster, planned, evicted together, and followed to its new places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.policy.model import Budgets, Mode, Victims
from rebalancer.simulate.world import updated
from tests.runtime.village import HOT, Village, cycle, evicted, orders, refused, serving

GANG = ("web-1", "web-2", "web-hot")
JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "llm"}
SAFE = {"rebalancer.dev/checkpointed": "true"}
ROOMY = Budgets(total=20, per_node=10)
SPEC = {"budgets": ROOMY, "victims": Victims(min_age=0)}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Village]:
    """The pods of Deployment web are one JobSet, the other pods of the hot node are protected."""
    with serving(tmp_path) as village:
        mark(village, labels=JOB_SET)
        for name in ("api-hot", "cache-hot"):
            found = village.world.get("pods", name, "shop")
            village.world.replace("pods", updated(found, "metadata", {"annotations": {"rebalancer.dev/evict": "false"}}))
        yield village


def mark(village: Village, **metadata: dict[str, str]) -> None:
    for name in GANG:
        found = village.world.get("pods", name, "shop")
        given = {key: {**(found["metadata"].get(key) or {}), **values} for key, values in metadata.items()}
        village.world.replace("pods", updated(found, "metadata", given))


def test_n8_a_checkpointed_gang_is_evicted_together_and_followed(here: Village) -> None:
    """All three in one cycle, each tried before the first goes; their replacements come elsewhere, and the node is cured."""
    mark(here, annotations=SAFE)
    controller = here.controller()
    result = cycle(controller, orders(**SPEC))
    plan = result.verdict.decision.plan
    assert {move.gang for move in plan.moves} == {"job-set shop/llm"}, refused(result, "web-hot")
    assert tuple(sorted(evicted(result))) == GANG
    sent = [write for write in here.writes() if write.endswith("/eviction")]
    assert len(sent) == 6, "three trials and three evictions"
    here.pass_time(5)
    after = cycle(controller, orders(**SPEC))
    assert len(after.verdict.landings) == 3
    assert after.verdict.decision.plan.moves == ()
    assert HOT not in here.where("web").values()


def test_n8_a_gang_nobody_may_restart_stays_whole(here: Village) -> None:
    """Nothing is evicted, and the refusal says whose word is missing."""
    result = cycle(here.controller(), orders(**SPEC))
    assert evicted(result) == []
    assert refused(result, "web-hot").startswith("pod-class: ")
    assert not [write for write in here.writes() if write.endswith("/eviction")]


def test_a_dry_run_shows_the_same_moves_and_evicts_nobody(here: Village) -> None:
    """Dry run is another actuator, never another decision."""
    mark(here, annotations=SAFE)
    result = cycle(here.controller(), orders(Mode.DRY_RUN, **SPEC))
    assert tuple(sorted(move.pod.name for move in result.verdict.decision.plan.moves)) == GANG
    assert not [write for write in here.writes() if write.endswith("/eviction")]
