"""Tokens end. A long-lived process takes the new one from where it had the old one, without being started anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesForbidden
from rebalancer.kube.client import KubeClient
from tests.support.scripted_api import Reply, ScriptedApi

PATH = "/api/v1/namespaces/shop/configmaps/x"
EXPIRED = Reply(status=401, body={"kind": "Status", "code": 401, "message": "Unauthorized"})
FINE = Reply(body={"metadata": {}})


@dataclass
class Login:
    """A kubeconfig whose token is in it, or in a file beside it."""

    folder: Path
    url: str
    in_file: bool

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def write(self, token: str) -> None:
        (self.folder / "token").write_text(f"{token}\n")
        user = {"tokenFile": "token"} if self.in_file else {"token": token}
        config = {
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "current-context": "here",
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))


@pytest.fixture(params=[False, True], ids=["token", "token file"])
def login(request: pytest.FixtureRequest, api: ScriptedApi, tmp_path: Path) -> Login:
    made = Login(tmp_path, api.url, request.param)
    made.write("old")
    return made


@pytest.fixture
def connected(login: Login) -> Iterator[KubeClient]:
    client = KubeClient.connect(kubeconfig=login.kubeconfig, context=None)
    yield client
    client.close()


def tokens(api: ScriptedApi) -> list[str]:
    return [asked.headers["authorization"] for asked in api.asked]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_refused_token_is_read_anew_and_the_request_sent_again(
    method: str, api: ScriptedApi, login: Login, connected: KubeClient, deadline: Deadline
) -> None:
    """A write too: a request that was not let in has done nothing."""
    api.on(method, PATH, EXPIRED, FINE)
    login.write("new")
    assert connected.request(method, PATH, deadline=deadline, write=method == "PUT").status == 200
    assert tokens(api) == ["Bearer old", "Bearer new"]


def test_the_new_token_stays(api: ScriptedApi, login: Login, connected: KubeClient, deadline: Deadline) -> None:
    """The refused one is not tried before each request."""
    api.on("GET", PATH, EXPIRED, FINE, FINE)
    login.write("new")
    for _ in range(2):
        connected.request("GET", PATH, deadline=deadline)
    assert tokens(api) == ["Bearer old", "Bearer new", "Bearer new"]


def test_without_a_new_token_it_is_asked_once_and_told(api: ScriptedApi, connected: KubeClient, deadline: Deadline) -> None:
    """The same token would be refused again."""
    api.on("GET", PATH, EXPIRED)
    with pytest.raises(KubernetesForbidden, match="the credentials are not accepted"):
        connected.request("GET", PATH, deadline=deadline)
    assert tokens(api) == ["Bearer old"]


def test_a_kubeconfig_that_is_being_written_is_left_for_the_next_time(
    api: ScriptedApi, login: Login, connected: KubeClient, deadline: Deadline
) -> None:
    """Half a file is no reason to fail otherwise than by the refusal."""
    api.on("GET", PATH, EXPIRED, EXPIRED, FINE)
    login.kubeconfig.write_text("clusters: [{")
    with pytest.raises(KubernetesForbidden, match="the credentials are not accepted"):
        connected.request("GET", PATH, deadline=deadline)
    login.write("new")
    assert connected.request("GET", PATH, deadline=deadline).status == 200
    assert tokens(api) == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_stream_finds_the_new_token_at_its_next_try(api: ScriptedApi, login: Login, connected: KubeClient) -> None:
    """Whoever watches comes back by itself."""
    api.on("GET", PATH, EXPIRED, FINE)
    login.write("new")
    with pytest.raises(KubernetesForbidden):
        connected.stream(PATH, silence_s=5.0)
    with connected.stream(PATH, silence_s=5.0):
        pass
    assert tokens(api) == ["Bearer old", "Bearer new"]
