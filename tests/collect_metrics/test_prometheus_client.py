"""The client's faults end at the wrapper: what goes over the wire, what is tried again, and what every failure says."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, MetricsError, PrometheusRefused, PrometheusUnreachable, SettingsError
from tests.collect_metrics.conftest import Connect
from tests.support.scripted_prometheus import HTML_LOGIN, Reply, ScriptedPrometheus, failure, matrix, scripted_prometheus, success, vector

AT = 1_750_000_000.7
TLS = Path(__file__).parent / "tls"


def ask(prometheus: Prometheus, query: str = "up", *, seconds: float = 20) -> float:
    answer = prometheus.instant(query, at=AT, deadline=Deadline.after(seconds), name="test query")
    return float(answer.values[0, 0])


def error_of(prometheus: Prometheus, query: str = "up", *, seconds: float = 20) -> MetricsError:
    with pytest.raises(MetricsError) as caught:
        ask(prometheus, query, seconds=seconds)
    return caught.value


def test_kp1_a_long_query_goes_in_the_body(server: ScriptedPrometheus, connect: Connect) -> None:
    """A query of 20,000 characters leaves the URL short, travels as a form, and is answered as a short one is."""
    server.on("long_metric", vector(({"a": "b"}, 3)))
    assert ask(connect(server), f'long_metric{{a=~"{"x" * 20_000}"}}') == 3
    asked = server.asked[0]
    assert asked.method == "POST"
    assert asked.url == "/api/v1/query"
    assert len(asked.query) > 20_000


def test_kp2_a_server_that_never_answers_is_given_up_at_the_deadline(server: ScriptedPrometheus, connect: Connect) -> None:
    """The failure names the query, and the query was asked once: it may be the query that hangs the server."""
    server.on("up", Reply(hang=True))
    error = error_of(connect(server, timeout_s=60), seconds=0.4)
    assert isinstance(error, PrometheusUnreachable)
    assert error.query == "test query"
    assert "'test query'" in error.message
    assert "was not answered within" in error.message
    assert len(server.asked) == 1


def test_nothing_is_sent_after_the_deadline(server: ScriptedPrometheus, connect: Connect) -> None:
    """A query whose time is over before it starts is an error that says so."""
    assert "deadline has passed" in error_of(connect(server), seconds=0).message
    assert server.asked == []


def test_the_server_is_told_how_long_it_may_take(server: ScriptedPrometheus, connect: Connect) -> None:
    """The server's own time-out is sent along, shorter than ours, so that its sentence arrives."""
    server.on("up", vector(({}, 1)))
    ask(connect(server, timeout_s=7))
    assert 6 < float(server.asked[0].form["timeout"]) < 7


def test_a_stop_request_ends_the_asking(server: ScriptedPrometheus, connect: Connect) -> None:
    """A stop that was asked for is Interrupted, not a failure of Prometheus."""
    deadline = Deadline.after(20)
    deadline.stop.set()
    with pytest.raises(Interrupted):
        connect(server).instant("up", at=AT, deadline=deadline)


@pytest.fixture
def tls_server():
    with scripted_prometheus(certificate=(TLS / "server.pem", TLS / "server.key")) as script:
        script.on("up", vector(({}, 1)))
        yield script


def test_kp3_tls_is_accepted_with_the_ca_file(tls_server: ScriptedPrometheus, connect: Connect) -> None:
    """A certificate that the given authority signed is trusted."""
    assert ask(connect(tls_server, ca_file=TLS / "ca.pem")) == 1


def test_kp3_tls_is_refused_without_the_ca_file(tls_server: ScriptedPrometheus, connect: Connect) -> None:
    """Without the authority the certificate is refused, with a remedy that names the setting, and without a second try."""
    error = error_of(connect(tls_server))
    assert "certificate is not trusted" in error.message
    assert "prometheus.ca_file" in error.remedy
    assert tls_server.asked == []


def test_kp3_verification_is_switched_off_by_name_and_warns_once(tls_server: ScriptedPrometheus, connect: Connect) -> None:
    """Switched off by name, any certificate will do, and one notice says so at start."""
    prometheus = connect(tls_server, insecure_skip_verify=True)
    assert ask(prometheus) == 1
    assert ask(prometheus) == 1
    assert [notice for notice in prometheus.notices if "not verified" in notice] == list(prometheus.notices)
    assert len(prometheus.notices) == 1


