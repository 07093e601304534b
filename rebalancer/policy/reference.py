"""The reference of policy files, generated from the models: one section a level, one row a key, and examples that load.

It is generated because a reference that is written by hand is wrong after the second change. The words for types are those that an
operator writes, not those of Python; `settings.reference` uses the same ones. Meanings are the docstrings of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rebalancer.policy.defragment import Defragment
from rebalancer.policy.examples import EXAMPLES
from rebalancer.policy.gpu import ExtendedResource, Gpu, Gpushare, Hami
from rebalancer.policy.gpu_holders import Idle, Overuse
from rebalancer.policy.gpu_metrics import GpuMetrics
from rebalancer.policy.hotness import Anticipation, Capacity, Confirm, Metrics, Pool, Risk, SignalQueries, Threshold
from rebalancer.policy.model import (
    API_VERSION,
    Breaker,
    Budgets,
    ClassRules,
    Cooldown,
    Gain,
    Names,
    Quarantine,
    Spec,
    Steering,
    Victims,
)
from rebalancer.policy.quantities import (
    CountOrPercent,
    DnsLabel,
    Duration,
    LabelExpression,
    LabelSelector,
    Percent,
    Priority,
    SignalName,
    TimeZone,
    write_duration,
)
from rebalancer.policy.reclaim import Reclaim

Words = Sequence[tuple[object, str]]
"""(type alias, what people call it)."""

LEVELS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("spec", Spec),
    ("spec.pools[]", Pool),
    ("spec.pools[].signals.NAME", Threshold),
    ("spec.pools[].nodeSelector", LabelSelector),
    ("spec.pools[].nodeSelector.matchExpressions[]", LabelExpression),
    ("spec.signals[]", SignalQueries),
    ("spec.signals[].capacity", Capacity),
    ("spec.metrics", Metrics),
    ("spec.confirm", Confirm),
    ("spec.risk", Risk),
    ("spec.anticipation", Anticipation),
    ("spec.budgets", Budgets),
    ("spec.cooldown", Cooldown),
    ("spec.victims", Victims),
    ("spec.victims.classes", ClassRules),
    ("spec.victims.namespaces", Names),
    ("spec.gain", Gain),
    ("spec.steering", Steering),
    ("spec.breaker", Breaker),
    ("spec.quarantine", Quarantine),
    ("spec.reclaim", Reclaim),
    ("spec.defragment", Defragment),
    ("spec.gpu", Gpu),
    ("spec.gpu.gpushare", Gpushare),
    ("spec.gpu.hami", Hami),
    ("spec.gpu.metrics", GpuMetrics),
    ("spec.gpu.idle", Idle),
    ("spec.gpu.overuse", Overuse),
)
"""(where it stands in a file, its model), in the order of the page."""

POLICY_WORDS: Words = (
    (Duration, "duration"),
    (Percent, "percent"),
    (CountOrPercent, "count or percent"),
    (Priority, "PriorityClass or whole number"),
    (DnsLabel, "name"),
    (SignalName, "name of a signal"),
    (ExtendedResource, "name of an extended resource"),
    (TimeZone, "time zone"),
)
_PLAIN: Words = ((bool, "true or false"), (int, "whole number"), (float, "number"), (str, "text"))

_HEAD = f"""# Policy

A policy says what is wanted: what *hot* means, what may be moved, and how much of it. Where things are is in the
[settings](settings.md). Every key has a safe default, so a file holds only what differs; [config/policy.yaml](../config/policy.yaml)
shows all of them. Whatever is allowed here, the [gates](gates.md) are asked for every pod, and [how it decides](how-it-decides.md)
tells what is done with the answers.

`rebalancer policy validate FILE` says what a file would do. An unknown key, at any level, is an error that names its line. A file that
is edited while the service runs is read again; a broken edit keeps the last good policy in force.

