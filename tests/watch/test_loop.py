"""One watch against a server that answers from a script: versions, time limits, errors, pauses, the end."""

from __future__ import annotations

import itertools
import ssl
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rebalancer.errors import KubernetesForbidden
from rebalancer.kube.client import KubeClient
from rebalancer.kube.resources import PODS, REPLICA_SET_OWNERS
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, Watch, WatchTiming
from tests.support.embedded import eventually
from tests.support.scripted_api import Reply, ScriptedApi, status
from tests.watch.kit import QUICK, Heard, Noted, Pauses, bookmark, certificate, event, gone, pod, running, watch_pods

PATH = PODS.path


def stream(*lines: bytes, **rest: object) -> Reply:
    """A watch that says this and is then ended by the server."""
    return Reply(body=b"".join(lines), **({"chunked": True} | rest))  # type: ignore[arg-type]


def versions(api: ScriptedApi) -> list[str]:
    return [asked.query["resourceVersion"] for asked in api.asked]


def test_kw1_a_reconnect_continues_from_the_last_event(api: ScriptedApi, client: KubeClient) -> None:
    """Five events, the connection is dropped: the next request carries the version of the fifth."""
    api.on("GET", PATH, stream(*(event("ADDED", pod(f"p{n}", n)) for n in range(11, 16)), cut=10_000), stream())
    heard = Heard(connections=2)
    noted, _ = watch_pods(client, heard)
    assert heard.told == [f"a/p{n}@{n}" for n in range(11, 16)]
    assert versions(api) == ["10", "15"]
    assert noted.restarts[0] == ("pods", Restart.DROPPED)


def test_kw4_and_ki2_bookmarks_and_a_time_limit_are_asked_for_and_a_bookmark_moves_the_version(
    api: ScriptedApi, client: KubeClient
) -> None:
    """After a bookmark the reconnect starts from it."""
    api.on("GET", PATH, stream(event("MODIFIED", pod("p", 12)), bookmark(40)), stream())
    heard = Heard(connections=2)
    watch_pods(client, heard)
    assert heard.told == ["a/p@12", "40"]
    assert versions(api) == ["10", "40"]
    first = api.asked[0].query
    assert (first["watch"], first["allowWatchBookmarks"], first["timeoutSeconds"]) == ("true", "true", "1")


def test_kw2_and_kw3_an_expired_version_is_told_and_never_asked_for_again(api: ScriptedApi, client: KubeClient) -> None:
    """As an event in the stream and as a status: in both cases the follower has to say from where to go on."""
    api.on("GET", PATH, stream(event("ADDED", pod("p", 11)), gone()), status(410, "too old", reason="Expired"), stream(bookmark(950)))
    heard = Heard(connections=3)
    noted, _ = watch_pods(client, heard)
    assert heard.told == ["a/p@11", "950"]
    assert versions(api) == ["10", "900", "900"]
    assert [reason for _, reason in noted.restarts[:2]] == [Restart.EXPIRED, Restart.EXPIRED]
    assert noted.defects == []


@pytest.mark.parametrize("silence", [Reply(silent=True), stream(bookmark(20), drip_s=60, chunked=False)], ids=["from the start", "later"])
def test_kw5_and_ki2_a_silent_server_is_left_and_counted(api: ScriptedApi, client: KubeClient, silence: Reply) -> None:
    """No byte for longer than the server may take: the loop is back within its own limit, and goes on."""
    api.on("GET", PATH, silence, stream(bookmark(30)))
    heard = Heard(connections=2)
    noted, _ = watch_pods(client, heard)
    assert heard.reasons[0] is Restart.SILENT
    assert noted.count(Restart.SILENT) == 1
    assert heard.told == ["30"]


def test_kw5_the_client_waits_longer_than_the_server_may_take() -> None:
    """Else each quiet watch would count as a dead network."""
    assert WatchTiming().silence > WatchTiming().server
    with pytest.raises(ValueError, match="silence > server"):
        WatchTiming(server=30, silence=30)
    assert all(30 <= WatchTiming().timeout_seconds(chance=chance / 10) <= 40 for chance in range(10))


def test_kw6_one_odd_object_among_ten_is_told_with_its_reason_and_nine_arrive(api: ScriptedApi, client: KubeClient) -> None:
    """The version moves over the odd one too."""
    odd = {**pod("odd", 15), "status": {"conditions": [{"status": "True"}]}}
    api.on("GET", PATH, stream(*(event("ADDED", odd if n == 15 else pod(f"p{n}", n)) for n in range(11, 21))), stream())
    heard = Heard(connections=2)
    noted, _ = watch_pods(client, heard)
    assert heard.told == [f"a/odd@{n}?" if n == 15 else f"a/p{n}@{n}" for n in range(11, 21)]
    assert versions(api) == ["10", "20"]
    assert noted.restarts[0] == ("pods", Restart.ENDED)


