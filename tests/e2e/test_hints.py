"""Placement hints on the real API server and scheduler: what a hint is worth, and what it costs. The tests drive the keeper themselves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rebalancer.steer.hinting import Ungated
from tests.e2e.api import Json, until
from tests.e2e.ground import Ground, ground
from tests.e2e.hinting import ENABLED, Hinting, admission, announced, hinting, policy_in_force, traces
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import deployment, pod_spec
from tests.e2e.plane import ControlPlane
from tests.e2e.table import Row

OWN = "e2e-hints-own"
SHOP = "e2e-hints"
OTHER = "e2e-unhinted"
NODES = 60
MOVED = 30
MEASURED = 200
WAVE = 20
"""As many as the default budget lets go in a plan."""
BURST = 200


@dataclass(frozen=True)
class Town:
    ground: Ground
    hints: Hinting

    def web(self, app: str = "web") -> list[Json]:
        return sorted(self.ground.pods(SHOP, app=app), key=lambda pod: pod["metadata"]["name"])


@pytest.fixture(scope="module")
def town(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Sixty nodes, a Deployment whose namespace asks for hints, and a keeper of hints that leads."""
    nodes = [HollowNode(f"node-{number}") for number in range(NODES)]
    with ground(plane, tmp_path_factory.mktemp("hints"), nodes, monitored=False, start_s=0.2) as own:
        own.namespace(OWN)
        own.namespace(SHOP, labels=ENABLED)
        own.namespace(OTHER)
        own.apply(deployment("web", SHOP, pod_spec(cpu="100m"), replicas=MOVED))
        own.settled(SHOP, MOVED)
        with admission(own, namespace=OWN):
            policy_in_force(own, own.pods(SHOP)[0], namespace=OWN)
            with hinting(own, namespace=OWN) as hints:
                yield Town(own, hints)


def percentile(seconds: list[float], share: float) -> float:
    ranked = sorted(seconds)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def test_replacements_land_on_the_hinted_nodes(town: Town, scenario: Row) -> None:
    """Hints: 30 of 30 gated replacements land on the hinted node, taken round-robin from 60."""
    own, hints = town.ground, town.hints
    before = {pod["metadata"]["uid"] for pod in town.web()}
    board, landed = hints.keeper.board, 0
    for number, pod in enumerate(town.web()):
        node = f"node-{(7 * number + 3) % NODES}"
        at, seen = time.time(), {each["metadata"]["uid"] for each in town.web()}
        move = hints.move(pod, (node,), at=at)
        hints.announce([move])
        board.expect(move)
        own.api.evict(pod["metadata"]["name"], SHOP)
        hints.keeper.carried_out()
        arrived = until(
            lambda seen=seen: [p for p in town.web() if p["metadata"]["uid"] not in seen and p["spec"].get("nodeName")],
            "the replacement is bound",
            seconds=20,
            step=0.02,
        )
        landed += arrived[0]["spec"]["nodeName"] == node
    after = own.settled(SHOP, MOVED, app="web")
    scenario.shows(f"{landed} of {MOVED} on the hinted node; {hints.notes.results[Ungated.HINTED]} hinted")
    assert landed == MOVED
    assert not {pod["metadata"]["uid"] for pod in after} & before
    assert hints.notes.results[Ungated.HINTED] == MOVED
    until(lambda: not announced(own, namespace=OWN), "the announcement is withdrawn", seconds=10)
    assert traces(own) == []


def test_what_the_gate_costs(town: Town, scenario: Row) -> None:
    """Hints: 200 replacements, 20 at a time, wait for less than a second at the gate, and land as hinted."""
    own, hints, landed = town.ground, town.hints, 0
    hints.notes.seconds.clear()
    for wave in range(MEASURED // WAVE):
        leaving = town.web()[:WAVE]
        gone = {pod["metadata"]["uid"] for pod in leaving}
        kept = {pod["metadata"]["uid"] for pod in town.web()} - gone
        nodes = [f"node-{(wave * WAVE + number) % NODES}" for number in range(WAVE)]
        moves = [hints.move(pod, (node,), at=time.time()) for pod, node in zip(leaving, nodes, strict=True)]
        hints.announce(moves)
        for pod, move in zip(leaving, moves, strict=True):
            hints.keeper.expect(move)
            own.api.evict(pod["metadata"]["name"], SHOP)
        hints.keeper.carried_out()
        arrived = [pod for pod in own.settled(SHOP, MOVED, app="web") if pod["metadata"]["uid"] not in kept]
        landed += (Counter(nodes) & Counter(pod["spec"]["nodeName"] for pod in arrived)).total()
    seconds = hints.notes.seconds
    scenario.shows(f"{len(seconds)} gated: p50 {percentile(seconds, 0.5):.3f} s, p99 {percentile(seconds, 0.99):.3f} s; {landed} as hinted")
    assert len(seconds) == MEASURED
    assert percentile(seconds, 0.99) < 1.0
    assert landed >= 0.99 * MEASURED


def test_pods_that_nobody_awaits_are_let_go_at_once(town: Town, scenario: Row) -> None:
    """Hints: of an announced workload that is scaled up by 200 at once, every pod is let go before it is late."""
    own, hints = town.ground, town.hints
    hints.announce([hints.move(town.web()[0], ("node-0",), at=time.time())])
    hints.notes.seconds.clear()
    hints.notes.results.clear()
    own.api.scale("deployments", "web", SHOP, MOVED + BURST)
    own.settled(SHOP, MOVED + BURST, app="web")
    hints.keeper.carried_out()
    seconds = hints.notes.seconds
    scenario.shows(f"{len(seconds)} gated: p50 {percentile(seconds, 0.5):.3f} s, p99 {percentile(seconds, 0.99):.3f} s at the gate")
    assert dict(hints.notes.results) == {Ungated.NOT_AWAITED: BURST}
    assert traces(own) == []
