"""The ways in which things break, as data: each can begin and end in a trial, as often as it is asked to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol
from urllib.parse import parse_qs

import msgspec
import yaml

from rebalancer.simulate.faults import Fault
from rebalancer.simulate.http_server import Answer, Request
from rebalancer.simulate.series import SampleFaults
from rebalancer.simulate.world import updated
from tests.faults.hamlet import NODES
from tests.faults.trial import LEASE, NAMESPACE, Trial
from tests.faults.witness import Change, Hook, Json


class Breakage(Protocol):
    def begin(self, trial: Trial) -> None: ...

    def end(self, trial: Trial) -> None: ...


@dataclass(frozen=True)
class ApiServer:
    """Requests to the API server meet the fault."""

    fault: Fault

    def begin(self, trial: Trial) -> None:
        trial.cluster.faults.add(self.fault)

    def end(self, trial: Trial) -> None:
        trial.cluster.faults.clear()


@dataclass(frozen=True)
class Prometheus:
    """Queries meet the fault."""

    fault: Fault

    def begin(self, trial: Trial) -> None:
        trial.cluster.prometheus.faults.add(self.fault)

    def end(self, trial: Trial) -> None:
        trial.cluster.prometheus.faults.clear()


@dataclass(frozen=True)
class Answers:
    """Prometheus answers well-formed, and wrong."""

    change: Change

    def begin(self, trial: Trial) -> None:
        trial.witnesses.prometheus.change = self.change

    def end(self, trial: Trial) -> None:
        trial.witnesses.prometheus.change = None


@dataclass(frozen=True)
class Samples:
    """What was scraped is spoiled. ``spoil`` gets the faults and the world's time."""

    spoil: Callable[[SampleFaults, float], None]

    def begin(self, trial: Trial) -> None:
        self.spoil(trial.cluster.sample_faults, trial.cluster.world.now)

    def end(self, trial: Trial) -> None:
        faults = trial.cluster.sample_faults
        for spoiled in (faults.silent_nodes, faults.nan_nodes, faults.missing_nodes, faults.missing_pods, faults.nan_pods, faults.gaps):
            spoiled.clear()


@dataclass(frozen=True)
class WallClock:
    """The clock of the controller's machine is off by ``seconds``."""

    seconds: float

    def begin(self, trial: Trial) -> None:
        trial.skew_s = self.seconds

    def end(self, trial: Trial) -> None:
        trial.skew_s = 0.0


@dataclass(frozen=True)
class TokenExpired:
    """The API server takes only a new token, which comes into the kubeconfig, or the file that it names, when the fault ends."""

    in_file: bool = False

    def begin(self, trial: Trial) -> None:
        _write_token(trial, "old", in_file=self.in_file)
        trial.cluster.api.rights.token = "new"

    def end(self, trial: Trial) -> None:
        _write_token(trial, "new", in_file=self.in_file)


class Moment(Enum):
    """A step of a cycle, by the request that shows it: method, path, how many of its kind come before, and whether it is carried out."""

    IDLE = ("", "", 0, False)
    READING = ("GET", r"^/api/v1/pods$", 0, False)
    PLANNED = ("POST", r"/configmaps$", 0, False)
    TAINTED = ("PATCH", r"^/api/v1/nodes/", 1, False)
    WRITTEN_DOWN = ("PUT", r"/configmaps/", 0, True)
    EVICTED = ("POST", r"/eviction$", 0, True)
    BETWEEN = ("PUT", r"/configmaps/", 1, False)

    def hook(self, call: Callable[[], None]) -> Hook:
        method, path, skip, after = self.value
        return Hook(lambda request: request.method == method and re.search(path, request.path) is not None, call, skip=skip, after=after)


@dataclass(frozen=True)
class LeaseStolen:
    """Another one takes the lease at a moment of a cycle, and the leader finds out before anything else happens."""

    at: Moment

    def begin(self, trial: Trial) -> None:
        if self.at is Moment.IDLE:
            self._steal(trial)
        else:
            trial.witnesses.api.hooks.append(self.at.hook(lambda: self._steal(trial)))

    def end(self, trial: Trial) -> None:
        _hold(trial, "")

    def _steal(self, trial: Trial) -> None:
        _hold(trial, "somebody-else")
        trial.leading(False)


@dataclass(frozen=True)
class NoLease:
    """The Lease is gone, and requests meet the fault."""

    fault: Fault

    def begin(self, trial: Trial) -> None:
        trial.cluster.faults.add(self.fault)
        trial.cluster.world.remove("leases", LEASE, NAMESPACE)

    def end(self, trial: Trial) -> None:
        trial.cluster.faults.clear()


