"""Which cluster is meant, and what is said when that cannot be found out; never `sys.exit`, never a secret."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from rebalancer.errors import SettingsError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.kubeconfig import find_access

SECRET = "s3cr3t-t0k3n"
NOWHERE: dict[str, str] = {}


def write(folder: Path, *, name: str = "kubeconfig", **changes: object) -> Path:
    content: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "one", "cluster": {"server": "https://one.example:6443"}}],
        "users": [{"name": "me", "user": {"token": SECRET}}],
        "contexts": [
            {"name": "dev", "context": {"cluster": "one", "user": "me"}},
            {"name": "prod", "context": {"cluster": "one", "user": "me"}},
        ],
    }
    path = folder / name
    path.write_text(json.dumps({**content, **changes}))
    return path


def refused(path: Path | None, *, context: str | None = None, environ: dict[str, str] = NOWHERE) -> str:
    with pytest.raises(SettingsError) as raised:
        find_access(kubeconfig=path, context=context, environ=environ)
    text = str(raised.value)
    assert SECRET not in text
    assert "\n" not in text
    assert raised.value.remedy
    assert raised.value.exit_status == 3
    return text


def test_the_current_context_is_used(tmp_path: Path) -> None:
    """Without --context the file decides."""
    access = find_access(kubeconfig=write(tmp_path), context=None, environ=NOWHERE)
    assert access.configuration.host == "https://one.example:6443"


def test_kl9_a_wrong_context_lists_the_known_ones(tmp_path: Path) -> None:
    """The sentence names the file, and the remedy the contexts that it has."""
    text = refused(write(tmp_path), context="prdo")
    assert f"context prdo is not in {tmp_path / 'kubeconfig'}" in text
    assert "known ones: dev, prod" in text


def test_kl9_a_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there."""
    assert f"the kubeconfig {tmp_path / 'none'} does not exist" in refused(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters: [\n  {name: one\n", "is no valid YAML at line"),
        ("", "is empty or no mapping"),
        ("- a\n- b\n", "is empty or no mapping"),
        ("contexts: {a: b}\n", "contexts is no list of named entries"),
        ("users: [{user: {token: " + SECRET + "}}]\n", "users is no list of named entries"),
        ("token: '" + SECRET + "\n", "is no valid YAML at line"),
        ("\x00", "is no valid YAML"),
    ],
)
def test_kl9_a_broken_file_is_one_sentence_without_its_content(tmp_path: Path, text: str, words: str) -> None:
    """Where it is broken is said; what stands there is not."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert words in refused(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"current-context": ""}, "has no current context"),
        ({"contexts": []}, "context dev is not in"),
        ({"clusters": []}, "names the cluster one, which has no entry with a server"),
        ({"clusters": [{"name": "one", "cluster": {}}]}, "names the cluster one, which has no entry with a server"),
        ({"users": []}, "names the user me, which has no entry"),
        ({"users": [{"name": "me", "user": {"tokenFile": "/no/such/token", "x": SECRET}}]}, "/no/such/token cannot be read"),
        ({"users": [{"name": "me", "user": [SECRET]}]}, "user me is no mapping"),
        ({"users": [{"name": "me", "user": {"client-certificate-data": "%%%", "client-key-data": SECRET}}]}, "cannot be used"),
        ({"users": [{"name": "me", "user": {"exec": {"command": "no-such-plugin", "x": SECRET}}}]}, "credential plugin no-such-plugin"),
    ],
)
def test_kl9_an_incomplete_entry_is_one_sentence(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    """What the context points at is missing or of no use."""
    assert words in refused(write(tmp_path, **changes))


def test_kubeconfig_of_the_environment_is_merged(tmp_path: Path) -> None:
    """Two files in $KUBECONFIG, the context of the second with the cluster of the first; a missing third is passed over."""
    first = write(tmp_path, name="first", contexts=[], **{"current-context": ""})
    second = write(tmp_path, name="second", clusters=[], users=[])
    environ = {"KUBECONFIG": f"{first}:{second}:{tmp_path / 'none'}"}
    assert find_access(kubeconfig=None, context="prod", environ=environ).configuration.host == "https://one.example:6443"


def test_the_file_in_the_home_folder_is_the_last_resort(tmp_path: Path) -> None:
    """~/.kube/config, as kubectl has it."""
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", name="config")
    assert find_access(kubeconfig=None, context=None, environ={"HOME": str(tmp_path)}).configuration.host == "https://one.example:6443"


def test_kl9_nothing_at_all_is_one_sentence(tmp_path: Path) -> None:
    """No cluster around, no file."""
    assert "no way to the API server" in refused(None, environ={"HOME": str(tmp_path)})


def service_account(folder: Path, *, token: str = SECRET) -> Path:
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_text("a certificate")
    return folder


IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    """Inside a cluster, with nothing asked for; the token is among the credentials and no copy is kept for ever."""
    access = find_access(kubeconfig=None, context=None, environ=IN_CLUSTER, service_account=service_account(tmp_path))
    assert access.configuration.host == "https://10.0.0.1:443"
    assert access.ca == str(tmp_path / "ca.crt")
    assert access.configuration.auth_settings()["BearerToken"]["value"] == f"bearer {SECRET}"
    assert access.configuration.refresh_api_key_hook is not None


def test_a_kubeconfig_that_was_asked_for_wins_inside_a_cluster(tmp_path: Path) -> None:
    """--kubeconfig is obeyed wherever it is given."""
    access = find_access(kubeconfig=write(tmp_path), context=None, environ=IN_CLUSTER, service_account=service_account(tmp_path))
    assert access.configuration.host == "https://one.example:6443"


def test_kl9_an_empty_service_account_token_is_one_sentence(tmp_path: Path) -> None:
    """The mount is there and holds nothing."""
    with pytest.raises(SettingsError, match=r"the service account in .* cannot be used: Token file exists but empty"):
        find_access(kubeconfig=None, context=None, environ=IN_CLUSTER, service_account=service_account(tmp_path, token=""))


def test_nothing_is_written_back_and_no_default_is_set(tmp_path: Path) -> None:
    """Two clients of two files do not know each other, and the files stay as they are."""
    path = write(tmp_path)
    other = write(tmp_path, name="other", clusters=[{"name": "one", "cluster": {"server": "https://two.example"}}])
    before = path.read_bytes()
    clients = [KubeClient.connect(kubeconfig=each, context=None) for each in (path, other)]
    assert [client.server for client in clients] == ["https://one.example:6443", "https://two.example"]
    assert path.read_bytes() == before
    for client in clients:
        client.close()


def test_credentials_in_the_file_become_credentials_of_the_client(tmp_path: Path) -> None:
    """Basic authentication, as some proxies ask for it."""
    access = find_access(
        kubeconfig=write(tmp_path, users=[{"name": "me", "user": {"username": "u", "password": "p"}}]), context=None, environ=NOWHERE
    )
    expected = "Basic " + base64.b64encode(b"u:p").decode()
    assert access.configuration.auth_settings()["BearerToken"]["value"] == expected