GARBAGE = {
    "a login page": b"<!DOCTYPE html><html><title>Sign in</title></html>\n",
    "half a line": event("ADDED", pod("q", 13))[:-20],
    "another type": b'{"type":"HELLO","object":{"metadata":{"name":"q","resourceVersion":"13"}}}\n',
    "no name": b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"13"}}}\n',
    "no version": b'{"type":"ADDED","object":{"metadata":{"name":"q"}}}\n',
    "a bookmark without a version": b'{"type":"BOOKMARK","object":{}}\n',
    "no UTF-8": b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
    "no object": b"[]\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_ends_a_connection_and_nothing_else(api: ScriptedApi, client: KubeClient, garbage: bytes) -> None:
    """What came before it counts; the next connection continues from there."""
    api.on("GET", PATH, stream(event("ADDED", pod("p", 12)), garbage), stream(bookmark(30)))
    heard = Heard(connections=2)
    noted, _ = watch_pods(client, heard)
    assert heard.told == ["a/p@12", "30"]
    assert versions(api) == ["10", "12"]
    assert noted.restarts[0] == ("pods", Restart.GARBLED)
    assert noted.defects == []


def test_an_error_in_the_stream_that_is_not_410_is_tried_again_from_the_same_version(api: ScriptedApi, client: KubeClient) -> None:
    """Such as an etcd that lost its leader."""
    error = event("ERROR", {"kind": "Status", "code": 500, "message": "etcdserver: no leader"})
    api.on("GET", PATH, stream(error), stream())
    noted, _ = watch_pods(client, Heard(connections=2))
    assert versions(api) == ["10", "10"]
    assert noted.restarts[0] == ("pods", Restart.REFUSED)


def test_ki3_pauses_grow_to_a_ceiling_and_a_success_resets_them(api: ScriptedApi, client: KubeClient) -> None:
    """500 again and again: 1, 2, 4 ... 30 s; after a bookmark it begins anew."""
    api.on("GET", PATH, *(status(500, "no"),) * 7, stream(bookmark(20), cut=10_000), status(500, "no"))
    timing = WatchTiming(backoff=Backoff(first_s=1.0, ceiling_s=30.0))
    _, pauses = watch_pods(client, Heard(connections=10), timing=timing)
    assert pauses.seconds == [1, 2, 4, 8, 16, 30, 30, 1, 2, 4]
    assert len(api.asked) == 10


def test_ki3_pauses_are_jittered(api: ScriptedApi, client: KubeClient) -> None:
    """Two replicas do not come back in step: each pause is between half and the whole."""
    api.on("GET", PATH, status(500, "no"))
    chances = itertools.cycle([0.1, 0.9, 0.5])
    _, pauses = watch_pods(client, Heard(connections=6), chance=lambda: next(chances))
    tops = [min(QUICK.backoff.ceiling_s, QUICK.backoff.first_s * 2**n) for n in range(6)]
    assert all(top / 2 <= pause <= top for pause, top in zip(pauses.seconds, tops, strict=True))
    assert len({pause / top for pause, top in zip(pauses.seconds, tops, strict=True)}) > 1


def test_a_server_that_ends_each_connection_at_once_is_not_hammered(api: ScriptedApi, client: KubeClient) -> None:
    """Only a connection that has lasted is followed by the next one without a pause."""
    api.on("GET", PATH, stream())
    _, pauses = watch_pods(client, Heard(connections=4))
    assert pauses.seconds == [0.02, 0.04, 0.08, 0.1]


def test_a_server_that_asks_for_quiet_gets_it(api: ScriptedApi, client: KubeClient) -> None:
    """Retry-After counts when it is longer than the pause of our own."""
    api.on("GET", PATH, status(429, "slow down", headers={"Retry-After": "7"}), stream())
    noted, pauses = watch_pods(client, Heard(connections=1))
    assert pauses.seconds == [7]
    assert noted.restarts == [("pods", Restart.REFUSED)]


def test_a_forbidden_watch_is_told_once_and_tried_again_after_a_long_while(api: ScriptedApi, client: KubeClient) -> None:
    """Told anew only after it was allowed in between."""
    forbidden = status(403, 'User "rebalancer" cannot watch resource "pods"')
    api.on("GET", PATH, forbidden, forbidden, stream(bookmark(20)), forbidden)
    heard = Heard(connections=4)
    noted, pauses = watch_pods(client, heard, timing=WatchTiming(forbidden=500))
    assert heard.reasons == [Restart.FORBIDDEN, Restart.FORBIDDEN, Restart.ENDED, Restart.FORBIDDEN]
    assert [pauses.seconds[n] for n in (0, 1, 3)] == [500, 500, 500]
    (first, _) = noted.forbidden_ones
    assert first[0] == "pods"
    assert "forbids to watch pods" in first[1]


def test_expired_credentials_are_no_missing_right(api: ScriptedApi, client: KubeClient) -> None:
    """401 passes when the token is renewed; it is tried again soon."""
    api.on("GET", PATH, status(401, "Unauthorized"), stream())
    noted, _ = watch_pods(client, Heard(connections=1))
    assert noted.restarts == [("pods", Restart.REFUSED)]
    assert noted.forbidden_ones == []


