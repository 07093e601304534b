"""Clients that are slow, silent, many or mad: none of them takes the server from the others."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalancer.runtime.serving.bodies import Room
from rebalancer.runtime.serving.connections import SPARE, Lost
from rebalancer.runtime.serving.messages import Answer, Request
from rebalancer.runtime.serving.server import HttpServer
from tests.serving.kit import SHORT, Losses, Slow, asked, connected, echo, kept, serving, until_closed

ROUTES = {("POST", "/echo"): echo}


def served(server: HttpServer) -> bool:
    """Whether a client that behaves is answered."""
    with kept(server) as client:
        return asked(client, "POST", "/echo", b"x") == (200, b"x")


@pytest.mark.parametrize(
    "half", [b"", b"POST", b"POST /echo HTTP/1.1\r\nContent-Le", b"POST /echo HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf"]
)
def test_a_request_that_stops_half_way_is_ended(half: bytes) -> None:
    """Others are answered before, meanwhile and after."""
    losses = Losses()
    with serving(ROUTES, lost=losses) as server, connected(server) as client:
        client.sendall(half)
        assert served(server)
        assert until_closed(client) == b""
        assert losses.seen(Lost.SLOW)
        assert served(server)


def test_a_request_that_drips_is_ended_at_the_same_time() -> None:
    """A byte now and then does not prolong anything."""
    losses, stop = Losses(), threading.Event()
    with serving(ROUTES, lost=losses) as server, connected(server) as client:

        def drip() -> None:
            with contextlib.suppress(OSError):
                client.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 4000\r\n\r\n")
                while not stop.wait(0.02):
                    client.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert losses.seen(Lost.SLOW)
        finally:
            stop.set()
            dripping.join()


def test_an_answer_that_is_not_taken_is_given_up() -> None:
    """A client that asks for much and reads nothing."""
    losses = Losses()
    routes = {**ROUTES, ("GET", "/much"): lambda request: Answer(body=bytes(64 << 20))}
    with serving(routes, limits=replace(SHORT, answer_s=0.5), lost=losses) as server, connected(server) as client:
        client.sendall(b"GET /much HTTP/1.1\r\n\r\n")
        assert losses.seen(Lost.SLOW)
        assert served(server)


def test_a_client_that_ends_within_its_body_is_let_go() -> None:
    """No handler sees half a body."""
    seen: list[Request] = []

    def see(request: Request) -> Answer:
        seen.append(request)
        return Answer()

    with serving({**ROUTES, ("POST", "/see"): see}) as server:
        with connected(server) as client:
            client.sendall(b"POST /see HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
            client.shutdown(socket.SHUT_WR)
            assert until_closed(client) == b""
        assert served(server)
    assert seen == []


def test_silent_clients_make_room_for_one_that_speaks() -> None:
    """All places taken by connections that say nothing: whoever has waited longest goes."""
    losses = Losses()
    limits = replace(SHORT, request_s=20.0)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(ROUTES, limits=limits, lost=losses))
        silent = [stack.enter_context(connected(server)) for _ in range(limits.connections)]
        assert served(server)
        assert losses.seen(Lost.FULL)
        assert until_closed(silent[0]) == b""


def test_an_answer_on_its_way_is_not_ended_for_a_newcomer() -> None:
    """When every place is at work, the newcomer goes."""
    slow, losses = Slow(), Losses()
    limits = replace(SHORT, connections=1)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving({("GET", "/slow"): slow}, limits=limits, lost=losses))
        first = stack.enter_context(connected(server))
        first.sendall(b"GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert slow.began.wait(20)
        assert until_closed(stack.enter_context(connected(server))) == b""
        slow.go.set()
        assert until_closed(first).endswith(b"{}")
    assert len(losses) == 1


def test_two_hundred_clients_at_once_are_all_answered() -> None:
    """As many as there are places for, each with a few requests on a kept connection."""
    limits = replace(SHORT, connections=256, request_s=20.0)
    results: list[tuple[int, bytes]] = []
    with serving(ROUTES, limits=limits) as server:
        start = threading.Barrier(200)

        def ask(number: int) -> None:
            body = str(number).encode()
            with kept(server) as client:
                client.connect()
                start.wait(20)
                results.extend(asked(client, "POST", "/echo", body) for _ in range(3))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert served(server)
    assert sorted(results) == sorted([(200, str(number).encode()) for number in range(200)] * 3)


def test_threads_stay_bounded_however_many_clients_come() -> None:
    """A flood of silent connections is more than the places, and no more threads than those and the spare ones."""
    limits = replace(SHORT, request_s=20.0)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(ROUTES, limits=limits))
        for _ in range(100):
            stack.enter_context(connected(server))
            threads = sum(thread.name == "http-connection" for thread in threading.enumerate())
            assert threads <= limits.connections + SPARE
        assert served(server)


def test_large_bodies_share_what_there_is_for_all() -> None:
    """503 for the one too many; small ones go on, and the room is free again afterwards."""
    slow = Slow()
    limits = replace(SHORT, body_bytes=3 << 20, all_bodies_bytes=4 << 20, request_s=20.0)
    large = bytes(3 << 20)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving({**ROUTES, ("POST", "/slow"): slow}, limits=limits))
        first = stack.enter_context(connected(server))
        first.sendall(b"POST /slow HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(large) + large)
        assert slow.began.wait(20)
        with kept(server) as client:
            assert asked(client, "POST", "/echo", large) == (503, b"too many large bodies at one time; ask again\n")
        assert served(server)
        slow.go.set()
        assert until_closed(first).endswith(b"{}")
        with kept(server) as client:
            assert asked(client, "POST", "/echo", large) == (200, large)


def test_room_for_bodies_is_given_back() -> None:
    """Refused when it is taken, free when it is given."""
    room = Room(10)
    assert room.take(10)
    assert not room.take(1)
    room.give(4)
    assert room.take(4)


def test_a_server_that_closes_ends_idle_connections_and_finishes_answers() -> None:
    """An answer that is being made is still sent, and says that it is the last."""
    slow = Slow()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving({**ROUTES, ("GET", "/slow"): slow}))
        idle = stack.enter_context(kept(server))
        assert asked(idle, "POST", "/echo", b"x") == (200, b"x")
        busy = stack.enter_context(connected(server))
        busy.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
        assert slow.began.wait(20)
        closing = threading.Thread(target=server.close)
        closing.start()
        assert idle.sock.recv(1) == b""
        slow.go.set()
        assert until_closed(busy).endswith(b"{}")
        closing.join()
        with pytest.raises(ConnectionError):
            socket.create_connection((server.address.host, server.address.port), timeout=20)


@pytest.fixture(scope="module")
def server():  # type: ignore[no-untyped-def]
    with serving(ROUTES) as server:
        yield server


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=100).map(lambda tail: b"POST /echo HTTP/1.1\r\n" + tail + b"\r\n\r\n"),
        st.binary(max_size=100).map(lambda tail: b"POST /echo HTTP/1.1\r\nContent-Length: 20\r\n\r\n" + tail),
    )
)
def test_no_bytes_from_the_network_end_the_server(server: HttpServer, garbage: bytes) -> None:
    """Answered, refused or dropped; the next client is served."""
    with connected(server) as client:
        client.sendall(garbage)
        client.shutdown(socket.SHUT_WR)
        until_closed(client)
    assert served(server)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /echo HTTP/9.9\r\n\r\n",
        b"GET / " + b"a" * 70000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\n" + (b"a: " + b"b" * 9000 + b"\r\n") * 8 + b"\r\n",
    ],
)
def test_a_head_that_cannot_be_read_is_answered_in_one_line(server: HttpServer, head: bytes) -> None:
    """And the connection ends, for nobody knows where the next request begins."""
    with connected(server) as client:
        client.sendall(head)
        got = until_closed(client)
    assert got.split(b" ", 2)[1][:1] in (b"4", b"5")
    assert b"Connection: close\r\n" in got
    assert got.endswith(b"\n")
