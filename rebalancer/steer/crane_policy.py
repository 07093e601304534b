"""The policy file of crane-scheduler, read as it is: which series count, how long they are fresh, where a node is too hot, what they weigh.

The format has a misspelt key of its own, ``maxLimitPecent``. The correct spelling is read too, and said: crane-scheduler itself would
refuse the file. A series that nobody here writes is said too, and read all the same, for somebody else may write it. What is wrong in the
file itself is a `PolicyError` as for any other file; it is for the caller to go on with the last good one.

Source of the format and of the defaults: ``scheduler.policy.crane.io/v1alpha1`` of crane-scheduler, October 2023.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from rebalancer.errors import PolicyError
from rebalancer.policy.document import Document, KeyPath, Mistake, Value, dotted, parse_document, read_text
from rebalancer.policy.loader import check_header, validated
from rebalancer.policy.mistakes import failure_of, nearest
from rebalancer.policy.quantities import Strict
from rebalancer.steer.load_annotations import SERIES

API_VERSION = "scheduler.policy.crane.io/v1alpha1"
KIND = "DynamicSchedulerPolicy"
EXTRA_ACTIVE_S = 300.0
"""A value stays fresh for its period and this much longer."""
LIMIT_KEY = "maxLimitPecent"
_LIMIT_SPELT_RIGHT = "maxLimitPercent"
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_GO_DURATION = re.compile(rf"\+?(?:{_GO_PART.pattern})+")


def go_duration(text: object) -> float:
    """Seconds of a duration as Go writes it: ``3m``, ``1h30m``, ``1.5h``, ``0``. Raises ValueError."""
    if text in ("0", "+0"):
        return 0.0
    if not isinstance(text, str) or _GO_DURATION.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a duration such as 3m, 15m or 1h30m")
    return sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PART.findall(text))


GoDuration = Annotated[float, BeforeValidator(go_duration)]
SeriesName = Annotated[str, Field(min_length=1, max_length=253)]


class SyncRule(Strict):
    """How often a series is written. Without one, or with period 0, the series is ignored."""

    name: SeriesName
    period: GoDuration


class LimitRule(Strict):
    """A node over the limit is refused; 0 refuses none."""

    name: SeriesName
    limit: float = Field(alias=LIMIT_KEY, ge=0, allow_inf_nan=False)
    """A fraction: 0.65 is 65 %."""


class WeightRule(Strict):
    name: SeriesName
    weight: float = Field(ge=0, allow_inf_nan=False)


class HotRule(Strict):
    """So many bindings in so much time make a node hot by 1."""

    time_range: GoDuration
    count: int = Field(ge=1)


class CraneSpec(Strict):
    sync_policy: tuple[SyncRule, ...] = ()
    predicate: tuple[LimitRule, ...] = ()
    priority: tuple[WeightRule, ...] = ()
    hot_value: tuple[HotRule, ...] = ()


class _CraneFile(Strict):
    api_version: Literal["scheduler.policy.crane.io/v1alpha1"]
    kind: Literal["DynamicSchedulerPolicy"]
    spec: CraneSpec


@dataclass(frozen=True, slots=True)
class CranePolicy:
    spec: CraneSpec
    notes: tuple[str, ...] = ()
    """What is odd in the file and does no harm, a sentence each, to be said once when it is read."""

    def fresh_for_s(self, name: str) -> float:
        """Seconds after its timestamp that a value of the series counts; 0 for a series that is ignored. The first period that is not 0
        wins, as in crane-scheduler."""
        return next((rule.period + EXTRA_ACTIVE_S for rule in self.spec.sync_policy if rule.name == name and rule.period > 0), 0.0)

    @property
    def names(self) -> tuple[str, ...]:
        """Every series that the policy reads, each once."""
        limits, weights = (rule.name for rule in self.spec.predicate), (rule.name for rule in self.spec.priority)
        return tuple(dict.fromkeys((*limits, *weights)))


def _default() -> CranePolicy:
    periods = {"avg_5m": 180.0, "max_avg_1h": 900.0, "max_avg_1d": 10800.0}
    limits = {"avg_5m": 0.65, "max_avg_1h": 0.75}
    weights = {"avg_5m": 0.2, "max_avg_1h": 0.3, "max_avg_1d": 0.5}
    kinds = ("cpu_usage_", "mem_usage_")
    return CranePolicy(
        CraneSpec(
            sync_policy=tuple(SyncRule.model_construct(name=k + s, period=p) for k in kinds for s, p in periods.items()),
            predicate=tuple(LimitRule.model_construct(name=k + s, limit=p) for k in kinds for s, p in limits.items()),
            priority=tuple(WeightRule.model_construct(name=k + s, weight=w) for k in kinds for s, w in weights.items()),
            hot_value=(HotRule.model_construct(time_range=300.0, count=5), HotRule.model_construct(time_range=60.0, count=2)),
        )
    )


DEFAULT = _default()
"""What crane-scheduler is shipped with."""


def load_crane_policy(path: Path) -> CranePolicy:
    """Read a policy file. Raises PolicyError, whose ``mistakes`` hold every mistake that was found."""
    return parse_crane_policy(read_text(path, what="scheduler policy", error=PolicyError), origin=str(path))


def parse_crane_policy(text: str, *, origin: str) -> CranePolicy:
    """The text of a policy file; ``origin`` is what the sentences call it. Raises PolicyError as `load_crane_policy` does."""
    document = parse_document(text, origin=origin, what="scheduler policy", error=PolicyError)
    check_header(document, kind=KIND, error=PolicyError, versions=(API_VERSION,))
    document, spelling = _with_own_spelling(document)
    spec = validated(document, _CraneFile, error=PolicyError).spec
    return CranePolicy(spec, notes=(*spelling, *_oddities(spec, document)))


def _with_own_spelling(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document with the limit's key as the format spells it, and what there is to say about it."""
    rules = document.value_of(("spec", "predicate"))
    if not isinstance(rules, list) or not any(isinstance(rule, dict) and _LIMIT_SPELT_RIGHT in rule for rule in rules):
        return document, ()
    made: list[Value] = []
    lines = dict(document.lines)
    for row, rule in enumerate(rules):
        if isinstance(rule, dict) and _LIMIT_SPELT_RIGHT in rule:
            here = ("spec", "predicate", row)
            if LIMIT_KEY in rule:
                twice = Mistake(
                    (*here, _LIMIT_SPELT_RIGHT),
                    document.line_of((*here, _LIMIT_SPELT_RIGHT)),
                    f"the limit is written twice, also as {LIMIT_KEY}",
                    "keep one of the two",
                )
                raise failure_of([*document.mistakes, twice], origin=document.origin, error=PolicyError)
            lines[(*here, LIMIT_KEY)] = document.lines[(*here, _LIMIT_SPELT_RIGHT)]
            rule = {LIMIT_KEY if key == _LIMIT_SPELT_RIGHT else key: value for key, value in rule.items()}
        made.append(rule)
    root, spec = document.value, document.value_of(("spec",))
    if not isinstance(root, dict) or not isinstance(spec, dict):  # there is a spec.predicate, so both are
        return document, ()
    value: Value = {**root, "spec": {**spec, "predicate": made}}
    note = f"{document.origin}: {_LIMIT_SPELT_RIGHT} is read as {LIMIT_KEY}, which is how the format spells it; crane-scheduler refuses it"
    return replace(document, value=value, lines=lines), (note,)


