"""The Prometheus endpoint as an application behind `http_server`: instant and range queries over the simulated series.

Answers have the shape, the status codes and the errors of the real one. Evaluation is at the virtual clock unless ``time`` says
otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl

import msgspec
import numpy as np

from rebalancer.simulate.faults import Fault
from rebalancer.simulate.http_server import Answer, HttpServer, Request
from rebalancer.simulate.promql.evaluation import evaluate
from rebalancer.simulate.promql.frames import Floats, Frame
from rebalancer.simulate.promql.labels import Column
from rebalancer.simulate.promql.parser import parse
from rebalancer.simulate.promql.syntax import PromqlError, duration_s
from rebalancer.simulate.series import ClusterSeries
from rebalancer.simulate.world import World
from rebalancer.units import parse_time

MAX_POINTS = 11_000
_QUERIES = ("/api/v1/query", "/api/v1/query_range")


class BadData(Exception):
    """A parameter is missing or malformed: 400."""


def _error(status: int, kind: str, message: str) -> Answer:
    return Answer(status=status, body=msgspec.json.encode({"status": "error", "errorType": kind, "error": message}))


def _moment(name: str, text: str | None, default: float | None = None) -> float:
    if text is None:
        if default is None:
            raise BadData(f'invalid parameter "{name}": cannot parse "" to a valid timestamp')
        return default
    try:
        moment = float(text) if not text.endswith("Z") and text.count("-") < 2 else parse_time(text)
    except ValueError as error:
        raise BadData(f'invalid parameter "{name}": cannot parse "{text}" to a valid timestamp') from error
    if not math.isfinite(moment):
        raise BadData(f'invalid parameter "{name}": "{text}" is not finite')
    return moment


def _length(text: str | None) -> float:
    try:
        length = float(text or "")
    except ValueError:
        length = duration_s(text or "")
    if length <= 0:
        raise BadData('invalid parameter "step": zero or negative query resolution step widths are not accepted')
    return length


def format_value(value: float) -> str:
    """A sample as Prometheus writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