def test_kp4_an_aborted_query_is_sent_exactly_once(server: ScriptedPrometheus, connect: Connect) -> None:
    """503 means that the server gave the query up; the same again would hurt it again."""
    server.on("up", failure(503, "query timed out in expression evaluation", kind="timeout"))
    error = error_of(connect(server))
    assert isinstance(error, PrometheusRefused)
    assert error.status == 503
    assert "query timed out" in error.message
    assert len(server.asked) == 1


def test_kp4_a_bad_gateway_is_tried_again_with_post(server: ScriptedPrometheus, connect: Connect) -> None:
    """502, then 200: two requests, both POST."""
    server.on("up", Reply(status=502, body=b"bad gateway"), vector(({}, 5)))
    assert ask(connect(server)) == 5
    assert [asked.method for asked in server.asked] == ["POST", "POST"]


def test_kp4_too_many_requests_is_waited_for(server: ScriptedPrometheus, connect: Connect) -> None:
    """429 with a Retry-After that fits into the deadline is waited for."""
    server.on("up", failure(429, "slow down", headers={"Retry-After": "0"}), vector(({}, 5)))
    assert ask(connect(server)) == 5
    assert len(server.asked) == 2


@pytest.mark.parametrize("later", ["3600", "Thu, 31 Dec 2099 23:59:59 GMT"])
def test_kp4_a_retry_after_beyond_the_deadline_is_not_waited_for(later: str, server: ScriptedPrometheus, connect: Connect) -> None:
    """Asked to come back after the deadline, we say so at once."""
    server.on("up", failure(429, "slow down", headers={"Retry-After": later}))
    error = error_of(connect(server))
    assert error.status == 429
    assert later in error.message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "kind", "status", "words"),
    [
        (Reply(status=502), PrometheusUnreachable, 502, "in 3 attempts"),
        (Reply(status=500, body=b"oops"), PrometheusUnreachable, 500, "server's side"),
        (failure(400, 'parse error: unexpected "}"'), PrometheusRefused, 400, "parse error"),
        (failure(422, "many-to-many matching not allowed", kind="execution"), PrometheusRefused, 422, "many-to-many"),
        (Reply(status=401, body=b"<html>secret</html>"), PrometheusRefused, 401, "want of rights"),
        (Reply(status=403), PrometheusRefused, 403, "want of rights"),
        (Reply(status=404), PrometheusUnreachable, 404, "no query API"),
        (HTML_LOGIN, PrometheusUnreachable, 200, "HTML page"),
        (
            Reply(status=302, headers={"Location": "https://sso.example/login?token=s3cret"}),
            PrometheusUnreachable,
            302,
            "sso.example/login",
        ),
        (Reply(body=b'{"status":"success","data":{"resultType":"vec'), PrometheusUnreachable, 200, "cut short"),
        (Reply(body=b'{"status":"success","data":{"resultType":"vector"}}', cut_at=20), PrometheusUnreachable, None, "cut short"),
        (failure(200, "it went wrong"), PrometheusRefused, 200, "it went wrong"),
        (Reply(status=418), PrometheusRefused, 418, "status 418"),
    ],
)
def test_kp5_every_failure_is_one_of_ours(
    reply: Reply, kind: type[MetricsError], status: int | None, words: str, server: ScriptedPrometheus, connect: Connect, tmp_path: Path
) -> None:
    """Query, address without secrets, status and remedy are in each, whatever went wrong."""
    (tmp_path / "basic").write_text("anna:s3cret\n")
    server.on("up", reply)
    error = error_of(connect(server, basic_auth_file=tmp_path / "basic", headers={"X-Key": "s3cret"}))
    assert type(error) is kind
    assert (error.query, error.url, error.status) == ("test query", server.url, status)
    assert words in error.message
    assert error.remedy
    assert "s3cret" not in str(error)
    assert "secret</html>" not in str(error)


def test_kp5_nobody_listens(server: ScriptedPrometheus, connect: Connect) -> None:
    """A refused connection names the address and the reason."""
    error = error_of(connect("http://127.0.0.1:1/prometheus/"))
    assert isinstance(error, PrometheusUnreachable)
    assert error.url == "http://127.0.0.1:1/prometheus"
    assert "refused" in error.message.lower()


