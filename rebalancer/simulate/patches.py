"""The four kinds of PATCH in the extent that a rebalancer uses them: JSON merge patch, JSON patch, strategic merge and server-side apply.

Strategic merge knows the lists that matter here (taints by key and effect, conditions by type, owner references by uid, containers by
name, env and scheduling gates by name, tolerations atomic); every other list is replaced whole. Server-side apply keeps, per field
manager, the leaf fields of maps that it last applied, so that a field left out of the next apply is removed; conflicts between managers
are answered with 409 unless forced.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.world import Conflict

_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "taints": ("key", "effect"),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "schedulingGates": ("name",),
}
_OWNED = "rebalancer.simulate/applied."
"""Prefix of the manager names under which applied fields are remembered in managedFields."""


class PatchError(ValueError):
    """The patch is malformed, or cannot be applied to this object; ``failed_test`` when a JSON patch ``test`` did not hold."""

    def __init__(self, message: str, *, failed_test: bool = False) -> None:
        super().__init__(message)
        self.failed_test = failed_test


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_merge(target: Any, patch: Any, *, field: str = "") -> Any:
    """Strategic merge patch, with ``$patch: delete`` and ``$patch: replace`` in maps and in lists that have merge keys."""
    if isinstance(patch, list):
        return _merge_list(target, patch, field)
    if not isinstance(patch, dict):
        return deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: deepcopy(value) for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge(merged.get(key), value, field=key)
    return merged


def _merge_list(target: Any, patch: list[Any], field: str) -> list[Any]:
    keys = _MERGE_KEYS.get(field)
    if keys is None or not isinstance(target, list):
        return [deepcopy(item) for item in patch if not (isinstance(item, dict) and item.get("$patch"))]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [deepcopy(item) for item in patch if item.get("$patch") != "replace"]
    merged = list(target)
    for item in patch:
        wanted = tuple(item.get(key) for key in keys)
        index = next((i for i, old in enumerate(merged) if tuple(old.get(key) for key in keys) == wanted), None)
        if item.get("$patch") == "delete":
            if index is not None:
                del merged[index]
        elif index is None:
            merged.append(deepcopy(item))
        else:
            merged[index] = strategic_merge(merged[index], item)
    return merged


def json_patch(target: Json, operations: object) -> Json:
    """RFC 6902 with add, remove, replace, test, copy and move."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    document: Json = deepcopy(target)
    for operation in operations:
        try:
            _apply_operation(document, operation)
        except (KeyError, IndexError, TypeError) as error:
            raise PatchError(f"the JSON patch operation {json.dumps(operation)} cannot be applied: {error!r}") from error
    return document


