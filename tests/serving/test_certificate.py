"""TLS: the certificate that is shown, how it is renewed, and clients that speak something else."""

from __future__ import annotations

import http.client
import os
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.errors import SettingsError
from rebalancer.runtime.serving.certificate import Certificate, Renewal
from rebalancer.runtime.serving.connections import Lost
from rebalancer.runtime.serving.server import HttpServer
from tests.serving.kit import LOOPBACK, PATIENT_S, SHORT, Losses, asked, connected, echo, made_certificate, until_closed

ROUTES = {("POST", "/echo"): echo}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with a pair each, by the name that is in the certificate."""
    at = tmp_path_factory.mktemp("pairs")
    for name in ("old", "new"):
        made_certificate(at / name, name)
    return {name: at / name for name in ("old", "new")}


class Mounted:
    """A Secret as kubelet mounts it: files that are links into a folder that is a link."""

    def __init__(self, at: Path, content: Path) -> None:
        self._at = at
        self._versions = 0
        self.swap(content)
        for name in ("tls.crt", "tls.key"):
            (at / name).symlink_to(Path("..data") / name)
        self.files = (at / "tls.crt", at / "tls.key")

    def swap(self, content: Path) -> None:
        self._versions += 1
        version = self._at / f"..version-{self._versions}"
        shutil.copytree(content, version)
        (self._at / "..data_tmp").symlink_to(version.name)
        os.replace(self._at / "..data_tmp", self._at / "..data")


@pytest.fixture
def mounted(tmp_path: Path, pairs: dict[str, Path]) -> Mounted:
    return Mounted(tmp_path, pairs["old"])


class Hands:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(server: HttpServer, pairs: dict[str, Path]) -> list[str]:
    """The names whose certificate the server shows to a client that trusts that one alone."""
    found = []
    for name, pair in pairs.items():
        trusting = ssl.create_default_context(cafile=str(pair / "tls.crt"))
        client = http.client.HTTPSConnection(server.address.host, server.address.port, timeout=PATIENT_S, context=trusting)
        try:
            assert asked(client, "POST", "/echo", b"x") == (200, b"x")
            found.append(name)
        except ssl.SSLCertVerificationError:
            continue
        finally:
            client.close()
    return found


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def renewals() -> list[Renewal]:
    return []


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.fixture
def server(mounted: Mounted, hands: Hands, renewals: list[Renewal], losses: Losses) -> Iterator[HttpServer]:
    certificate = Certificate(*mounted.files, renewed=renewals.append, clock=hands)
    with HttpServer(LOOPBACK, routes=ROUTES, certificate=certificate, limits=SHORT, lost=losses) as server:
        yield server


def test_a_renewed_secret_is_shown_without_a_restart(
    server: HttpServer, mounted: Mounted, hands: Hands, renewals: list[Renewal], pairs: dict[str, Path]
) -> None:
    """Looked at again every few seconds, by connections as they come."""
    assert shown(server, pairs) == ["old"]
    mounted.swap(pairs["new"])
    assert shown(server, pairs) == ["old"]
    hands.now += 60
    assert shown(server, pairs) == ["new"]
    hands.now += 60
    assert shown(server, pairs) == ["new"]
    assert renewals == [Renewal.USED]


def test_a_pair_that_cannot_be_used_leaves_the_last_good_one(
    server: HttpServer, mounted: Mounted, hands: Hands, renewals: list[Renewal], pairs: dict[str, Path], tmp_path: Path
) -> None:
    """Told once, and a good one that comes later is used."""
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(pairs["new"] / "tls.crt", mixed)
    shutil.copy(pairs["old"] / "tls.key", mixed)
    mounted.swap(mixed)
    for _ in range(3):
        hands.now += 60
        assert shown(server, pairs) == ["old"]
    assert renewals == [Renewal.REFUSED]
    mounted.swap(pairs["new"])
    hands.now += 60
    assert shown(server, pairs) == ["new"]
    assert renewals == [Renewal.REFUSED, Renewal.USED]


def test_files_that_vanish_leave_the_last_good_pair(server: HttpServer, mounted: Mounted, hands: Hands, pairs: dict[str, Path]) -> None:
    """A volume that is gone for a while."""
    for file in mounted.files:
        file.unlink()
    hands.now += 60
    assert shown(server, pairs) == ["old"]


@pytest.mark.parametrize(
    "garbage", [b"GET /healthz HTTP/1.1\r\n\r\n", bytes(range(256)), b"\x16\x03\x01\xff\xff" + bytes(100), b"\x16\x03\x01\x02\x00\x01"]
)
def test_what_is_no_tls_is_dropped_and_holds_nobody_up(server: HttpServer, losses: Losses, pairs: dict[str, Path], garbage: bytes) -> None:
    """Plain http, noise, half a greeting."""
    with connected(server) as client:
        client.sendall(garbage)
        assert shown(server, pairs) == ["old"]
        until_closed(client)
    assert losses.seen(Lost.HANDSHAKE) or losses.seen(Lost.SLOW)


def test_a_client_that_never_greets_is_dropped(server: HttpServer, losses: Losses, pairs: dict[str, Path]) -> None:
    """The handshake is on the connection's own thread, with a time of its own."""
    with connected(server) as client:
        assert shown(server, pairs) == ["old"]
        assert until_closed(client) == b""
    assert losses.seen(Lost.SLOW)


def test_an_encrypted_key_is_an_error_and_asks_nobody(tmp_path: Path, pairs: dict[str, Path]) -> None:
    """OpenSSL would else ask at the terminal for ever."""
    import subprocess

    key = tmp_path / "tls.key"
    command = ["openssl", "pkcs8", "-topk8", "-in", str(pairs["old"] / "tls.key"), "-out", str(key), "-passout", "pass:secret"]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(SettingsError, match="without a password"):
        Certificate(pairs["old"] / "tls.crt", key)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnot\n-----END CERTIFICATE-----\n"])
def test_a_file_that_is_no_certificate_is_an_error_at_the_start(tmp_path: Path, pairs: dict[str, Path], content: bytes | None) -> None:
    """With both names."""
    cert = tmp_path / "tls.crt"
    if content is not None:
        cert.write_bytes(content)
    with pytest.raises(SettingsError, match=r"tls\.crt and the key .*tls\.key cannot be used together"):
        Certificate(cert, pairs["old"] / "tls.key")
