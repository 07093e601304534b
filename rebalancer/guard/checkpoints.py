"""What ``rebalancer.dev/checkpointed`` says: that a pod may be stopped and begun anew without losing more than its owner accepts.

``"true"`` says it without conditions, ``"false"`` takes it back. Whoever knows more writes JSON: ``onSigterm``, it writes a checkpoint when
it is told to stop; or ``last``, when the last one was written, and ``interval``, how old that may be. Nobody else has a word for this,
and nothing is concluded from a word that cannot be read.
"""

from __future__ import annotations

import msgspec

from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_duration, parse_duration, parse_time

CHECKPOINTED = "rebalancer.dev/checkpointed"
_FUTURE_S = 60.0
"""A clock may be so far ahead."""


class _Word(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    on_sigterm: bool = False
    last: str = ""
    interval: str = ""


def not_checkpointed(state: ClusterState, pod: int) -> str:
    """Why the pod may not be begun anew, as a clause; empty when it may. The pod's own word counts before its workload's."""
    workload = int(state.pods.workload[pod])
    text = state.pods.annotations[pod].get(CHECKPOINTED)
    if text is None and workload >= 0:
        text = state.workloads.annotations[workload].get(CHECKPOINTED)
    if text is None:
        return f"is not annotated {CHECKPOINTED}"
    if text == "true":
        return ""
    if text == "false":
        return f'is annotated {CHECKPOINTED}: "false"'
    try:
        return _outdated(msgspec.json.decode(text, type=_Word), at=state.at)
    except (msgspec.DecodeError, ValueError):
        return f'is annotated {CHECKPOINTED}: "{text[:60]}", which is neither "true" nor a word about checkpoints'


def _outdated(word: _Word, *, at: float) -> str:
    """Raises ValueError for what is no time or no duration."""
    if word.on_sigterm:
        return ""
    if not word.last or not word.interval:
        return f"does not say in {CHECKPOINTED} when its last checkpoint was, and how old that may be"
    age, interval = at - parse_time(word.last), parse_duration(word.interval)
    if age < -_FUTURE_S:
        return f"says in {CHECKPOINTED} that its last checkpoint is {format_duration(-age)} in the future"
    if age > interval:
        return f"wrote its last checkpoint {format_duration(age)} ago, more than {format_duration(interval)} ({CHECKPOINTED})"
    return ""