def _steps(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise PatchError(f"{pointer!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _child(holder: Any, step: str) -> Any:
    return holder[int(step)] if isinstance(holder, list) else holder[step]


def _holder(document: Json, pointer: str) -> tuple[Any, str]:
    steps = _steps(pointer)
    holder: Any = document
    for step in steps[:-1]:
        holder = _child(holder, step)
    return holder, steps[-1]


def _add(document: Json, pointer: str, value: Any) -> None:
    holder, last = _holder(document, pointer)
    if isinstance(holder, list):
        position = len(holder) if last == "-" else int(last)
        if not 0 <= position <= len(holder):
            raise IndexError(position)
        holder.insert(position, value)
    else:
        holder[last] = value


def _take(document: Json, pointer: str) -> Any:
    holder, last = _holder(document, pointer)
    return holder.pop(int(last) if isinstance(holder, list) else last)


def _apply_operation(document: Json, operation: Json) -> None:
    name, pointer = operation["op"], operation["path"]
    if name == "add":
        _add(document, pointer, deepcopy(operation["value"]))
    elif name == "remove":
        _take(document, pointer)
    elif name == "replace":
        holder, last = _holder(document, pointer)
        _child(holder, last)
        holder[int(last) if isinstance(holder, list) else last] = deepcopy(operation["value"])
    elif name == "test":
        try:
            actual = _child(*_holder(document, pointer))
        except (KeyError, IndexError):
            actual = None
        if actual != operation.get("value"):
            raise PatchError(f"the test operation on {pointer} does not hold", failed_test=True)
    elif name in ("copy", "move"):
        value = _take(document, operation["from"]) if name == "move" else deepcopy(_child(*_holder(document, operation["from"])))
        _add(document, pointer, value)
    else:
        raise PatchError(f"unknown JSON patch operation {name!r}")


def _leaves(value: Json, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item:
            found.update(_leaves(item, (*path, key)))
        else:
            found[(*path, key)] = item
    return found


def _at(value: Json, path: tuple[str, ...]) -> Any:
    current: Any = value
    for step in path:
        if not isinstance(current, dict) or step not in current:
            return None
        current = current[step]
    return current


def _without(value: Json, path: tuple[str, ...]) -> Json:
    head, *rest = path
    if head not in value:
        return value
    if not rest:
        return {key: item for key, item in value.items() if key != head}
    return {**value, head: _without(value[head], tuple(rest))} if isinstance(value[head], dict) else value


def own_annotations(before: Json, after: Json, *, manager: str) -> Json:
    """``after`` with ``managedFields`` that say who wrote its annotations: whoever changed one owns it alone, who is gone owns nothing.

    Only of annotations; that is what a rebalancer asks about.
    """
    old, new = (value.get("metadata", {}).get("annotations") or {} for value in (before, after))
    changed = {f"f:{key}" for key in new if key not in old or old[key] != new[key]}
    if not changed and old.keys() <= new.keys():
        return after
    records: list[Json] = []
    mine: Json = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    owned: Json = {key: {} for key in sorted(changed)}
    for record in after["metadata"].get("managedFields") or ():
        fields = record.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations")
        if fields is None:
            records.append(record)
            continue
        kept = {key: item for key, item in fields.items() if key not in changed and key.removeprefix("f:") in new}
        if record.get("manager") == manager:
            owned = kept | owned
        elif kept:
            records.append({**record, "fieldsV1": {"f:metadata": {"f:annotations": kept}}})
    if owned:
        records.append({**mine, "fieldsV1": {"f:metadata": {"f:annotations": owned}}})
    return {**after, "metadata": {**after["metadata"], "managedFields": records}}


def apply(target: Json, wanted: Json, *, manager: str, force: bool) -> Json:
    """Server-side apply in small. Raises Conflict when another manager applied a field of ``wanted`` with another value."""
    identity = {
        ("apiVersion",),
        ("kind",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "uid"),
        ("metadata", "resourceVersion"),
    }
    fields = {path: value for path, value in _leaves(wanted).items() if path not in identity and path[:2] != ("metadata", "managedFields")}
    others: list[Json] = []
    previous: set[tuple[str, ...]] = set()
    for record in target.get("metadata", {}).get("managedFields") or ():
        owned = {tuple(path) for path in json.loads(record.get("fieldsV1", {}).get(_OWNED, "[]"))}
        if record.get("manager") == manager:
            previous = owned
            continue
        clash = sorted(path for path in owned & fields.keys() if _at(target, path) != fields[path])
        if clash and not force:
            named = ", ".join("." + ".".join(path) for path in clash)
            raise Conflict(f'Apply failed with {len(clash)} conflict: conflict with "{record["manager"]}": {named}')
        left = sorted(owned - set(clash))
        if not owned:
            others.append(record)
        elif left:
            others.append({**record, "fieldsV1": {_OWNED: json.dumps(left)}})
    result = target
    for path in sorted(previous - fields.keys()):
        if not any(list(path) in json.loads(record["fieldsV1"].get(_OWNED, "[]")) for record in others):
            result = _without(result, path)
    result = strategic_merge(result, {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind")})
    mine = {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {_OWNED: json.dumps(sorted(fields))}}
    result["metadata"] = {**result["metadata"], "managedFields": [*others, mine]}
    return dict(result)