def test_credentials_in_the_url_are_used_and_never_shown(server: ScriptedPrometheus, connect: Connect) -> None:
    """A user and password in the URL become basic auth, and are in no sentence."""
    server.on("up", failure(401, "who are you"))
    prometheus = connect(server.url.replace("http://", "http://anna:p%40ss@"))
    assert "p%40ss" not in str(error_of(prometheus))
    assert "p@ss" not in "".join(prometheus.notices)
    assert server.asked[0].headers["Authorization"] == "Basic YW5uYTpwQHNz"


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://p:9090", "http://", "http://p:9090/?token=x", "http://p:99999"])
def test_an_address_that_cannot_be_right_is_refused_at_once(url: str) -> None:
    """The sentence names the setting, and repeats nothing that may be secret."""
    with pytest.raises(SettingsError, match=r"prometheus\.url"):
        Prometheus(PrometheusAccess(url=url))


def test_kp6_warnings_survive(server: ScriptedPrometheus, connect: Connect) -> None:
    """What comes with an answer is handed on: a partial answer is not a whole one."""
    server.on("up", success("vector", [], warnings=["store-1 is away"], infos=["metric might not be a counter"]))
    answer = connect(server).instant("up", at=AT, deadline=Deadline.after(20))
    assert answer.warnings == ("store-1 is away",)
    assert answer.infos == ("metric might not be a counter",)


@pytest.mark.parametrize("kind", ["matrix", "scalar", "string", ""])
def test_kp6_another_type_of_result_is_refused(kind: str, server: ScriptedPrometheus, connect: Connect) -> None:
    """A matrix, a scalar or a string where a vector is due is an error, not an empty answer."""
    server.on("up", success(kind, [] if kind in ("matrix", "") else [AT, "1"]))
    error = error_of(connect(server))
    assert isinstance(error, PrometheusRefused)
    assert "where a vector is due" in error.message


def test_kp7_values_become_numbers_and_what_is_none_becomes_nan(server: ScriptedPrometheus, connect: Connect) -> None:
    """NaN and the infinities stay what they are for the judgement of samples; an empty string is NaN and counted."""
    texts = ["NaN", "+Inf", "-Inf", "", "-3", "1.5e-05", "seven"]
    server.on("up", vector(*(({"i": str(i)}, text) for i, text in enumerate(texts))))
    answer = connect(server).instant("up", at=AT, deadline=Deadline.after(20))
    np.testing.assert_array_equal(answer.values[:, 0], [np.nan, np.inf, -np.inf, np.nan, -3, 1.5e-05, np.nan])
    assert answer.unparsable == 2
    assert answer.present.all()


def test_kp8_the_windows_are_the_ones_that_were_asked_for(server: ScriptedPrometheus, connect: Connect) -> None:
    """At x.7 s the times are not rounded, and two ranges that follow each other share no point and lose none."""
    server.on("load", matrix(({}, [1.0, 2.0, 3.0])))
    prometheus = connect(server)
    first = prometheus.range("load", start=AT, end=AT + 120, step_s=60, deadline=Deadline.after(20))
    second = prometheus.range("load", start=AT + 180, end=AT + 300, step_s=60, deadline=Deadline.after(20))
    assert [asked.form["start"] for asked in server.asked] == ["1750000000.700", "1750000180.700"]
    np.testing.assert_allclose(np.diff(np.concatenate([first.times, second.times])), 60)
    np.testing.assert_array_equal(first.values, [[1, 2, 3]])


def test_kp8_a_gap_stays_a_gap(server: ScriptedPrometheus, connect: Connect) -> None:
    """A point without a value is NaN in its own column, not moved to another."""
    server.on("load", matrix(({}, [1.0, None, 3.0])))
    answer = connect(server).range("load", start=AT, end=AT + 120, step_s=60, deadline=Deadline.after(20))
    np.testing.assert_array_equal(answer.values, [[1, np.nan, 3]])
    np.testing.assert_array_equal(answer.present, [[True, False, True]])


def test_kp9_more_points_than_prometheus_gives_are_refused_before_the_request(server: ScriptedPrometheus, connect: Connect) -> None:
    """11,000 points are asked for, 11,001 are not, and the sentence says what to change."""
    prometheus = connect(server)
    prometheus.range("load", start=AT, end=AT + 10_999, step_s=1, deadline=Deadline.after(20))
    with pytest.raises(PrometheusRefused, match="11001 points"):
        prometheus.range("load", start=AT, end=AT + 11_000, step_s=1, deadline=Deadline.after(20))
    assert len(server.asked) == 1


