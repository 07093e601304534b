"""An API server that is not there, says no, is something else, hangs or stumbles: one sentence, status 4, nothing written."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path

import pytest
import yaml

from tests.support.embedded import Ran, Stage

pytestmark = pytest.mark.usefixtures("impatient")

QUICK = {"REBALANCER_KUBERNETES__TIMEOUT": "1s", "REBALANCER_PROMETHEUS__TIMEOUT": "1s", "REBALANCER_CYCLE_TIMEOUT": "10s"}
EVICT = ("run", "--once", "--mode", "evict")
"""What would act, if anything let it."""


@pytest.fixture
def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def kubeconfig(stage: Stage, tmp_path: Path, *, server: str = "", token: str = "") -> Path:
    """The cluster's kubeconfig with another server or token."""
    config = yaml.safe_load(Path(stage.env["KUBECONFIG"]).read_text(encoding="utf-8"))
    if server:
        config["clusters"][0]["cluster"]["server"] = server
    if token:
        config["users"][0]["user"] = {"token": token}
    path = tmp_path / "other-kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def refused(stage: Stage, ran: Ran, status: int, *words: str) -> None:
    """One sentence with these words, that status, nothing on stdout, nothing written."""
    ran.ended(status)
    for word in words:
        assert word in ran.error
    assert ran.out == ""
    assert stage.written == []


@pytest.mark.parametrize("command", [("plan",), EVICT, ("snapshot", "unwritten"), ("cleanup",)])
def test_nothing_listens_there(looked_at: Stage, tmp_path: Path, free_port: int, command: tuple[str, ...]) -> None:
    """The address is named, and where it comes from."""
    server = f"http://127.0.0.1:{free_port}"
    ran = looked_at.run(*command, "--kubeconfig", kubeconfig(looked_at, tmp_path, server=server))
    refused(looked_at, ran, 4, server, "the connection is refused", "Check the server address in the kubeconfig")


def test_a_missing_right_names_the_rule_to_add(looked_at: Stage) -> None:
    """And the command that asks the cluster about it."""
    looked_at.cluster.api.rights.deny("list", "pods")
    rule = (
        'Add the rule {apiGroups: [""], resources: ["pods"], verbs: ["list"]} to the role in use, and ask `kubectl auth can-i list pods`.'
    )
    refused(looked_at, looked_at.run(*EVICT), 4, "forbids to list pods", rule)


def test_a_rejected_token_is_said_without_the_token(looked_at: Stage, tmp_path: Path) -> None:
    """The remedy is to log in again or to choose another context."""
    looked_at.cluster.api.rights.token = "right"
    ran = looked_at.run(*EVICT, "--kubeconfig", kubeconfig(looked_at, tmp_path, token="s3cret-of-old"))
    refused(looked_at, ran, 4, "the credentials are not accepted", "Log in again, or choose the right --context.")
    assert "s3cret-of-old" not in ran.err


def test_an_expired_token_says_when_it_ended(looked_at: Stage, tmp_path: Path) -> None:
    """A token that carries its end is read for that, and not shown."""
    looked_at.cluster.api.rights.token = "right"
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_767_225_600}).encode()).decode().rstrip("=")
    ran = looked_at.run(*EVICT, "--kubeconfig", kubeconfig(looked_at, tmp_path, token=f"e30.{claims}.c2ln"))
    refused(looked_at, ran, 4, "the token expired at 2026-01-01 00:00:00 UTC", "Log in again")
    assert claims not in ran.err


def test_a_wrong_context_lists_the_known_ones(looked_at: Stage) -> None:
    """It is a mistake of settings: status 3."""
    refused(looked_at, looked_at.run("plan", "--context", "prod"), 3, "context prod is not in", "Choose one of the known ones: embedded.")


def test_a_kubeconfig_that_is_not_there(looked_at: Stage, tmp_path: Path) -> None:
    """By flag, by variable, and not given at all: each names the path and what to give."""
    gone = tmp_path / "gone"
    refused(looked_at, looked_at.run("plan", "--kubeconfig", gone), 3, f"the kubeconfig {gone} does not exist", "--kubeconfig")
    refused(looked_at, looked_at.run("plan", env={"KUBECONFIG": str(gone)}), 3, f"there is no {gone}", "set KUBECONFIG")
    ran = looked_at.run("plan", env={"KUBECONFIG": None, "HOME": str(tmp_path)})
    refused(looked_at, ran, 3, f"there is no {tmp_path}/.kube/config", "Give --kubeconfig")


def test_a_page_instead_of_an_api_server(looked_at: Stage) -> None:
    """A proxy's login page is told as what it is, and is not asked again and again."""
    looked_at.cluster.faults.login_page()
    refused(looked_at, looked_at.run(*EVICT), 4, "a page that does not come from a Kubernetes API server", "HTTPS_PROXY")
    assert len(looked_at.cluster.api.requests.all()) == 1


def test_a_server_that_hangs_ends_the_command_within_its_time(looked_at: Stage) -> None:
    """The wait is that of the settings, and the sentence names it."""
    looked_at.cluster.faults.hang(path="/api/v1/pods")
    refused(looked_at, looked_at.run(*EVICT, env=QUICK), 4, "did not finish its answer to list pods within 1 s", "allow longer time-outs")


@pytest.mark.parametrize(
    ("status", "words"), [(500, "answered with status 500"), (503, "answered with status 503"), (429, "too many requests")]
)
def test_a_server_that_keeps_failing(looked_at: Stage, status: int, words: str) -> None:
    """After some tries it is given up with the status that it gave."""
    looked_at.cluster.faults.status(status, path="/api/v1/pods")
    refused(looked_at, looked_at.run(*EVICT), 4, "list pods at http://", words)


def test_a_server_that_stumbles_once_is_no_failure(looked_at: Stage) -> None:
    """A 500, a dropped connection, a truncated page, a 429: tried again, and the plan is whole."""
    faults = looked_at.cluster.faults
    faults.status(500, path="/api/v1/pods", count=1)
    faults.drop(path="/api/v1/nodes", count=1)
    faults.truncate(path="/replicasets", count=1)
    faults.status(429, path="/persistentvolumes", count=1)
    plan = looked_at.run("plan", "-o", "json").ended(0).document
    assert plan["coverage"]["pods"]["of"] == looked_at.cluster.world.count("pods")


def test_a_list_that_expires_halfway_is_read_afresh(looked_at: Stage) -> None:
    """410 for a continue token: the list starts again, and no pod is missing or counted twice."""
    looked_at.cluster.faults.expire(path=r"/api/v1/pods.*continue=", count=1)
    plan = looked_at.run("plan", "-o", "json", env={"REBALANCER_KUBERNETES__PAGE_SIZE": "50"}).ended(0).document
    assert plan["coverage"]["pods"]["of"] == looked_at.cluster.world.count("pods")
    assert len(plan["moves"]) == 4


def test_a_list_that_always_expires_is_given_up(looked_at: Stage) -> None:
    """No endless loop, no half of a cluster."""
    looked_at.cluster.faults.expire(path=r"/api/v1/pods.*continue=")
    ran = looked_at.run(*EVICT, env={"REBALANCER_KUBERNETES__PAGE_SIZE": "50"})
    refused(looked_at, ran, 4, "the list of pods", "expired 4 times before its last page was read", "kubernetes.page_size")
