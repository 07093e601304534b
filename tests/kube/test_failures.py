"""Every way to fail to reach the API server ends in one sentence of our own, with a remedy and without secrets."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import (
    Interrupted,
    KubernetesConflict,
    KubernetesError,
    KubernetesExpired,
    KubernetesForbidden,
    KubernetesNotFound,
    KubernetesThrottled,
    KubernetesUnreachable,
)
from rebalancer.kube.client import KubeClient
from rebalancer.kube.failures import NotAnApiServer, NotSent, TlsRefused
from rebalancer.kube.limiter import TokenBucket
from tests.kube.conftest import Connect
from tests.support.scripted_api import Reply, ScriptedApi, status

POD = "/api/v1/namespaces/shop/pods/web-1"
DATE = "Thu, 05 Nov 2026 12:00:00 GMT"
HTML = Reply(body=b"<!DOCTYPE html><title>Log in</title>", content_type="text/html; charset=utf-8")


def jwt(*, exp: int) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps({"exp": exp}), "signature")
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def failure(client: KubeClient, deadline: Deadline, *, path: str = POD) -> KubernetesError:
    with pytest.raises(KubernetesError) as raised:
        client.request("GET", path, deadline=deadline)
    return raised.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, KubernetesError),
        (401, KubernetesForbidden),
        (403, KubernetesForbidden),
        (404, KubernetesNotFound),
        (409, KubernetesConflict),
        (410, KubernetesExpired),
        (422, KubernetesError),
        (429, KubernetesThrottled),
        (500, KubernetesError),
        (504, KubernetesError),
    ],
)
def test_each_status_has_its_error_with_place_and_status(
    api: ScriptedApi, client: KubeClient, deadline: Deadline, code: int, kind: type[KubernetesError]
) -> None:
    """The error is of exactly one kind, names the pod and the server, and keeps the status."""
    api.on("GET", POD, status(code, "as the server says"))
    error = failure(client, deadline)
    assert type(error) is kind
    assert error.status == code
    assert "shop/web-1" in error.message
    assert api.url in error.message
    assert len(api.asked) == 1


def test_forbidden_quotes_the_server_and_names_rule_and_question(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """What an administrator needs is in the error: who, what, which rule, how to check."""
    said = 'pods "web-1" is forbidden: User "system:serviceaccount:ops:rebalancer" cannot create resource "pods/eviction"'
    api.on("POST", f"{POD}/eviction", status(403, said, reason="Forbidden"))
    with pytest.raises(KubernetesForbidden) as raised:
        client.request("POST", f"{POD}/eviction", body={}, deadline=deadline, write=True)
    assert raised.value.message == f"{api.url} forbids to create pods/eviction shop/web-1 ({said})"
    assert raised.value.remedy == (
        'add the rule {apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]} to the role in use, '
        "and ask `kubectl auth can-i create pods --subresource=eviction -n shop`"
    )


def test_an_expired_token_says_when_it_expired(api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline) -> None:
    """The token's own end is compared with the server's clock, and the token is not quoted."""
    token = jwt(exp=1_793_869_200)
    api.on("GET", POD, status(401, "Unauthorized", headers={"Date": DATE}))
    error = failure(connect(kubeconfig=api.kubeconfig(tmp_path, user={"token": token})), deadline)
    assert "the token expired at 2026-11-05 09:00:00 UTC" in error.message
    assert token not in str(error)


@pytest.mark.parametrize("token", ["opaque", "a.b.c", jwt(exp=4_000_000_000), jwt(exp=10**30)])
def test_a_token_that_is_not_known_to_be_expired_is_not_called_so(
    api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline, token: str
) -> None:
    """Opaque, odd and still valid tokens get the general sentence."""
    api.on("GET", POD, status(401, "Unauthorized"))
    error = failure(connect(kubeconfig=api.kubeconfig(tmp_path, user={"token": token})), deadline)
    assert "the credentials are not accepted" in error.message
    assert token not in str(error)


@pytest.mark.parametrize("code", [200, 404, 403])
def test_a_page_for_people_is_no_api_server(api: ScriptedApi, client: KubeClient, deadline: Deadline, code: int) -> None:
    """A login page of a proxy: the address is wrong, and trying again is of no use."""
    api.on("GET", POD, Reply(status=code, body=HTML.body, content_type=HTML.content_type))
    if code == 403:
        assert isinstance(failure(client, deadline), KubernetesForbidden)
        return
    with pytest.raises(NotAnApiServer, match="does not come from a Kubernetes API server") as raised:
        client.get(POD, deadline=deadline)
    assert "check the server address" in raised.value.remedy
    assert len(api.asked) == 1


def test_a_redirect_is_not_followed(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """An API server never redirects; credentials are not carried elsewhere."""
    api.on("GET", POD, Reply(status=302, headers={"Location": f"{api.url}/login"}, body=b""))
    assert isinstance(failure(client, deadline), NotAnApiServer)
    assert [asked.path for asked in api.asked] == [POD]


def test_nobody_listening_is_a_sentence_and_certainly_not_sent(connect: Connect, tmp_path: Path, deadline: Deadline) -> None:
    """A refused connection names the server and means that nothing happened."""
    with ScriptedApi() as gone:
        kubeconfig = gone.kubeconfig(tmp_path)
    error = failure(connect(kubeconfig=kubeconfig), deadline)
    assert isinstance(error, NotSent)
    assert gone.url in error.message
    assert "refused" in error.message


def test_a_dropped_connection_may_have_been_heard(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The request went out, so the error does not claim that it did not."""
    api.on("GET", POD, Reply(drop=True))
    error = failure(client, deadline)
    assert isinstance(error, KubernetesUnreachable)
    assert not isinstance(error, NotSent)
    assert len(api.asked) == 1