class PrometheusServer:
    """Serves `ClusterSeries`. ``warnings`` come with every answer, as those of a partial answer do; ``start`` and ``stop`` once each."""

    def __init__(self, world: World, series: ClusterSeries, *, port: int = 0, http: Callable[..., HttpServer] = HttpServer) -> None:
        self.world = world
        self.series = series
        self.warnings: Sequence[str] = ()
        self.token = ""
        """The bearer token that requests must carry; empty: none is asked for."""
        self._http = http(self, name="simulate-prometheus", port=port, clock=lambda: world.now)
        self.requests = self._http.requests
        self.faults = self._http.faults

    @property
    def url(self) -> str:
        return self._http.url

    def start(self) -> None:
        self._http.start()

    def stop(self) -> None:
        self._http.stop()

    # ---- Application --------------------------------------------------------------------------------------------------

    def broken(self, fault: Fault) -> Answer:
        if fault.body:
            return Answer(status=fault.status, body=fault.body, content_type=fault.content_type, headers=fault.headers)
        kind, message = {503: ("timeout", "query timed out in expression evaluation"), 422: ("execution", "told to fail")}.get(
            fault.status, ("internal", "the simulated Prometheus was told to refuse this request")
        )
        refusal = _error(fault.status, kind, message)
        return Answer(status=refusal.status, body=refusal.body, headers=fault.headers)

    def answer(self, request: Request, fault: Fault | None) -> Answer:
        path = request.path.rstrip("/")
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return Answer(status=401, body=b"Unauthorized\n", content_type="text/plain; charset=utf-8")
        if path in ("/-/healthy", "/-/ready"):
            return Answer(body=b"Prometheus Server is Healthy.\n", content_type="text/plain; charset=utf-8")
        if path == "/api/v1/status/buildinfo":
            return self._success({"version": "2.42.0+simulated", "revision": "", "branch": "", "goVersion": ""})
        if path == "/api/v1/label/__name__/values":
            return self._success(self.series.metric_names)
        if path not in _QUERIES:
            return Answer(status=404, body=b"404 page not found\n", content_type="text/plain; charset=utf-8")
        try:
            form = dict(parse_qsl(request.body.decode(), keep_blank_values=True)) if request.method == "POST" else {}
            with self.world.lock:
                return self._success(self._query(path, {**request.query, **form}))
        except BadData as error:
            return _error(400, "bad_data", str(error))
        except PromqlError as error:
            return _error(422 if error.execution else 400, "execution" if error.execution else "bad_data", str(error))

    def _success(self, data: object) -> Answer:
        body: dict[str, object] = {"status": "success", "data": data}
        if self.warnings:
            body["warnings"] = list(self.warnings)
        return Answer(body=msgspec.json.encode(body))

    def _query(self, path: str, form: dict[str, str]) -> object:
        if not form.get("query"):
            raise BadData('invalid parameter "query": unknown position: parse error: no expression found in input')
        tree = parse(form["query"])
        if path == "/api/v1/query":
            at = _moment("time", form.get("time"), self.world.now)
            return _vector(evaluate(tree, self.series, np.array([at])), at)
        start, end, step = _moment("start", form.get("start")), _moment("end", form.get("end")), _length(form.get("step"))
        if end < start:
            raise BadData('invalid parameter "end": end timestamp must not be before start time')
        if (end - start) / step > MAX_POINTS:
            raise BadData("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
        steps: Floats = (start + step * np.arange(int((end - start) / step + 1e-9) + 1)).astype(np.float64)
        return _matrix(evaluate(tree, self.series, steps), steps)


def _metric_json(frame: Frame) -> list[bytes]:
    """The label set of each series as JSON, from words that are encoded once."""
    names = sorted(frame.labels.columns)
    parts: list[list[bytes]] = []
    for name in names:
        column: Column = frame.labels.columns[name]
        head = msgspec.json.encode(name) + b":"
        parts.append([head + msgspec.json.encode(word) if word else b"" for word in column.words])
    rows = zip(*(frame.labels.columns[name].codes.tolist() for name in names), strict=True) if names else [()] * frame.labels.size
    return [b"{" + b",".join(filter(None, (words[code] for words, code in zip(parts, codes, strict=True)))) + b"}" for codes in rows]


def _vector(value: Frame | Floats, at: float) -> object:
    stamp = round(at, 3)
    if not isinstance(value, Frame):
        return {"resultType": "scalar", "result": [stamp, format_value(float(value[0]))]}
    frame = value.alive()
    items = [
        b'{"metric":%s,"value":[%s,"%s"]}' % (metric, format_value(stamp).encode(), format_value(sample).encode())
        for metric, sample in zip(_metric_json(frame), frame.values[:, 0].tolist(), strict=True)
    ]
    return {"resultType": "vector", "result": msgspec.Raw(b"[" + b",".join(items) + b"]")}


def _matrix(value: Frame | Floats, steps: Floats) -> object:
    stamps = [format_value(round(float(step), 3)) for step in steps]
    if not isinstance(value, Frame):
        points = [[msgspec.Raw(stamp.encode()), format_value(float(v))] for stamp, v in zip(stamps, value, strict=True)]
        return {"resultType": "matrix", "result": [{"metric": {}, "values": points}]}
    frame = value.alive()
    items: list[bytes] = []
    for metric, values, present in zip(_metric_json(frame), frame.values.tolist(), frame.present.tolist(), strict=True):
        listed = ",".join(f'[{stamp},"{format_value(v)}"]' for stamp, v, there in zip(stamps, values, present, strict=True) if there)
        items.append(b'{"metric":%s,"values":[%s]}' % (metric, listed.encode()))
    return {"resultType": "matrix", "result": msgspec.Raw(b"[" + b",".join(items) + b"]")}