def test_kp10_two_cycles_ask_for_two_ranges(server: ScriptedPrometheus, connect: Connect) -> None:
    """Start and end are arguments: nothing is frozen at import."""
    prometheus = connect(server)
    for at in (AT, AT + 600):
        prometheus.range("load", start=at - 60, end=at, step_s=60, deadline=Deadline.after(20))
    assert [float(asked.form["end"]) for asked in server.asked] == [AT, AT + 600]


def test_kp11_what_is_passed_in_is_left_as_it_was(server: ScriptedPrometheus, connect: Connect) -> None:
    """Headers go along with every request and the mapping that held them is unchanged."""
    headers = {"X-Scope-OrgID": "team-a"}
    before = copy.deepcopy(headers)
    prometheus = connect(server, headers=headers)
    error_free = prometheus.instant("up", at=AT, deadline=Deadline.after(20))
    assert len(error_free) == 0
    assert headers == before
    assert server.asked[0].headers["X-Scope-OrgID"] == "team-a"


def test_a_rotated_token_is_read_again(server: ScriptedPrometheus, connect: Connect, tmp_path: Path) -> None:
    """The token file is read for each request."""
    token = tmp_path / "token"
    prometheus = connect(server, token_file=token)
    for value in ("first", "second"):
        token.write_text(f"{value}\n")
        prometheus.instant("up", at=AT, deadline=Deadline.after(20))
    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("text", [None, "", "two\nlines"])
def test_an_unusable_token_file_is_a_settings_error(text: str | None, server: ScriptedPrometheus, connect: Connect, tmp_path: Path) -> None:
    """Missing, empty or of several lines: the sentence names the file and the setting, not its content."""
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(SettingsError, match=r"prometheus\.token_file") as caught:
        connect(server, token_file=tmp_path / "token").instant("up", at=AT, deadline=Deadline.after(20))
    assert "lines" not in caught.value.message
    assert server.asked == []


def test_m12_http_is_accepted_and_a_token_over_http_is_noticed_once(server: ScriptedPrometheus, connect: Connect, tmp_path: Path) -> None:
    """Without credentials http is no cause for a notice; with a token there is exactly one."""
    (tmp_path / "token").write_text("t")
    assert connect(server).notices == ()
    notices = connect(server, token_file=tmp_path / "token").notices
    assert len(notices) == 1
    assert "unencrypted" in notices[0]


def test_access_does_not_print_headers() -> None:
    """Headers may hold keys."""
    assert "s3cret" not in repr(PrometheusAccess(url="http://p", headers={"X-Key": "s3cret"}))


def test_series_of_pods_are_known_by_their_labels_until_the_client_rests(server: ScriptedPrometheus, connect: Connect) -> None:
    """The same labels have the same number in the next cycle, other ones are read; after a rest nothing is remembered."""
    prometheus = connect(server)
    books = []
    for labels in ({"pod": "a"}, {"pod": "a"}, {"pod": "b"}):
        server.on("pods", vector((labels, 1)))
        answer = prometheus.pods("pods", at=AT, deadline=Deadline.after(20))
        assert answer.pods is not None
        assert answer.pods.book.keys[answer.pods.numbers[0]] == ("", labels["pod"])
        books.append(answer.pods.book)
        prometheus.cycle_is_over()
    assert books[0] is books[1] is books[2]
    assert books[0].keys == [("", "a"), ("", "b")]
    prometheus.rest()
    again = prometheus.pods("pods", at=AT, deadline=Deadline.after(20)).pods
    assert again is not None
    assert again.book is not books[0]


def test_a_series_of_pods_with_labels_that_are_no_text_is_no_answer(server: ScriptedPrometheus, connect: Connect) -> None:
    """As it is of any other query."""
    prometheus = connect(server)
    server.on("pods", success("vector", [{"metric": {"pod": 7}, "value": [1, "1"]}]))
    with pytest.raises(PrometheusUnreachable, match="not Prometheus' JSON"):
        prometheus.pods("pods", at=AT, deadline=Deadline.after(20), name="pods")
