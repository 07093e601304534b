"""What a row says, done: somebody meets the fault, the fault ends, and what remains is judged."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.simulate.world import START
from tests.faults.breaking import LeaseStolen, Prometheus
from tests.faults.hamlet import MOVABLE
from tests.faults.table import Meets, Moves, Row
from tests.faults.trial import ELECTED, ONCE, WATCHING, Patience, Served, Trial, trial
from tests.support.embedded import bare_environment

LEADS = (Meets.LEADING, Meets.CAMPAIGNING)
FAULT_FREE = frozenset(f"{name}-hot" for name in MOVABLE)
"""What a run without a fault evicts; `test_table` holds it against one."""


@dataclass
class Seen:
    """What a row showed. ``wrong``: what should not have been; nothing, if the row has passed."""

    wrong: list[str] = field(default_factory=list)
    status: int | None = None
    told: list[str] = field(default_factory=list)
    """Lines of the command and of the service's log."""
    grown: Mapping[str, float] = field(default_factory=dict)
    during: list[str] = field(default_factory=list)
    """Evicted while the fault lasted."""
    before_restart: list[str] | None = None
    """By a process that was killed then; None: none was."""
    unready: list[str] = field(default_factory=list)
    cycles: int | None = None
    """After the fault, until all was well; None: never."""
    line: str = ""
    """The one that says why."""

    def hear(self, text: str) -> None:
        self.told.extend(" ".join(line.split()) for line in text.splitlines() if line.strip())


def meet(row: Row, folder: Path) -> Seen:
    settings = dict(ELECTED) if row.meets in LEADS else {"kubernetes__watch": str(row.meets is Meets.WATCHING).lower()}
    # A process of its own goes by the machine's clock.
    now = time.time() if row.meets is Meets.KILLED else START
    with trial(folder, now=now, tempting=row.tempting, patience=_patience(row), **settings) as here:
        seen = Seen()
        if row.cured_before:
            here.command()
            here.pass_time(4)
        before = len(here.evicted)
        with _met(row, here, seen) as served:
            row.how.end(here)
            if row.meets in LEADS:
                here.leading()
            seen.during = here.evicted[before:] if seen.before_restart is None else seen.before_restart
            pause_s = WATCHING.backoff.ceiling_s + 0.2 if row.meets is Meets.WATCHING else 0.0
            seen.cycles = _cure(here, served, most=row.expect.cured_in, pause_s=pause_s)
            seen.hear("\n".join(served.lines()))
        if row.meets is Meets.BOTH and row.expect.moves is Moves.ALL and seen.status is None:
            _command(row, here, seen)
            row.how.end(here)
        judge(row, here, seen)
        return seen


def _patience(row: Row) -> Patience:
    if not row.hangs:
        return Patience()
    return Patience(metrics_s=1.0) if isinstance(row.how, Prometheus) else Patience(api_s=1.2)


@contextmanager
def _met(row: Row, here: Trial, seen: Seen) -> Iterator[Served]:
    """The service that has met the fault, which still lasts."""
    if row.meets is Meets.KILLED:
        seen.before_restart = _killed(row, here)
    # Where the fault is borne the service comes first, since there is nothing to be done any more for who comes second.
    if row.meets is Meets.BOTH and (row.expect.moves is not Moves.ALL or row.expect.status != 0):
        _command(row, here, seen)
        row.how.end(here)
        here.pass_time()
    if row.meets not in (Meets.LEADING, Meets.KILLED):
        row.how.begin(here)
    with here.service() as served:
        if row.meets is Meets.LEADING:
            here.leading()
            row.how.begin(here)
            if not isinstance(row.how, LeaseStolen):  # which sees to that itself, when it strikes
                here.leading(False)
        counts = served.counts()
        if row.meets is Meets.CAMPAIGNING:
            time.sleep(0.9)  # long enough to become the leader, if nothing were in the way
        served.cycle()
        if row.meets is Meets.WATCHING:
            here.pass_time()
            served.cycle()
        time.sleep(row.settle_s)
        seen.grown = {name: value - counts.get(name, 0.0) for name, value in served.counts().items() if value > counts.get(name, 0.0)}
        seen.unready = served.unready
        yield served


