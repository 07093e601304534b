"""A plan as a file: written to be reviewed, read to be carried out.

Whoever applies a plan trusts the file with evictions, so reading is strict about everything that an eviction depends on (names, uids,
actions, times) and says in one sentence what is wrong. Fields that this version does not know are ignored: newer versions add fields and
never change them.
"""

from __future__ import annotations

import msgspec

from rebalancer.errors import PlanFileError
from rebalancer.plan.model import API_VERSION, Plan
from rebalancer.policy.model import Mode
from rebalancer.report.text import clean
from rebalancer.units import parse_time

_WRITE_AGAIN = "write it again with 'rebalancer plan --out FILE'"
_ACTIONS = ("evict", "annotate")


class _Header(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


def plan_to_json(plan: Plan) -> bytes:
    """Pretty-printed JSON with unknown numbers as null, ending in a line break."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def plan_from_json(data: bytes, origin: str) -> Plan:
    """The plan in ``data``; ``origin`` names the file in messages. Raises PlanFileError."""
    if not data.strip():
        raise PlanFileError(f"plan file {origin} is empty", remedy=_WRITE_AGAIN)
    try:
        header = msgspec.json.decode(data, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanFileError(f"plan file {origin} is not a JSON object ({_words(error)})", remedy=_WRITE_AGAIN) from error
    if header.kind != "Plan":
        raise PlanFileError(f"{origin} holds {_kind(header.kind)}, not a Plan", remedy="give a file that 'rebalancer plan --out' wrote")
    if header.api_version != API_VERSION:
        raise PlanFileError(
            f"plan file {origin} has apiVersion {clean(header.api_version or 'none')}, this program reads {API_VERSION}",
            remedy="apply it with the version that wrote it, or plan again",
        )
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanFileError(f"plan file {origin} is damaged ({_words(error)})", remedy=_WRITE_AGAIN) from error
    fault = _fault(plan)
    if fault:
        raise PlanFileError(f"plan file {origin} cannot be carried out: {fault}", remedy=_WRITE_AGAIN)
    return plan


def _kind(kind: str | None) -> str:
    return f"a {clean(kind)}" if kind else "no kind"


def _words(error: Exception) -> str:
    text = clean(str(error))
    return text[:1].lower() + text[1:] if text[:2].istitle() else text


def _fault(plan: Plan) -> str:
    """What makes the plan unfit to be acted on, in words; empty when nothing does."""
    try:
        parse_time(plan.created_at)
    except ValueError:
        return f"createdAt {clean(plan.created_at)!r} is not a time with a zone"
    if plan.mode not in [mode.value for mode in Mode]:
        return f"mode {clean(plan.mode)!r} is not known"
    if not plan.cluster:
        return "it does not name its cluster"
    seen: set[str] = set()
    for number, move in enumerate(plan.moves):
        where = f"moves[{number}]"
        if not (move.pod.namespace and move.pod.name and move.pod.uid):
            return f"{where} has a pod without namespace, name or uid"
        if not move.source or not (move.destination or move.makes_room_for):
            return f"{where} has no source or no destination"
        if move.action not in _ACTIONS:
            return f"{where} has action {clean(move.action)!r}, which is neither evict nor annotate"
        if move.pod.uid in seen:
            return f"{where} moves pod {clean(move.pod.namespace)}/{clean(move.pod.name)} a second time"
        seen.add(move.pod.uid)
    return ""