| type | written as |
|---|---|
| duration | `90s`, `5m`, `1h30m`, `2d`, or a plain number of seconds |
| percent | a number from 0 to 100, without a sign: `70` |
| count or percent | a whole number, `5`, or a percentage, `10%` |

Every example below is a whole policy after these two lines:

```
apiVersion: {API_VERSION}
kind: RebalancePolicy
```

This page is generated from the models; `make docs` writes it.
"""


def policy_markdown() -> str:
    """The content of docs/policy.md."""
    return _HEAD + "".join(f"\n{section}" for section in (_section(path, model) for path, model in LEVELS))


def _section(path: str, model: type[BaseModel]) -> str:
    parts = [f"## {model.__name__}\n\n`{path}`: {sentence(model.__doc__)}\n", table(("key", "type", "default", "meaning"), _rows(model))]
    parts += [f"{example.title}:\n\n```yaml\n{example.text}```\n" for example in EXAMPLES if example.level == model.__name__]
    return "\n".join(parts)


def _rows(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (
            f"`{field.alias or name}`",
            type_words(model, name, words=POLICY_WORDS),
            default_words(model, name),
            sentence(field.description),
        )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines).replace("| --- |", "|---|").replace(" --- |", "---|")


def sentence(text: str | None) -> str:
    """A docstring as a paragraph of Markdown."""
    return " ".join((text or "").split()).replace("``", "`")


def hint_of(model: type[BaseModel], name: str) -> object:
    """The annotation of a field with its aliases still to be told apart."""
    hint: object = get_type_hints(model, include_extras=True)[name]
    return hint


def type_words(model: type[BaseModel], name: str, *, words: Words) -> str:
    """What may stand there, as people say it: ``duration, at least 30s``. ``words`` name the aliases that are more than a Python type."""
    hint = hint_of(model, name)
    field = model.model_fields[name]
    called = _called(hint, words)
    spans = _bounds(field, duration=hint is Duration) if hint is not Percent else ""
    return f"{called}, {spans}" if spans else called


def _called(hint: object, words: Words) -> str:
    for alias, word in (*words, *_PLAIN):
        if hint is alias:
            return word
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _called(arguments[0], words)
    if origin in (Union, UnionType):
        return " or ".join(_called(each, words) for each in arguments if each is not NoneType)
    if origin is Literal:
        return _choice(arguments)
    if origin is tuple:
        return f"list of {_called(arguments[0], words)}"
    if origin is dict:
        return f"mapping of {_called(arguments[0], words)} to {_called(arguments[1], words)}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([member.value for member in hint])
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    raise TypeError(f"the reference has no word for {hint!r}")


def _choice(values: Iterable[object]) -> str:
    *most, last = [f"`{_scalar(value)}`" for value in values]
    return f"{', '.join(most)} or {last}" if most else last


def _bounds(field: FieldInfo, *, duration: bool) -> str:
    """``1 to 120``, ``at least 30s``, ``above 0``; empty when a value may be anything. Lengths are left to the loader."""
    found = {
        bound: getattr(rule, bound) for rule in field.metadata for bound in ("ge", "gt", "le") if getattr(rule, bound, None) is not None
    }
    told = {bound: write_duration(value) if duration else f"{value:g}" for bound, value in found.items()}
    if "ge" in told and "le" in told:
        return f"{told['ge']} to {told['le']}"
    low = f"at least {told['ge']}" if "ge" in told else f"above {told['gt']}" if "gt" in told else ""
    return " and ".join(part for part in (low, f"at most {told['le']}" if "le" in told else "") if part)


def default_words(model: type[BaseModel], name: str) -> str:
    """The default as a file would hold it; for a level of its own, where it is explained."""
    field = model.model_fields[name]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return "see there"
    if isinstance(value, tuple) and any(isinstance(each, BaseModel) for each in value):
        return "[see the file](../config/policy.yaml)"
    if value is None:
        return "none"
    if hint_of(model, name) is Duration:
        return f"`{write_duration(value)}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(_scalar, value))}]`"
    return f"`{_scalar(value)}`"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)