def _command(row: Row, here: Trial, seen: Seen) -> None:
    row.how.begin(here)
    ran = here.command()
    time.sleep(row.settle_s)
    seen.status = ran.status
    seen.hear(ran.err)


def _killed(row: Row, here: Trial) -> list[str]:
    row.how.begin(here)
    with (here.folder / "output").open("wb") as output:
        command = [sys.executable, "-m", "rebalancer", *ONCE]
        process = subprocess.Popen(command, env=bare_environment(here.env), stdout=output, stderr=output)
    try:
        assert here.reached.wait(60.0), (here.folder / "output").read_text()
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    evicted = here.evicted
    row.how.end(here)
    return evicted


def _cure(here: Trial, served: Served, *, most: int, pause_s: float) -> int | None:
    """``pause_s``: real seconds before each cycle, in which a watch that was cut comes back: the clock of the world does not drive it."""
    for number in range(1, most + 1):
        here.pass_time()
        time.sleep(pause_s)
        served.cycle()
        if _well(here):
            return number
    return None


def _well(here: Trial) -> bool:
    return not here.hot and set(here.evicted) == FAULT_FREE and not here.tainted and not here.memory.open_moves


# ---- the judgement ------------------------------------------------------------------------------------------------------


def judge(row: Row, here: Trial, seen: Seen) -> None:
    seen.wrong.extend(_harm(here))
    if seen.cycles is None:
        seen.wrong.append(
            f"not well after {row.expect.cured_in} cycles: hot {here.hot}, evicted {here.evicted}, tainted {here.tainted}, "
            f"{len(here.memory.open_moves)} open moves"
        )
    seen.wrong.extend(_unlike(row, seen))


def _harm(here: Trial) -> Iterator[str]:
    """What no fault excuses."""
    evicted = here.witnesses.api.evicted
    strangers = sorted({gone.name for gone in evicted} - FAULT_FREE)
    if strangers:
        yield f"evicted {', '.join(strangers)}, which a run without the fault leaves alone"
    if len({gone.uid for gone in evicted}) < len(evicted):
        yield f"evicted one pod twice: {here.evicted}"
    if here.deletes:
        yield "sent a DELETE"
    if here.broken_budgets:
        yield f"a disruption budget is broken, {here.broken_budgets[0]}"
    if here.unremembered:
        yield f"evicted before it was written down: {', '.join(here.unremembered)}"
    remembered = {past.pod_uid for past in here.memory.evictions}
    lost = [gone.name for gone in evicted if gone.uid not in remembered]
    if lost:
        yield f"forgot the eviction of {', '.join(lost)}"


def _unlike(row: Row, seen: Seen) -> Iterator[str]:
    """What the row expects and was not seen."""
    expect, moved = row.expect, set(seen.during)
    if expect.moves is Moves.NONE and moved:
        yield f"evicted {', '.join(seen.during)} while the fault lasted"
    if expect.moves is Moves.ALL and moved != FAULT_FREE:
        yield f"evicted only {seen.during} while the fault lasted, which should be borne"
    wanted = expect.status if row.meets is Meets.BOTH else None
    if seen.status != wanted:
        yield f"the command ended with status {seen.status}, not {wanted}"
    seen.line = next((line for line in seen.told if re.search(expect.says, line)), "") if expect.says else ""
    if expect.says and not seen.line:
        yield f"nobody said {expect.says!r}"
    if expect.counts and f"rebalancer_{expect.counts}" not in seen.grown:
        yield f"{expect.counts} did not grow; what did is {sorted(seen.grown)}"
    unready = [check for check in seen.unready if not check.startswith("[-] prometheus: Prometheus has not been asked yet")]
    if expect.unready and not any(check.startswith(f"[-] {expect.unready}") for check in unready):
        yield f"the readiness probe does not complain of {expect.unready}: {unready}"
    if not expect.unready and unready:
        yield f"not ready: {unready}"
