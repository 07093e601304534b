"""The table of faults: what is broken, how, and what has to come of it. Data only; `meeting` does what a row says.

Expected of every row, and not repeated in it: no eviction that a run without the fault would not have made, none twice, never a DELETE, no
disruption budget below what it wants, every eviction in the memory before it happens and afterwards, no taint left behind, and after the
fault a cluster that is cured as without it, with nobody's help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from rebalancer.simulate.faults import Act, Fault
from tests.faults import breaking
from tests.faults.breaking import (
    Answers,
    ApiServer,
    Breakage,
    Killed,
    LeaseStolen,
    Moment,
    NoLease,
    Prometheus,
    Samples,
    TokenExpired,
    WallClock,
)
from tests.faults.hamlet import MOVABLE

EVERYTHING = len(MOVABLE)


class Moves(Enum):
    """What is evicted while the fault lasts."""

    NONE = "none"
    SOME = "some, at most"
    ALL = "all"
    """The fault is borne: as if there were none."""


class Meets(Enum):
    """Who meets the fault."""

    BOTH = "the command, then the service"
    SERVICE = "the service"
    WATCHING = "the service, which watches"
    LEADING = "the service, which leads already"
    CAMPAIGNING = "the service, which does not lead yet"
    KILLED = "the command, which is killed, then a service"


@dataclass(frozen=True)
class Expect:
    """``status``: of ``run --once``; None: the command does not meet it. ``says``: what the command or the service tells (a regular
    expression). ``counts``: a metric that grows. ``unready``: the failing check of the readiness probe; empty: it is ready. ``cured_in``:
    cycles after the end of the fault.
    """

    moves: Moves = Moves.NONE
    status: int | None = 0
    says: str = ""
    counts: str = ""
    unready: str = ""
    cured_in: int = 3


@dataclass(frozen=True)
class Row:
    """``hangs``: somebody waits in vain, so requests may take less time. ``settle_s``: real seconds until the server has done what it does
    late. ``cured_before``: the fault comes when nothing is to be done any more."""

    id: str
    broken: str
    how: Breakage
    expect: Expect
    meets: Meets = Meets.BOTH
    hangs: bool = False
    settle_s: float = 0.0
    cured_before: bool = False
    tempting: bool = False
    """See `hamlet`."""


Place = Mapping[str, str]


def moves(outcome: str) -> str:
    return f'moves_total{{mode="evict",outcome="{outcome}",reason="balance"}}'


FAILED = 'cycles_total{result="failed"}'
ABANDONED = 'cycles_total{result="abandoned"}'
LOST_EVENT = 'events_total{result="failed"}'

UNREAD = Expect(status=4, counts=FAILED, unready="observation")
"""The cluster cannot be seen whole, so nothing is decided."""
UNMEASURED = Expect(status=5, counts=FAILED, unready="prometheus")
NOT_MOVED = Expect(status=6, counts=moves("failed"))
NOT_TRIED = Expect(status=6, counts=moves("abandoned"))
IN_DOUBT = Expect(status=6, counts=moves("unknown"), cured_in=10)
"""The pod may leave yet: its node waits for a quarter of an hour."""
BORNE = Expect(moves=Moves.ALL)
LEASELESS = Expect(status=None)

LIST_PODS: Place = {"method": "GET", "path": r"^/api/v1/pods\?limit"}
LIST_NODES: Place = {"method": "GET", "path": r"^/api/v1/nodes\?limit"}
LIST_BUDGETS: Place = {"method": "GET", "path": r"/poddisruptionbudgets\?limit"}
GET_STATE: Place = {"method": "GET", "path": r"/configmaps/"}
GET_POD: Place = {"method": "GET", "path": r"/namespaces/[^/]+/pods/[^/?]+$"}
GET_NODE: Place = {"method": "GET", "path": r"^/api/v1/nodes/"}
PATCH_NODE: Place = {"method": "PATCH", "path": r"^/api/v1/nodes/"}
EVICT: Place = {"method": "POST", "path": r"/eviction$"}
PUT_STATE: Place = {"method": "PUT", "path": r"/configmaps/"}
POST_STATE: Place = {"method": "POST", "path": r"/configmaps$"}
POST_EVENT: Place = {"method": "POST", "path": r"/events$"}
WATCH_PODS: Place = {"method": "GET", "path": r"^/api/v1/pods\?watch"}
GET_LEASE: Place = {"method": "GET", "path": r"/leases/"}
PUT_LEASE: Place = {"method": "PUT", "path": r"/leases/"}
POST_LEASE: Place = {"method": "POST", "path": r"/leases$"}

REFUSED_BY_BUDGET = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,'
    b'"message":"Cannot evict pod as it would violate the pod\'s disruption budget.",'
    b'"details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 3 healthy pods and has 3 currently"}]}}'
)
HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action='/login'></form></body></html>"


# ---- the API server -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """One way in which a request goes wrong. ``says``: of the sentence that names the request."""

    words: str
    fault: Callable[[Place], Fault]
    says: Callable[[str], str]


def status(code: int, place: Place, *, retry_after: int | None = None, body: bytes = b"", count: int | None = None) -> Fault:
    headers = (("Retry-After", str(retry_after)),) if retry_after is not None else ()
    return Fault(Act.STATUS, status=code, headers=headers, body=body, count=count, **place)  # type: ignore[arg-type]


def act(what: Act, place: Place, *, seconds: float = 0.0, count: int | None = None) -> Fault:
    return Fault(what, seconds=seconds, count=count, **place)  # type: ignore[arg-type]


def _dropped(sentence: str) -> str:
    return f"dropped the connection before its answer to {sentence}"


WAYS: Mapping[str, Way] = {
    "hang": Way("gets no answer", lambda p: act(Act.HANG, p, seconds=60.0), lambda s: f"did not finish its answer to {s}"),
    "429": Way("gets 429", lambda p: status(429, p), lambda s: f"{s}.*: too many requests"),
    "429-later": Way("gets 429 with Retry-After", lambda p: status(429, p, retry_after=1), lambda s: f"{s}.*: too many requests"),
    "500": Way("gets 500", lambda p: status(500, p), lambda s: f"{s}.*: answered with status 500"),
    "409": Way("gets 409", lambda p: status(409, p), lambda s: f"{s}.*: conflict"),
    "410": Way("gets 410", lambda p: status(410, p), lambda s: f"{s} .* expired"),
    "truncated": Way("gets half an answer", lambda p: act(Act.TRUNCATE, p), _dropped),
    "garbage": Way(
        "gets 200 and garbage",
        lambda p: Fault(Act.REPLACE, body=b'\x00\xff{"items": [', **p),  # type: ignore[arg-type]
        lambda s: f"the answer to {s}.* is no valid JSON",
    ),
    "drop": Way("loses its connection", lambda p: act(Act.DROP, p), _dropped),
    "drop-after": Way("is done, and its answer lost", lambda p: act(Act.DROP_AFTER, p), _dropped),
}
ALL_OF_A_READ = ("hang", "429", "429-later", "500", "truncated", "garbage", "drop")


def api(
    name: str,
    what: str,
    place: Place,
    sentence: str,
    expect: Expect,
    *ways: str,
    meets: Meets = Meets.BOTH,
    tempting: bool = False,
    **own: Expect,
) -> list[Row]:
    """A row for each way; the request that goes wrong is called ``sentence`` in messages.

    ``own``: what is expected of a single way, as ``on_drop_after``; with words of its own if it has any.
    """
    rows = []
    for key in ways:
        way, expected = WAYS[key], own.get(f"on_{key.replace('-', '_')}", expect)
        expected = expected if expected.says else replace(expected, says=way.says(sentence))
        fault = ApiServer(way.fault(place))
        rows.append(Row(f"{name}-{key}", f"{what} {way.words}", fault, expected, meets, hangs=key == "hang", tempting=tempting))
    return rows


TAINT_MISSED = "soft taint of node n0 could not be changed: .*"
EVICTED_UNSEEN = Expect(Moves.ALL, says="is leaving, though the answer to its eviction was lost", counts=moves("evicted"))

READS = [
    *api("list-pods", "the list of pods", LIST_PODS, "list pods", UNREAD, *ALL_OF_A_READ),
    *api("list-pods", "the list of pods", LIST_PODS, "the list of pods from", UNREAD, "410"),
    Row("list-pods-once", "the list of pods gets 500, once", ApiServer(status(500, LIST_PODS, count=1)), BORNE),
    *api("list-nodes", "the list of nodes", LIST_NODES, "list nodes", UNREAD, "500", "truncated", "drop"),
    *api("list-budgets", "the list of budgets", LIST_BUDGETS, "list poddisruptionbudgets", UNREAD, "429", "garbage"),
    *api("list-budgets", "the list of budgets", LIST_BUDGETS, "the list of poddisruptionbudgets from", UNREAD, "410"),
    *api(
        "get-state", "the read of our ConfigMap", GET_STATE, "get configmaps", UNREAD, "hang", "429", "500", "truncated", "garbage", "drop"
    ),
    Row(
        "get-pod-hang",
        "the last look at the first pod gets no answer",
        ApiServer(act(Act.HANG, GET_POD, seconds=60.0, count=2)),
        Expect(Moves.SOME, status=6, says="did not finish its answer to get pods shop/web-hot", counts=moves("failed"), cured_in=4),
        hangs=True,
    ),
    *api(
        "get-pod",
        "the last look at a pod",
        GET_POD,
        "get pods shop/",
        NOT_MOVED,
        "429",
        "500",
        "truncated",
        "garbage",
        "drop",
        on_429=replace(NOT_MOVED, counts=moves("throttled")),
    ),
    *api("get-node", "the look at a node to taint", GET_NODE, "get nodes n0", NOT_TRIED, "500", "drop", tempting=True),
]

WRITES = [
    *api(
        "patch-node",
        "the soft taint",
        PATCH_NODE,
        f"{TAINT_MISSED}patch nodes n0",
        NOT_TRIED,
        "hang",
        "429",
        "500",
        "409",
        "truncated",
        "garbage",
        "drop",
        "drop-after",
        on_hang=replace(NOT_TRIED, says=f"{TAINT_MISSED}did not finish its answer"),
        on_garbage=replace(NOT_TRIED, says=f"{TAINT_MISSED}no valid JSON"),
        on_drop=replace(NOT_TRIED, says=f"{TAINT_MISSED}dropped the connection"),
        # The taint is there, and the next look sees it.
        on_truncated=Expect(Moves.ALL, status=6, says=f"{TAINT_MISSED}dropped the connection", counts=moves("evicted")),
        on_drop_after=Expect(Moves.ALL, status=6, says=f"{TAINT_MISSED}dropped the connection", counts=moves("evicted")),
        tempting=True,
    ),
    Row(
        "patch-node-idle",
        "the soft taint gets 500 where it makes no difference",
        ApiServer(status(500, PATCH_NODE)),
        replace(BORNE, says=f"{TAINT_MISSED}status 500", counts=moves("evicted")),
    ),
    *api(
        "evict",
        "the eviction",
        EVICT,
        "create pods/eviction shop/web-hot",
        NOT_MOVED,
        "hang",
        "429",
        "429-later",
        "500",
        "409",
        "truncated",
        "garbage",
        "drop",
        "drop-after",
        on_429=Expect(status=6, says="told to refuse this request", counts=moves("throttled")),
        on_429_later=Expect(status=6, says="told to refuse this request", counts=moves("throttled")),
        on_hang=IN_DOUBT,
        on_garbage=IN_DOUBT,
        on_drop=IN_DOUBT,
        on_truncated=EVICTED_UNSEEN,
        on_drop_after=EVICTED_UNSEEN,
    ),
    Row(
        "evict-503",
        "the eviction gets 503",
        ApiServer(status(503, EVICT)),
        replace(IN_DOUBT, says="is still there, and may yet be evicted"),
    ),
    Row(
        "evict-late",
        "the eviction is carried out after its time-out",
        ApiServer(act(Act.LATENCY, EVICT, seconds=1.6)),
        Expect(Moves.SOME, status=6, says="may yet be evicted", counts=moves("unknown")),
        hangs=True,
        settle_s=1.5,
    ),
    Row(
        "evict-budget",
        "the eviction is refused by its budget",
        ApiServer(status(429, EVICT, retry_after=0, body=REFUSED_BY_BUDGET)),
        Expect(status=6, says="The disruption budget web needs 3 healthy pods", counts=moves("blocked")),
    ),
    Row(
        "evict-once",
        "the first eviction gets 500",
        ApiServer(status(500, EVICT, count=1)),
        Expect(Moves.SOME, status=6, says="1 of 3 moves was not carried out; .*status 500", counts=moves("failed")),
    ),
    *api(
        "put-state",
        "the write of our ConfigMap",
        PUT_STATE,
        "update configmaps default/rebalancer-state",
        NOT_TRIED,
        "hang",
        "429",
        "429-later",
        "500",
        "409",
        "truncated",
        "garbage",
        "drop",
        "drop-after",
        on_409=replace(NOT_TRIED, says="not tried: ConfigMap default/rebalancer-state was changed by somebody else"),
    ),
    *api(
        "post-state",
        "the first write of our ConfigMap",
        POST_STATE,
        "create configmaps in namespace default",
        UNREAD,
        "hang",
        "429",
        "500",
        "409",
        "truncated",
        "garbage",
        "drop",
        "drop-after",
        on_409=replace(UNREAD, says="ConfigMap default/rebalancer-state was changed by somebody else"),
        # It is there, and the next cycle finds it.
        on_truncated=Expect(Moves.ALL, status=4, says=_dropped("create configmaps"), counts=moves("evicted")),
        on_drop_after=Expect(Moves.ALL, status=4, says=_dropped("create configmaps"), counts=moves("evicted")),
    ),
    Row(
        "post-event-hang",
        "the first Event gets no answer",
        ApiServer(act(Act.HANG, POST_EVENT, seconds=60.0, count=1)),
        replace(BORNE, counts=LOST_EVENT, says="did not finish its answer to create events in namespace shop"),
        hangs=True,
    ),
    *api(
        "post-event",
        "the Event",
        POST_EVENT,
        "create events in namespace shop",
        replace(BORNE, counts=LOST_EVENT),
        "429",
        "500",
        "409",
        "truncated",
        "drop",
        on_409=replace(BORNE, says="^", counts='events_total{result="written"}'),
    ),
]


def _watch(name: str, words: str, fault: Fault, reason: str) -> Row:
    counts = f'watch_restarts_total{{reason="{reason}",resource="pods"}}'
    return Row(f"watch-{name}", f"the watch of pods {words}", ApiServer(fault), replace(BORNE, status=None, counts=counts), Meets.WATCHING)


WATCHES = [
    _watch("drop", "loses its connection", act(Act.DROP, WATCH_PODS), "dropped"),
    _watch("429", "gets 429", status(429, WATCH_PODS), "refused"),
    _watch("500", "gets 500", status(500, WATCH_PODS), "refused"),
    _watch("410", "gets 410", act(Act.GONE, WATCH_PODS), "expired"),
    _watch("error", "opens well and says 410 then", act(Act.WATCH_ERROR, WATCH_PODS), "expired"),
    _watch("garbage", "brings garbage", WAYS["garbage"].fault(WATCH_PODS), "garbled"),
    Row(
        "watch-hang",
        "the watch of pods gets no answer",
        ApiServer(act(Act.HANG, WATCH_PODS, seconds=60.0)),
        replace(BORNE, status=None),
        Meets.WATCHING,
    ),
]

# ---- the lease ----------------------------------------------------------------------------------------------------------

CANNOT = "the lease cannot be read or written"
LOST = "the lease was lost"

LEASES = [
    *api(
        "get-lease",
        "a candidate's read of the Lease",
        GET_LEASE,
        "",
        replace(LEASELESS, says=CANNOT),
        "hang",
        "429",
        "500",
        "truncated",
        "garbage",
        "drop",
        meets=Meets.CAMPAIGNING,
    ),
    *api(
        "post-lease",
        "the first write of the Lease",
        POST_LEASE,
        "",
        replace(LEASELESS, says=CANNOT),
        "500",
        meets=Meets.CAMPAIGNING,
    ),
    *api(
        "put-lease",
        "the leader's renewal",
        PUT_LEASE,
        "",
        replace(LEASELESS, says=LOST),
        "hang",
        "429",
        "500",
        "409",
        "garbage",
        "drop",
        "drop-after",
        meets=Meets.LEADING,
    ),
    Row(
        "lease-deleted",
        "the Lease is deleted, and may not be made anew",
        NoLease(status(500, POST_LEASE)),
        replace(LEASELESS, says=LOST),
        Meets.LEADING,
    ),
    Row(
        "lease-lost-idle",
        "the lease is lost between two cycles",
        LeaseStolen(Moment.IDLE),
        replace(LEASELESS, says=LOST),
        Meets.LEADING,
    ),
    Row(
        "lease-lost-reading",
        "the lease is lost before the cluster is read",
        LeaseStolen(Moment.READING),
        replace(LEASELESS, says="the lease was lost before the work was finished.*event=cycle abandoned", counts=ABANDONED),
        Meets.LEADING,
    ),
    Row(
        "lease-lost-planned",
        "the lease is lost between plan and first eviction",
        LeaseStolen(Moment.WRITTEN_DOWN),
        # What was written down may not be struck out by one that leads no more.
        replace(LEASELESS, says="an eviction that did not happen stays remembered", counts=ABANDONED, cured_in=10),
        Meets.LEADING,
    ),
    Row(
        "lease-lost-moving",
        "the lease is lost between two evictions",
        LeaseStolen(Moment.EVICTED),
        replace(LEASELESS, moves=Moves.SOME, says="not tried: the lease was lost", counts=moves("abandoned")),
        Meets.LEADING,
    ),
]

# ---- Prometheus ---------------------------------------------------------------------------------------------------------


def _prometheus(name: str, words: str, how: Breakage, expect: Expect, *, says: str = "", hangs: bool = False) -> Row:
    expect = replace(expect, says=says) if says else expect
    return Row(f"prometheus-{name}", f"Prometheus {words}", how, expect, hangs=hangs)


def _known(nodes: int, why: str = "") -> str:
    return rf"signal cpu is known for {nodes} of 10 nodes .*{why}"


METRICS = [
    _prometheus("down", "drops every connection", Prometheus(Fault(Act.DROP)), UNMEASURED, says="could not be delivered"),
    _prometheus("once", "drops one connection", Prometheus(Fault(Act.DROP, count=1)), BORNE),
    _prometheus(
        "hang", "does not answer", Prometheus(Fault(Act.HANG, seconds=60.0)), UNMEASURED, says="was not answered within 1s", hangs=True
    ),
    _prometheus("slow", "takes its time", Prometheus(Fault(Act.LATENCY, seconds=0.15)), BORNE),
    _prometheus("503", "answers 503", Prometheus(Fault(Act.STATUS, status=503)), UNMEASURED, says="aborted by the server .status 503"),
    _prometheus("500", "answers 500", Prometheus(Fault(Act.STATUS, status=500)), UNMEASURED, says="status 500"),
    _prometheus("429", "answers 429", Prometheus(Fault(Act.STATUS, status=429)), UNMEASURED, says="status 429"),
    _prometheus(
        "html",
        "is a login page",
        Prometheus(Fault(Act.REPLACE, body=HTML, content_type="text/html")),
        UNMEASURED,
        says="was answered with an HTML page",
    ),
    _prometheus(
        "garbage", "answers garbage", Prometheus(Fault(Act.REPLACE, body=b"\x00\xff{")), UNMEASURED, says="is not Prometheus' JSON"
    ),
    _prometheus("truncated", "answers by half", Prometheus(Fault(Act.TRUNCATE)), UNMEASURED, says="was cut short"),
    _prometheus(
        "warned",
        "warns with whole answers",
        Answers(breaking.warned),
        BORNE,
        says="store-1.*event=Prometheus warns that its answers may be partial",
    ),
    _prometheus("partial", "warns, and half of the nodes are missing", Answers(breaking.partial), UNMEASURED, says=_known(5)),
    _prometheus(
        "half", "knows half of the nodes", Answers(breaking.half_missing), UNMEASURED, says=_known(5, "no series of .* speaks of it")
    ),
    _prometheus("empty", "knows nothing", Answers(breaking.empty), UNMEASURED, says="found no series; Prometheus scrapes no job at all"),
    _prometheus("nan", "answers NaN", Answers(breaking.always("NaN")), UNMEASURED, says=_known(0, r"no possible amount \(nan\)")),
    _prometheus("inf", "answers +Inf", Answers(breaking.always("+Inf")), UNMEASURED, says=_known(0, r"no possible amount \(inf\)")),
    _prometheus(
        "negative", "answers less than nothing", Answers(breaking.times(-1.0)), UNMEASURED, says=_known(0, "no possible amount .-")
    ),
    _prometheus("absurd", "answers 1e30", Answers(breaking.always("1e30")), UNMEASURED, says=_known(0, r"no possible amount \(1e\+30\)")),
    _prometheus(
        "milli", "answers in thousandths", Answers(breaking.times(1000.0)), UNMEASURED, says=_known(0, "is it measured in another unit")
    ),
    _prometheus("percent", "answers in percent", Answers(breaking.times(100.0)), UNMEASURED, says=_known(0, "measured in another unit")),
    _prometheus(
        "milli-pods",
        "answers in thousandths for pods alone",
        Answers(breaking.times(1000.0, pods_only=True)),
        UNMEASURED,
        says=r"signal cpu is known for 0 of 66 pods .*not used: 132 absurd",
    ),
    _prometheus("doubled", "has two series of everything", Answers(breaking.doubled), UNMEASURED, says=_known(0, "ambiguous: 2 series")),
    _prometheus("late", "has scraped nothing for two minutes", Samples(breaking.silent_for(2)), BORNE),
    _prometheus(
        "stale",
        "has scraped nothing for ten minutes",
        Samples(breaking.silent_for(10)),
        UNMEASURED,
        says=_known(0, "last sample is .* old"),
    ),
    _prometheus("gone", "has no sample of the last twenty minutes", Samples(breaking.not_scraped(20)), UNMEASURED, says="found no series"),
    _prometheus("nan-nodes", "has NaN of every node", Samples(breaking.all_nan), UNMEASURED, says=_known(0)),
    _prometheus(
        "nan-node",
        "has NaN of the hottest node",
        Samples(breaking.one_nan),
        Expect(Moves.SOME, status=0, counts='samples_dropped_total{reason="nan"}'),
    ),
]

# ---- the process --------------------------------------------------------------------------------------------------------

SKEWED = replace(UNREAD, says="this machine's clock is 1h {} that of http.*Synchronise the clocks")


def _clock(name: str, words: str, seconds: float, direction: str, *, cured_before: bool = False) -> Row:
    expect = replace(SKEWED, says=SKEWED.says.format(direction))
    return Row(f"clock-{name}", f"the machine's clock {words}", WallClock(seconds), expect, cured_before=cured_before)


def _killed(name: str, words: str, moment: Moment, **expect: object) -> Row:
    expected = replace(Expect(status=None), **expect)  # type: ignore[arg-type]
    return Row(f"kill-{name}", f"SIGKILL {words}", Killed(moment), expected, Meets.KILLED)


WAITS = {"counts": 'refusals_total{gate="cooldown-workload"}', "cured_in": 10}
"""A pod that was written down and is still there counts as one that may be leaving: its node waits."""

PROCESS = [
    _clock("ahead", "is an hour ahead", 3600.0, "ahead of"),
    _clock("behind", "is an hour behind", -3600.0, "behind"),
    _clock("jumps-ahead", "jumps an hour ahead after the cure", 3600.0, "ahead of", cured_before=True),
    _clock("jumps-behind", "jumps an hour back after the cure", -3600.0, "behind", cured_before=True),
    Row(
        "token-expired",
        "the token of the kubeconfig ends, and another one comes",
        TokenExpired(),
        replace(UNREAD, says="the credentials are not accepted"),
    ),
    Row(
        "token-file-expired",
        "the token of the token file ends, and another one comes",
        TokenExpired(in_file=True),
        replace(UNREAD, says="the credentials are not accepted"),
    ),
    _killed("reading", "before the cluster is read", Moment.READING),
    _killed("planned", "when the plan is made and nothing written", Moment.PLANNED),
    _killed("tainting", "between two taints", Moment.TAINTED),
    _killed("written-down", "between writing down and evicting", Moment.WRITTEN_DOWN, **WAITS),
    _killed("evicted", "when the eviction is done and not answered", Moment.EVICTED, moves=Moves.SOME),
    _killed("moving", "between two evictions", Moment.BETWEEN, moves=Moves.SOME),
]

ROWS: list[Row] = [*READS, *WRITES, *WATCHES, *LEASES, *METRICS, *PROCESS]
