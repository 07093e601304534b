"""From tenants as other systems know them to the text of a tenants file: nested, names made unique, notes as comments at its head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from rebalancer.errors import PolicyError
from rebalancer.policy.document import Value

Amounts = dict[str, float]
EVERYTHING = float("inf")


@dataclass(frozen=True)
class Imported:
    """A tenant as another system knows it. ``key`` and ``parent`` are names within that system."""

    key: tuple[str, str]
    parent: tuple[str, str] | None = None
    guaranteed: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    floor: Amounts = field(default_factory=dict)
    weight: float | None = None
    priority: int = 0
    borrow: bool = True
    lend: bool = True
    members: tuple[dict[str, Value], ...] = ()
    notes: tuple[str, ...] = ()


def tenants_text(found: Sequence[Imported]) -> str:
    """Raises PolicyError where a parent is below itself."""
    known = {each.key: each for each in found}
    notes = [note for each in found for note in each.notes]
    placed: list[Imported] = []
    for each in known.values():
        if each.parent is not None and each.parent not in known:
            notes.append(f"{each.key[0]} {each.key[1]} is below {each.parent[1]}, which was not given")
            each = replace(each, parent=None)
        placed.append(each)
    below: dict[tuple[str, str] | None, list[Imported]] = {}
    for each in placed:
        below.setdefault(each.parent, []).append(each)
    names: dict[str, tuple[str, str]] = {}
    written: set[tuple[str, str]] = set()

    def entry(each: Imported) -> dict[str, Value]:
        written.add(each.key)
        name = _free_name(each.key[1], names)
        names[name] = each.key
        if name != each.key[1]:
            notes.append(f"{each.key[0]} {each.key[1]} is called {name} here")
        children: list[Value] = [entry(child) for child in below.get(each.key, ())]
        if not children and not each.members:
            notes.append(f"{each.key[0]} {each.key[1]} has no members")
        return _entry(each, name, children)

    tenants: list[Value] = [entry(each) for each in below.get(None, ())]
    circle = sorted(key[1] for key in known.keys() - written)
    if circle:
        raise PolicyError(f"each of {', '.join(circle)} is below itself", remedy="correct the parents of these queues")
    document = {
        "apiVersion": "rebalancer.dev/v1alpha1",
        "kind": "TenantQuotas",
        "metadata": {"name": "imported"},
        "spec": {"tenants": tenants},
    }
    comments = "".join(f"# {note}\n" for note in notes)
    return comments + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=140)


def _entry(each: Imported, name: str, children: list[Value]) -> dict[str, Value]:
    made: dict[str, Value] = {"name": name}
    for key, amounts in (("guaranteed", each.guaranteed), ("limit", each.limit), ("floor", each.floor)):
        if amounts:
            made[key] = {column: _written(column, amount) for column, amount in amounts.items()}
    if each.weight is not None:
        made["weight"] = each.weight
    if each.priority:
        made["priority"] = each.priority
    if not each.borrow:
        made["borrow"] = False
    if not each.lend:
        made["lend"] = False
    if children:
        made["tenants"] = children
    elif each.members:
        made["members"] = list(each.members)
    return made


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    plain = name.lower().replace(".", "-")[:60].strip("-")
    number, free = 2, plain
    while free in taken:
        free, number = f"{plain[:58]}-{number}", number + 1
    return free


def _written(column: str, amount: float) -> Value:
    if amount == EVERYTHING:
        return "100%"
    if column in ("memory", "ephemeral-storage"):
        for suffix, size in (("Gi", 2**30), ("Mi", 2**20), ("M", 10**6)):
            if amount and amount % size == 0:
                return f"{int(amount // size)}{suffix}"
    return int(amount) if amount == int(amount) else amount