def test_a_refused_watch_names_the_rule_that_is_missing(api: ScriptedApi, client: KubeClient) -> None:
    """With its verb as RBAC calls it."""
    api.on("GET", PATH, status(403, "no"))
    with pytest.raises(KubernetesForbidden) as caught:
        client.stream(PATH, silence_s=1)
    assert 'resources: ["pods"], verbs: ["watch"]' in caught.value.remedy


def test_a_follower_that_has_listed_anew_is_not_told_of_another_past(api: ScriptedApi, client: KubeClient) -> None:
    """The connection is given up at the first news."""
    api.on("GET", PATH, stream(event("ADDED", pod("p", 11)), event("ADDED", pod("q", 12))), stream())
    heard = Heard(connections=1, current=False)
    noted, _ = watch_pods(client, heard)
    assert noted.restarts == [("pods", Restart.OUTDATED)]


def test_a_defect_of_the_follower_is_told_and_does_not_end_the_watch(api: ScriptedApi, client: KubeClient) -> None:
    """A thread that dies unseen would leave the table without news for good."""

    class Broken(Heard):
        def opened(self, start: object) -> None:
            raise RuntimeError("oh")

    api.on("GET", PATH, stream())
    heard = Broken(connections=2)
    noted, _ = watch_pods(client, heard)
    assert heard.reasons == [Restart.DEFECT, Restart.DEFECT]
    assert [str(error) for error in noted.defects] == ["oh", "oh"]


def test_metadata_only_watches_ask_for_metadata_with_plain_json_as_second_choice(api: ScriptedApi, client: KubeClient) -> None:
    """One request serves old and new servers; a stream is never compressed."""
    api.on("GET", REPLICA_SET_OWNERS.path, stream())
    watch_pods(client, Heard(connections=1), resource=REPLICA_SET_OWNERS)  # type: ignore[arg-type]
    (asked,) = api.asked
    assert asked.headers["accept"] == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    assert asked.headers["accept-encoding"] == "identity"


def test_a_stop_wakes_a_quiet_watch_at_once(api: ScriptedApi, client: KubeClient) -> None:
    """The thread ends long before the server would say another word, and the end is counted as no trouble."""
    api.on("GET", PATH, stream(event("ADDED", pod("p", 11)), drip_s=60, chunked=False))
    stop, heard, noted = threading.Event(), Heard(connections=5), Noted()
    watch = Watch(client, PODS, heard, stop=stop, report=noted, timing=WatchTiming(server=50, silence=60))
    with running(watch, stop) as thread:
        eventually(lambda: heard.opened_from)
        stop.set()
        watch.break_off()
        thread.join(1.0)
        assert not thread.is_alive()
    assert noted.restarts == []


def test_a_stop_wakes_a_quiet_watch_under_tls_as_well(tmp_path: Path) -> None:
    """The socket is shut down beneath the encryption, which must not look like a lost connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path))
    with ScriptedApi(tls=context) as api:
        api.on("GET", PATH, stream(event("ADDED", pod("p", 11)), drip_s=60, chunked=False))
        client = KubeClient.connect(
            kubeconfig=api.kubeconfig(tmp_path, cluster={"certificate-authority": str(tmp_path / "ca.crt")}), context=None
        )
        stop, heard, noted = threading.Event(), Heard(connections=5), Noted()
        watch = Watch(client, PODS, heard, stop=stop, report=noted, timing=WatchTiming(server=50, silence=60))
        with running(watch, stop) as thread:
            eventually(lambda: heard.opened_from)
            stop.set()
            watch.break_off()
            thread.join(1.0)
            assert not thread.is_alive()
        client.close()
    assert noted.restarts == []


def test_a_stop_before_the_server_has_answered_ends_with_its_answer(api: ScriptedApi, client: KubeClient) -> None:
    """Nothing is told any more, and no further connection is made."""
    api.on("GET", PATH, stream(event("ADDED", pod("p", 11))))
    stop = threading.Event()

    class Stopping(Heard):
        def start(self, stop: threading.Event) -> object:  # type: ignore[override]
            found = super().start(stop)
            stop.set()
            return found

    heard = Stopping(connections=5)
    Watch(client, PODS, heard, stop=stop, report=Noted(), timing=QUICK, pause=Pauses()).run()
    assert heard.told == []
    assert len(api.asked) == 1


def test_connections_are_used_again_after_the_server_has_ended_a_watch(api: ScriptedApi, client: KubeClient) -> None:
    """A regular end leaves no socket behind and costs no handshake."""
    api.on("GET", PATH, stream(bookmark(20)))
    watch_pods(client, Heard(connections=4))
    assert len({asked.client for asked in api.asked}) == 1


def test_a_narrowed_resource_watches_what_it_is_narrowed_to(api: ScriptedApi, client: KubeClient) -> None:
    """The selector goes with every connection, so that the right to one object is enough."""
    api.on("GET", PATH, stream(bookmark(40)), stream())
    watch_pods(client, Heard(connections=2), resource=replace(PODS, query=(("fieldSelector", "spec.nodeName!="),)))
    assert [asked.query["fieldSelector"] for asked in api.asked] == ["spec.nodeName!="] * 2