def test_a_silent_server_is_left_at_the_time_out(api: ScriptedApi, connect: Connect, deadline: Deadline) -> None:
    """The sentence names what was asked and how long was waited."""
    api.on("GET", POD, Reply(silent=True))
    error = failure(connect(timeout_s=0.1), deadline)
    assert "did not finish its answer to get pods shop/web-1 within 0.1 s" in error.message
    assert not isinstance(error, NotSent)


def test_an_answer_that_only_drips_is_left_at_the_time_out(api: ScriptedApi, connect: Connect, deadline: Deadline) -> None:
    """Each byte comes in time, the whole does not: the limit is for the whole."""
    api.on("GET", POD, Reply(body={"kind": "Pod", "filler": "x" * 1000}, drip_s=0.05))
    error = failure(connect(timeout_s=0.2), deadline)
    assert "did not finish its answer" in error.message


def test_plain_http_spoken_to_as_tls_is_a_tls_sentence(api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline) -> None:
    """https in the kubeconfig, http on the port."""
    kubeconfig = api.kubeconfig(tmp_path)
    kubeconfig.write_text(kubeconfig.read_text().replace("http://", "https://"))
    error = failure(connect(kubeconfig=kubeconfig), deadline)
    assert isinstance(error, TlsRefused)
    assert "TLS with https://127.0.0.1" in error.message


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    crt, key = folder / "ca.crt", folder / "ca.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl to make a certificate")
    return crt, key


