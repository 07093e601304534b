"""The preflight asks for the rights of leader election, when there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rebalancer.runtime.checking import check
from rebalancer.runtime.session import open_session
from tests.support.embedded import Stage, bare_environment, stage


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as own:
        yield own


def told(scene: Stage, environ: Mapping[str, str]) -> tuple[list[str], int]:
    session = open_session(
        settings_file=None, flags={"kubeconfig": scene.env["KUBECONFIG"]}, environ=bare_environment({**scene.env, **environ})
    )
    report, status = check(session)
    return [found.sentence for found in report.checks if found.name == "rights" and "lea" in found.sentence], status


ON = {"REBALANCER_LEADER_ELECTION__ENABLED": "true", "REBALANCER_LEADER_ELECTION__LEASE_NAME": "blue"}


def test_the_rights_of_leader_election_are_needed_in_every_mode(scene: Stage) -> None:
    """Dry run too: without the Lease no replica would ever look."""
    scene.cluster.api.rights.deny("update", "leases")
    sentences, status = told(scene, ON)
    assert sentences == ["leader election may not update leases.coordination.k8s.io blue in namespace default"]
    assert status == 4


def test_rights_that_are_there_are_told(scene: Stage) -> None:
    """One line."""
    assert told(scene, ON) == (["may do what leader election needs"], 0)


def test_without_leader_election_nobody_asks_for_the_lease(scene: Stage) -> None:
    """A laptop needs no right that it does not use."""
    scene.cluster.api.rights.deny("update", "leases")
    assert told(scene, {}) == ([], 0)
