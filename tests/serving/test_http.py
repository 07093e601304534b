"""Requests and answers: routes, kept connections, bodies, and what is not served."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from rebalancer.runtime.serving.messages import Answer, Request, text
from rebalancer.runtime.serving.server import HttpServer
from tests.serving.kit import SHORT, asked, connected, echo, kept, serving, until_closed


def where(request: Request) -> Answer:
    return text(f"{request.path} {dict(request.query)} {request.headers.get('x-from')}")


def broken(request: Request) -> Answer:
    raise RuntimeError("unforeseen")


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    routes = {
        ("POST", "/echo"): echo,
        ("GET", "/where"): where,
        ("GET", "/tree/"): where,
        ("GET", "/tree/leaf/"): echo,
        ("POST", "/tree/"): echo,
        ("POST", "/broken"): broken,
    }
    with serving(routes) as server:
        yield server


@pytest.fixture
def client(server: HttpServer) -> Iterator[http.client.HTTPConnection]:
    with kept(server) as connection:
        yield connection


def test_many_requests_go_over_one_connection(client: http.client.HTTPConnection) -> None:
    """HTTP/1.1: kept until somebody ends it, after errors of handlers and of clients too."""
    assert asked(client, "POST", "/echo", b"one") == (200, b"one")
    mine = client.sock.getsockname()
    assert asked(client, "POST", "/broken", b"x")[0] == 500
    assert asked(client, "GET", "/nowhere")[0] == 404
    assert asked(client, "POST", "/echo", b"two") == (200, b"two")
    assert client.sock.getsockname() == mine


def test_requests_may_be_sent_before_the_answer_to_the_last(server: HttpServer) -> None:
    """Pipelined: answered in their order."""
    with connected(server) as client:
        one = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none"
        client.sendall(one + b"\r\n" + one.replace(b"one", b"two").replace(b"Host: x", b"Connection: close"))
        got = until_closed(client)
    assert got.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert got.index(b"\r\n\r\none") < got.index(b"\r\n\r\ntwo")


def test_the_handler_gets_path_query_and_headers(client: http.client.HTTPConnection) -> None:
    """Apart from each other, names of headers in lower case."""
    client.request("GET", "/where?host=n1&empty=&host=n%202", headers={"X-From": "here"})
    assert client.getresponse().read() == b"/where {'host': 'n 2', 'empty': ''} here\n"


@pytest.mark.parametrize(("path", "told"), [("/tree/", b"/tree/ {} None\n"), ("/tree/a/b", b"/tree/a/b {} None\n"), ("/tree/leaf/x", b"")])
def test_a_route_that_ends_with_a_slash_matches_by_prefix(client: http.client.HTTPConnection, path: str, told: bytes) -> None:
    """The longest one wins."""
    assert asked(client, "GET", path) == (200, told)


def test_an_unknown_path_is_told_what_there_is(client: http.client.HTTPConnection) -> None:
    """In one sentence, which does not repeat what was asked."""
    status, body = asked(client, "POST", "/%0Aforged", b"body")
    assert status == 404
    assert body.startswith(b"nothing is served there, only GET /tree/, GET /tree/leaf/, GET /where, POST /broken, POST /echo")
    assert body.count(b"\n") == 1


@pytest.mark.parametrize(
    ("method", "path", "allowed"), [("GET", "/echo", "POST"), ("POST", "/where", "GET, HEAD"), ("PUT", "/tree/", "GET, HEAD, POST")]
)
def test_a_wrong_method_is_told_the_right_ones(client: http.client.HTTPConnection, method: str, path: str, allowed: str) -> None:
    """405 with Allow."""
    client.request(method, path)
    response = client.getresponse()
    assert (response.status, response.headers["Allow"]) == (405, allowed)
    response.read()


def test_head_has_no_body_and_the_connection_goes_on(client: http.client.HTTPConnection) -> None:
    """A body would be taken for the next answer."""
    client.request("HEAD", "/where")
    response = client.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0
    assert asked(client, "POST", "/echo", b"x") == (200, b"x")


def test_http_1_0_clients_are_answered_and_let_go(server: HttpServer) -> None:
    """They expect the end of the stream."""
    with connected(server) as client:
        client.sendall(b"GET /where HTTP/1.0\r\n\r\n")
        assert until_closed(client).endswith(b"\r\n\r\n/where {} None\n")


@pytest.mark.parametrize("path", ["/echo", "/nowhere"])
def test_a_body_that_is_too_long_is_refused_before_it_is_read(server: HttpServer, path: str) -> None:
    """413 for a route, 404 for none; and the connection ends, for what follows is no request."""
    with connected(server) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nContent-Length: {SHORT.body_bytes + 1}\r\n\r\n".encode())
        got = until_closed(client)
    assert got.startswith(b"HTTP/1.1 413 ")
    assert got.endswith(b"the body is longer than 4096 bytes\n")


def test_a_large_body_to_nowhere_still_gets_its_answer(server: HttpServer) -> None:
    """Closing while the client still sends would take the answer from it."""
    with connected(server) as client:
        client.sendall(b"POST /nowhere HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + b"x" * 4000)
        assert until_closed(client).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: -1", 400),
        (b"Content-Length: many", 400),
        (b"Content-Length: 1_0", 400),
        (b"Content-Length: 3\r\nContent-Length: 4", 400),
        ("Content-Length: ٣".encode(), 400),
        (b"Content-Length: " + b"9" * 5000, 413),
        (b"Transfer-Encoding: chunked", 411),
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked", 411),
    ],
)
def test_a_length_that_is_none_is_refused(server: HttpServer, headers: bytes, status: int) -> None:
    """And nothing that follows is taken for a request."""
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\n" + headers + b"\r\n\r\nGET /where HTTP/1.1\r\n\r\n")
        got = until_closed(client)
    assert got.startswith(f"HTTP/1.1 {status} ".encode())
    assert got.count(b"HTTP/1.1") == 1


def test_who_asks_before_it_sends_a_body_is_told_to_go_on(server: HttpServer) -> None:
    """Expect: 100-continue; and is told so only for a body that will be read."""
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ab")
        assert until_closed(client).endswith(b"\r\n\r\nab")
    with connected(server) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9999\r\n\r\n")
        assert until_closed(client).startswith(b"HTTP/1.1 413 ")


def test_a_request_that_is_shown_does_not_show_its_body() -> None:
    """Pods carry what is nobody's business, headers tokens."""
    shown = repr(Request("POST", "/filter", b"secret", headers={"authorization": "secret"}))
    assert "secret" not in shown