def _oddities(spec: CraneSpec, document: Document) -> Iterator[str]:
    """Names that nobody writes, series that have no period, limits that cannot be reached."""
    policy = CranePolicy(spec)
    named: dict[str, KeyPath] = {}
    parts = {
        "syncPolicy": [rule.name for rule in spec.sync_policy],
        "predicate": [rule.name for rule in spec.predicate],
        "priority": [rule.name for rule in spec.priority],
    }
    for part, names in parts.items():
        for row, name in enumerate(names):
            named.setdefault(name, ("spec", part, row))
    for name, path in named.items():
        where = f"{document.origin}, line {document.line_of(path)}, {dotted(path)}"
        used = name in policy.names
        if name not in SERIES:
            close = nearest(name, SERIES)
            meant = f"; did you mean {close}?" if close else ""
            yield f"{where}: {name} is none of the series that are known here, and is read all the same{meant}"
        if used and not policy.fresh_for_s(name):
            yield f"{where}: {name} is ignored, for spec.syncPolicy has no period for it"
    for row, rule in enumerate(spec.predicate):
        if rule.limit > 1:
            at = ("spec", "predicate", row)
            where = f"{document.origin}, line {document.line_of(at)}, {dotted(at)}"
            yield f"{where}: the limit {rule.limit:g} is a fraction, {rule.limit * 100:g} % of the node; 0.65 is 65 %"
