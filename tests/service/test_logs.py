"""What a log line looks like, and what never stands in one."""

from __future__ import annotations

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.runtime.logs import REDACTED, LogLevel, redact, setup_logging

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def json_lines(level: LogLevel = "info") -> Lines:
    stream = io.StringIO()
    setup_logging("json", level, stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_time_level_logger_message_and_the_values() -> None:
    """One object a line, with the same keys for every event."""
    lines = json_lines()
    structlog.get_logger("rebalancer.cycle").info("cycle done", moves=3)
    (line,) = lines()
    assert line.pop("time").endswith("Z")
    assert line == {"level": "info", "logger": "rebalancer.cycle", "message": "cycle done", "moves": 3}


def test_the_lines_of_libraries_have_the_same_shape() -> None:
    """What comes by the standard library is an event like any other."""
    lines = json_lines()
    logging.getLogger("kubernetes.client").warning("slow answer after %s s", 3)
    (line,) = lines()
    assert (line["level"], line["logger"], line["message"]) == ("warning", "kubernetes.client", "slow answer after 3 s")


def test_python_warnings_become_events() -> None:
    """They would else stand between the lines as plain text."""
    lines = json_lines()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old call", UserWarning, stacklevel=1)
    assert "old call" in lines()[0]["message"]


def test_a_level_hides_what_is_below_it() -> None:
    """For our events and for those of libraries."""
    lines = json_lines("warning")
    structlog.get_logger("a").info("hidden")
    logging.getLogger("b").info("hidden")
    structlog.get_logger("a").warning("shown")
    assert [line["message"] for line in lines()] == ["shown"]


def test_libraries_that_would_print_bodies_and_addresses_stay_quiet_at_debug() -> None:
    """The debug level is for our own events."""
    lines = json_lines("debug")
    logging.getLogger("kubernetes.client.rest").debug("response body: {secret}")
    logging.getLogger("urllib3.connectionpool").debug("GET /api?token=abc")
    structlog.get_logger("a").debug("shown")
    assert [line["message"] for line in lines()] == ["shown"]


def test_an_exception_is_one_field_of_one_line() -> None:
    """A traceback never breaks the line."""
    lines = json_lines()
    try:
        raise ValueError("Authorization: Bearer abcdef123")
    except ValueError:
        structlog.get_logger("a").exception("failed")
    (line,) = lines()
    assert "ValueError" in line["exception"]
    assert "abcdef123" not in line["exception"]


def test_a_number_that_is_unknown_is_null() -> None:
    """NaN is no JSON, and not zero either."""
    lines = json_lines()
    structlog.get_logger("a").info("load", cpu=math.nan, inner={"x": math.inf})
    assert (lines()[0]["cpu"], lines()[0]["inner"]) == (None, {"x": None})


@pytest.mark.parametrize("key", ["Authorization", "token", "bearer_token", "password", "client_secret", "Cookie", "api_key"])
def test_a_value_under_the_name_of_a_secret_is_blanked(key: str) -> None:
    """At the top and inside of other values."""
    assert redact(None, "info", {key: "s3cret", "headers": {key: "s3cret"}}) == {key: REDACTED, "headers": {key: REDACTED}}


def test_the_path_of_a_secret_is_no_secret() -> None:
    """An operator needs to see which file was read."""
    assert redact(None, "info", {"token_file": "/run/token"}) == {"token_file": "/run/token"}


@pytest.mark.parametrize(
    "text",
    ["Bearer s3cretvalue", "https://user:s3cretvalue@host/path", "GET http://h/a?token=s3cretvalue&b=1", "sent 'basic s3cretvalue' along"],
)
def test_credentials_inside_of_a_text_are_blanked(text: str) -> None:
    """Messages of libraries repeat headers and addresses."""
    assert "s3cretvalue" not in str(redact(None, "info", {"event": text, "list": [text], "error": ValueError(text)}))


@given(st.text(max_size=80).filter(lambda text: not any(mark in text.lower() for mark in ("bearer", "basic", "://", "="))))
def test_other_texts_are_left_as_they_are(text: str) -> None:
    """Redaction touches secrets only."""
    assert redact(None, "info", {"event": text}) == {"event": text}


def test_the_console_has_no_colour_where_there_is_no_terminal() -> None:
    """Escapes would end up in files."""
    stream = io.StringIO()
    setup_logging("console", "info", stream=stream)
    structlog.get_logger("a").info("cycle done", moves=3)
    assert "cycle done" in stream.getvalue()
    assert "moves=3" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_the_console_shows_tracebacks_without_local_variables() -> None:
    """A local variable may hold anything."""
    stream = io.StringIO()
    setup_logging("console", "info", stream=stream)
    hidden = "".join(["s3cret", "value"])
    try:
        raise ValueError(len(hidden))
    except ValueError:
        structlog.get_logger("a").exception("failed")
    assert "ValueError: 11" in stream.getvalue()
    assert "s3cretvalue" not in stream.getvalue()


def test_setting_up_twice_writes_each_event_once() -> None:
    """The last set-up counts."""
    json_lines()
    lines = json_lines()
    structlog.get_logger("a").info("once")
    assert len(lines()) == 1