def _hold(trial: Trial, holder: str) -> None:
    world = trial.cluster.world
    with world.lock:
        world.replace(
            "leases", updated(world.get("leases", LEASE, NAMESPACE), "spec", {"holderIdentity": holder, "leaseDurationSeconds": 5})
        )


@dataclass(frozen=True)
class Killed:
    """A process is killed at a moment of its cycle; what it asked for then gets no answer."""

    at: Moment

    def begin(self, trial: Trial) -> None:
        trial.witnesses.api.hooks.append(self.at.hook(lambda: self._stop_there(trial)))

    def end(self, trial: Trial) -> None:
        trial.killed.set()

    @staticmethod
    def _stop_there(trial: Trial) -> None:
        trial.reached.set()
        trial.killed.wait(60.0)
        raise ConnectionAbortedError  # nobody is there to be answered


def _write_token(trial: Trial, token: str, *, in_file: bool) -> None:
    config = yaml.safe_load(trial.kubeconfig.read_text())
    path = trial.folder / "token"
    path.write_text(token)
    config["users"][0]["user"] = {"tokenFile": str(path)} if in_file else {"token": token}
    trial.kubeconfig.write_text(yaml.safe_dump(config))


# ---- answers of Prometheus, changed -------------------------------------------------------------------------------------


def _documents(change: Callable[[Json], Json]) -> Change:
    """The document of each answer has become what ``change`` makes of it."""
    return lambda request, answer: replace(answer, body=msgspec.json.encode(change(msgspec.json.decode(answer.body))))


def _series(change: Callable[[Json], list[Json]], *, ages: bool = True) -> Change:
    """Each series of an answer has become those that ``change`` gives. ``ages``: also where times of samples are asked for."""

    def made(document: Json) -> Json:
        data = document.get("data")
        if isinstance(data, dict) and data.get("resultType") in ("vector", "matrix"):
            data["result"] = [each for series in data["result"] for each in change(series)]
        return document

    def changed(request: Request, answer: Answer) -> Answer:
        query = parse_qs(request.body.decode()).get("query", [""])[0]
        return answer if "timestamp(" in query and not ages else _documents(made)(request, answer)

    return changed


def _valued(series: Json, change: Callable[[float], str]) -> Json:
    if "values" in series:
        return {**series, "values": [[at, change(float(value))] for at, value in series["values"]]}
    return {**series, "value": [series["value"][0], change(float(series["value"][1]))]}


def times(factor: float, *, pods_only: bool = False) -> Change:
    """Usage in another unit."""

    def changed(series: Json) -> list[Json]:
        of_a_node = "job" in series["metric"]
        return [series if pods_only and of_a_node else _valued(series, lambda value: repr(value * factor))]

    return _series(changed, ages=False)


def always(value: str) -> Change:
    return _series(lambda series: [_valued(series, lambda _: value)], ages=False)


def _labelled(series: Json, name: str, value: str) -> Json:
    return {**series, "metric": {**series["metric"], name: value}}


doubled: Change = _series(lambda series: [_labelled(series, "replica", "a"), _labelled(series, "replica", "b")])
empty: Change = _series(lambda series: [])


def _half(series: Json) -> list[Json]:
    gone = NODES[::2]
    return [] if any(label in gone for label in series["metric"].values()) else [series]


half_missing: Change = _series(_half)
warned: Change = _documents(lambda answer: {**answer, "warnings": ["receive series from store-1: rpc error: code = Unavailable"]})


def partial(request: Request, answer: Answer) -> Answer:
    """What Thanos says when a store is away: some series are missing, and a warning says so."""
    return warned(request, half_missing(request, answer))


# ---- samples, spoiled ---------------------------------------------------------------------------------------------------


def silent_for(minutes: float) -> Callable[[SampleFaults, float], None]:
    """Every exporter stopped so many minutes ago; the last values linger."""
    return lambda faults, now: faults.silent_nodes.update(dict.fromkeys(NODES, now - 60 * minutes))


def one_nan(faults: SampleFaults, now: float) -> None:
    faults.nan_nodes.add(NODES[0])


def all_nan(faults: SampleFaults, now: float) -> None:
    faults.nan_nodes.update(NODES)


def not_scraped(minutes: float) -> Callable[[SampleFaults, float], None]:
    """Nothing was scraped in the last so many minutes, as after a long outage of Prometheus itself."""
    return lambda faults, now: faults.gaps.append((now - 60 * minutes, now + 86400))
