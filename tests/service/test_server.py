"""The HTTP port: what it answers, what it refuses, and that nothing can hold it up."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.errors import SettingsError
from rebalancer.runtime.health import Health
from rebalancer.runtime.server import MOST_THREADS, HealthServer
from rebalancer.settings import Listen

LOOPBACK = Listen(host="127.0.0.1", port=0)
METRICS = b"# HELP rebalancer_leader x\nrebalancer_leader 1.0\n"


@pytest.fixture
def health() -> Health:
    return Health(interval_s=120)


@pytest.fixture
def server(health: Health) -> Iterator[HealthServer]:
    with HealthServer(LOOPBACK, health=health, exposition=lambda: METRICS, socket_timeout_s=0.3) as server:
        yield server


def ask(
    server: HealthServer, path: str, *, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=10)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_healthz_tells_each_check(server: HealthServer) -> None:
    """200 while the loop is alive, with a line for each check."""
    status, _, body = ask(server, "/healthz")
    assert status == 200
    assert body.startswith(b"[+] loop: ")
    assert body.endswith(b"ok\n")


def test_readyz_is_503_until_the_first_observation(server: HealthServer, health: Health) -> None:
    """And says what is missing."""
    before = ask(server, "/readyz")
    health.policy_valid()
    health.observed()
    after = ask(server, "/readyz")
    assert (before[0], after[0]) == (503, 200)
    assert b"[-] observation: nothing has been observed yet" in before[2]


def test_metrics_are_served_in_the_text_format(server: HealthServer) -> None:
    """With the content type that Prometheus expects."""
    status, headers, body = ask(server, "/metrics")
    assert (status, body) == (200, METRICS)
    assert headers["content-type"].startswith("text/plain; version=")


def test_metrics_are_packed_for_those_who_ask(server: HealthServer) -> None:
    """Thousands of nodes make megabytes of text."""
    _, headers, body = ask(server, "/metrics", headers={"Accept-Encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == METRICS


def test_a_query_string_changes_nothing(server: HealthServer) -> None:
    """Probes may carry one."""
    assert ask(server, "/healthz?verbose=1")[0] == 200


def test_head_has_the_headers_and_no_body(server: HealthServer) -> None:
    """As for GET, without the text."""
    status, headers, body = ask(server, "/metrics", method="HEAD")
    assert (status, headers["content-length"], body) == (200, str(len(METRICS)), b"")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/../etc/passwd", "/debug", "/healthzz"])
def test_other_paths_are_not_found(server: HealthServer, path: str) -> None:
    """There is nothing else."""
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(server: HealthServer, method: str) -> None:
    """Nothing can be changed through this port."""
    status, headers, _ = ask(server, "/metrics", method=method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_the_answer_does_not_tell_the_python_version(server: HealthServer) -> None:
    """Only who answers."""
    assert ask(server, "/healthz")[1]["server"].strip() == "rebalancer"


@pytest.mark.parametrize(
    "garbage", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 70000 + b"\r\n\r\n"]
)
def test_garbage_is_answered_or_dropped_and_the_next_client_served(server: HealthServer, garbage: bytes) -> None:
    """No bytes from the network can end the server."""
    with socket.create_connection((server.address.host, server.address.port), timeout=10) as client:
        client.sendall(garbage)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
    assert ask(server, "/healthz")[0] == 200


def test_silent_clients_are_dropped_and_their_places_are_free_again(server: HealthServer) -> None:
    """More connections than places, none of which ever speaks: a probe is answered."""
    silent = [socket.create_connection((server.address.host, server.address.port), timeout=10) for _ in range(MOST_THREADS + 4)]
    try:
        for client in silent:
            client.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
    finally:
        for client in silent:
            client.close()
    assert ask(server, "/healthz")[0] == 200


def test_a_failing_exposition_costs_one_answer(health: Health) -> None:
    """The probe beside it goes on."""

    def broken() -> bytes:
        raise RuntimeError("unforeseen")

    with HealthServer(LOOPBACK, health=health, exposition=broken) as server:
        status, _, body = ask(server, "/metrics")
        assert (status, body) == (500, b"a defect of this program; its log says more\n")
        assert ask(server, "/healthz")[0] == 200


def test_a_busy_port_is_an_error_with_the_remedy(server: HealthServer, health: Health) -> None:
    """Two processes on one port: the second one is told what to change."""
    with pytest.raises(SettingsError, match="another process uses the port: choose another with --listen") as caught:
        HealthServer(server.address, health=health, exposition=lambda: METRICS)
    assert f"cannot listen on {server.address}" in caught.value.message


def test_an_address_of_another_machine_is_an_error(health: Health) -> None:
    """192.0.2.1 is for documentation and nobody's."""
    with pytest.raises(SettingsError, match=r"this machine does not have the address"):
        HealthServer(Listen(host="192.0.2.1", port=0), health=health, exposition=lambda: METRICS)


def test_closing_frees_the_port_and_may_be_done_twice(health: Health) -> None:
    """A restart in the same process finds the port free."""
    server = HealthServer(LOOPBACK, health=health, exposition=lambda: METRICS)
    server.start()
    address = server.address
    server.close()
    server.close()
    with HealthServer(address, health=health, exposition=lambda: METRICS) as again:
        assert ask(again, "/healthz")[0] == 200


def test_a_server_that_was_never_started_can_be_closed(health: Health) -> None:
    """A start that fails further on leaves nothing open."""
    HealthServer(LOOPBACK, health=health, exposition=lambda: METRICS).close()


def test_it_listens_on_ipv6(health: Health) -> None:
    """[::1] as well as 127.0.0.1, where the machine has it."""
    try:
        server = HealthServer(Listen(host="::1", port=0), health=health, exposition=lambda: METRICS)
    except SettingsError:
        pytest.skip("this machine has no IPv6 loopback")
    with server:
        assert ask(server, "/healthz")[0] == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "tls.crt", directory / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not on the PATH: apt-get install openssl")
    return cert, key


def test_c6_a_certificate_of_the_operators_own_is_served(health: Health, certificate: tuple[Path, Path]) -> None:
    """https on request, verified by the client; a client that speaks plain http is dropped and holds nothing up."""
    with HealthServer(LOOPBACK, health=health, exposition=lambda: METRICS, certificate=certificate) as server:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            ask(server, "/healthz")
        trusting = ssl.create_default_context(cafile=str(certificate[0]))
        connection = http.client.HTTPSConnection(server.address.host, server.address.port, timeout=10, context=trusting)
        try:
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
        finally:
            connection.close()


def test_c6_plain_http_is_the_default(server: HealthServer) -> None:
    """No throw-away certificate that every scraper would have to be told to ignore."""
    assert ask(server, "/metrics")[0] == 200


def test_a_certificate_without_its_key_is_an_error(health: Health, certificate: tuple[Path, Path]) -> None:
    """Told at start, with both names."""
    with pytest.raises(SettingsError, match="cannot be used together"):
        HealthServer(LOOPBACK, health=health, exposition=lambda: METRICS, certificate=(certificate[0], certificate[0]))
