"""A look that writes nothing: from a live cluster or from a snapshot file to a verdict. For plan, explain, skew and snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rebalancer.deadline import Deadline
from rebalancer.errors import SnapshotError
from rebalancer.policy.model import Mode
from rebalancer.runtime.clock import SystemClock
from rebalancer.runtime.considering import Verdict, consider
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.session import Session, connected, memory_store
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.state.cluster import ClusterState
from rebalancer.state.snapshot import load_snapshot


def read_snapshot(path: Path) -> ClusterState:
    """Raises SnapshotError when the file cannot be read or is no snapshot of this version."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SnapshotError(
            f"cannot read snapshot {path}: {error.strerror}", remedy="give the file that `rebalancer snapshot` wrote"
        ) from error
    try:
        return load_snapshot(data)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error.message}", remedy=error.remedy) from error


def look(
    session: Session, *, snapshot: Path | None = None, stage: Callable[[str], None] = lambda words: None, strict: bool = True
) -> Verdict:
    """Observe and consider. ``strict``: too little coverage is an error, as in a cycle; explaining works with what there is.

    Raises KubernetesError, MetricsError, SnapshotError, PolicyError.
    """
    if snapshot is not None:
        stage(f"reading {snapshot}")
        state, memory = read_snapshot(snapshot), Memory()
    else:
        state, memory = observe_now(session, stage=stage)
    if strict:
        require_coverage(state, session.orders.policy.spec)
    stage("deciding")
    return consider(state, memory, session.orders)


def observe_now(session: Session, *, stage: Callable[[str], None] = lambda words: None) -> tuple[ClusterState, Memory]:
    """The live cluster and what a controller remembers of it."""
    deadline = Deadline.after(session.settings.cycle_timeout)
    with connected(session) as connections:
        stage(f"reading the cluster at {connections.client.server}")
        memory = memory_store(connections.client, session, mode=Mode.DRY_RUN).load(deadline=deadline)
        state = observe(
            client=connections.client,
            prometheus=connections.prometheus,
            spec=session.orders.policy.spec,
            at=SystemClock().now(),
            deadline=deadline,
            stopwatch=Stopwatch(),
        )
    return state, memory