@pytest.mark.parametrize("trusted", [True, False])
def test_tls_is_trusted_with_its_authority_only(
    connect: Connect, tmp_path: Path, deadline: Deadline, certificate: tuple[Path, Path], trusted: bool
) -> None:
    """With the CA file of the kubeconfig the answer comes; without it the sentence says which authorities were trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with ScriptedApi(tls=context) as api:
        api.on("GET", POD, Reply(body={"kind": "Pod"}))
        cluster: dict[str, object] = {"certificate-authority": str(certificate[0])} if trusted else {}
        client = connect(kubeconfig=api.kubeconfig(tmp_path, cluster=cluster))
        if trusted:
            assert client.request("GET", POD, deadline=deadline).status == 200
        else:
            with pytest.raises(TlsRefused, match=r"while trusting the system's certificate authorities: self.signed") as raised:
                client.get(POD, deadline=deadline)
            assert "certificate-authority" in raised.value.remedy
            assert api.asked == []
        client.close()


def test_credentials_that_cannot_be_a_header_are_not_quoted(api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline) -> None:
    """A token of two lines is refused by the HTTP library with a message that holds the token; ours does not."""
    client = connect(kubeconfig=api.kubeconfig(tmp_path, user={"token": "very-secret\nsecond-line"}))
    error = failure(client, deadline)
    assert isinstance(error, KubernetesForbidden)
    assert "secret" not in str(error)
    assert error.__suppress_context__


def test_a_token_file_with_a_line_end_works_and_is_read_again(
    api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline
) -> None:
    """A token file written by an editor ends with a newline, which is no part of the token."""
    (tmp_path / "token").write_text("from-a-file\n")
    api.on("GET", POD, Reply(body={"kind": "Pod"}))
    connect(kubeconfig=api.kubeconfig(tmp_path, user={"tokenFile": str(tmp_path / "token")})).request("GET", POD, deadline=deadline)
    assert api.asked[0].headers["authorization"] == "Bearer from-a-file"


def test_the_address_in_messages_has_no_password(api: ScriptedApi, connect: Connect, tmp_path: Path) -> None:
    """User and password in the server's URL stay out of ``server``."""
    kubeconfig = api.kubeconfig(tmp_path)
    kubeconfig.write_text(kubeconfig.read_text().replace("http://", "http://admin:hunter2@"))
    assert connect(kubeconfig=kubeconfig).server == api.url


def test_a_stop_is_seen_before_a_request(api: ScriptedApi, client: KubeClient, stopped: Deadline) -> None:
    """A process that was asked to stop sends nothing any more."""
    with pytest.raises(Interrupted):
        client.request("PATCH", POD, body={}, deadline=stopped, write=True)
    assert api.asked == []


def test_throttling_quietens_the_whole_client(api: ScriptedApi, connect: Connect) -> None:
    """After 429 without a budget's cause nobody who shares the bucket asks again before the time is over."""
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    bucket = TokenBucket(100.0, 100, clock=lambda: now[0], sleep=sleep)
    first, second = connect(bucket=bucket), connect(bucket=bucket)
    api.on("GET", POD, status(429, "too many requests", headers={"Retry-After": "7"}), Reply(body={"kind": "Pod"}))
    deadline = Deadline.after(60.0)
    assert isinstance(failure(first, deadline), KubernetesThrottled)
    second.request("GET", POD, deadline=deadline)
    assert slept == [7.0]


def test_a_budget_that_refuses_quietens_nobody(api: ScriptedApi, connect: Connect, deadline: Deadline) -> None:
    """The 429 of a disruption budget is about one pod, not about the rate of requests."""
    slept: list[float] = []
    client = connect(bucket=TokenBucket(1000.0, 100, clock=lambda: 0.0, sleep=slept.append))
    api.on("POST", f"{POD}/eviction", status(429, "no", causes=(("DisruptionBudget", "The disruption budget web needs 3"),)))
    client.send("POST", f"{POD}/eviction", body={}, deadline=deadline, write=True)
    client.send("POST", f"{POD}/eviction", body={}, deadline=deadline, write=True)
    assert slept == []


def test_no_token_in_time_means_not_sent(api: ScriptedApi, connect: Connect) -> None:
    """A bucket that would fill only after the deadline gives up at once."""
    bucket = TokenBucket(0.001, 1, clock=lambda: 0.0)
    client = connect(bucket=bucket)
    api.on("GET", POD, Reply(body={"kind": "Pod"}))
    client.request("GET", POD, deadline=Deadline.after(5.0))
    with pytest.raises(NotSent, match="no time was left"):
        client.request("GET", POD, deadline=Deadline.after(5.0))
    assert len(api.asked) == 1


def test_an_unknown_name_is_a_sentence(
    api: ScriptedApi, connect: Connect, tmp_path: Path, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that does not resolve: the address is wrong."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    kubeconfig = api.kubeconfig(tmp_path)
    kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1", "api.example.invalid"))
    client = connect(kubeconfig=kubeconfig)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = failure(client, deadline)
    assert isinstance(error, NotSent)
    assert "name cannot be resolved" in error.message
