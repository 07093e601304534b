"""From the quotas of other systems to a `TenantQuotas` file: ResourceQuota, Kueue, KAI, Volcano, koordinator, scheduler-plugins.

Each of them means something else by the same words and counts in units of its own; what each field means stands where it is read. What
has no counterpart is left out and told in a note, which becomes a comment of the file: an operator reads it before it comes into force.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from rebalancer.errors import PolicyError
from rebalancer.policy.document import Value
from rebalancer.policy.tenants import GPU, GPU_MODEL
from rebalancer.policy.tenants_written import EVERYTHING, Amounts, Imported, tenants_text
from rebalancer.units import parse_quantity

Object = Mapping[str, Value]
WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
PRODUCT = "nvidia.com/gpu.product"
_KUEUE, _KAI, _VOLCANO = "kueue.x-k8s.io", "scheduling.run.ai", "scheduling.volcano.sh"
_KOORDINATOR, _PLUGINS = "scheduling.sigs.k8s.io", "scheduling.x-k8s.io"
_QUOTA_LABEL = "quota.scheduling.koordinator.sh/"


def import_tenants(objects: Iterable[Object]) -> str:
    """The text of a tenants file. Raises PolicyError where there is nothing to import, a parent is its own child, or a value is wrong."""
    by_kind: dict[tuple[str, str], list[Object]] = {}
    for each in _flat(objects):
        by_kind.setdefault((_text(each.get("apiVersion")).rpartition("/")[0], _text(each.get("kind"))), []).append(each)
    try:
        found = [
            *_resource_quotas(by_kind.get(("", "ResourceQuota"), [])),
            *_kueue(by_kind),
            *(_kai(each) for each in by_kind.get((_KAI, "Queue"), [])),
            *(_volcano(each) for each in by_kind.get((_VOLCANO, "Queue"), [])),
            *(_koordinator(each) for each in by_kind.get((_KOORDINATOR, "ElasticQuota"), [])),
            *(_plugins(each) for each in by_kind.get((_PLUGINS, "ElasticQuota"), [])),
        ]
    except ValueError as failure:
        raise PolicyError(f"a quota cannot be read: {failure}", remedy="correct the object, or leave it out") from None
    if not found:
        kinds = ", ".join(sorted(kind or "objects without a kind" for _, kind in by_kind)) or "nothing"
        raise PolicyError(
            f"there is no quota to import, only {kinds}",
            remedy="give ResourceQuota, ClusterQueue, Queue of KAI or Volcano, or ElasticQuota objects as YAML",
        )
    return tenants_text(found)


def _flat(objects: Iterable[Object]) -> Iterable[Object]:
    for each in objects:
        items = each.get("items")
        if _text(each.get("kind")).endswith("List") and isinstance(items, list):
            yield from _flat(item for item in items if isinstance(item, dict))
        else:
            yield each


def _resource_quotas(objects: Sequence[Object]) -> list[Imported]:
    """``hard`` is guaranteed and the limit. Extended resources stand as ``requests.NAME`` only; of several quotas the least counts."""
    hard: dict[str, Amounts] = {}
    notes: dict[str, list[str]] = {}
    for each in objects:
        namespace, spec = _meta(each, "namespace") or "default", _map(each, "spec")
        own, said = hard.setdefault(namespace, {}), notes.setdefault(namespace, [])
        if spec.get("scopes") or spec.get("scopeSelector"):
            said.append(f"ResourceQuota {_meta(each, 'name')} of {namespace} holds for some pods only, so it was left out")
            continue
        amounts: dict[str, Value] = {}
        for name, value in _map(spec, "hard").items():
            plain = name.removeprefix("requests.")
            if plain in ("cpu", "memory", "ephemeral-storage", "pods") or (plain != name and "/" in plain and "storageclass" not in plain):
                amounts[plain] = value
            else:
                said.append(f"{name} of ResourceQuota {_meta(each, 'name')} in {namespace} has no counterpart")
        for name, amount in _amounts(amounts).items():
            own[name] = min(amount, own.get(name, amount))
    return [
        Imported(
            ("ResourceQuota", namespace),
            guaranteed=own,
            limit=own,
            members=({"namespaces": [namespace]},),
            notes=tuple(notes[namespace]),
        )
        for namespace, own in hard.items()
        if own or notes[namespace]
    ]


def _kueue(by_kind: Mapping[tuple[str, str], Sequence[Object]]) -> list[Imported]:
    """Flavors of one GPU model are quotas of that model. Without a cohort nothing is borrowed."""
    models = {
        _meta(each, "name"): _text(_map(each, "spec", "nodeLabels").get(PRODUCT)) for each in by_kind.get((_KUEUE, "ResourceFlavor"), ())
    }
    local: dict[str, list[dict[str, Value]]] = {}
    for each in by_kind.get((_KUEUE, "LocalQueue"), ()):
        entry: dict[str, Value] = {"namespaces": [_meta(each, "namespace") or "default"], "queues": {"kueue": [_meta(each, "name")]}}
        local.setdefault(_text(_map(each, "spec").get("clusterQueue")), []).append(entry)
    queues = [_cluster_queue(each, models, local) for each in by_kind.get((_KUEUE, "ClusterQueue"), ())]
    cohorts = {}
    for each in by_kind.get((_KUEUE, "Cohort"), ()):
        spec, key = _map(each, "spec"), ("Cohort", _meta(each, "name"))
        parent = _text(spec.get("parentName") or spec.get("parent"))
        notes = (f"cohort {key[1]} has quotas of its own, which were left out",) if spec.get("resourceGroups") else ()
        cohorts[key] = Imported(key, parent=("Cohort", parent) if parent else None, weight=_weight(_map(spec, "fairSharing")), notes=notes)
    for named in [each.parent for each in (*queues, *cohorts.values()) if each.parent is not None]:
        cohorts.setdefault(named, Imported(named))  # a cohort is there as soon as something names it
    for queue in queues:  # what the queues are guaranteed is the cohort's, else it could not be held below it
        seen: set[tuple[str, str]] = set()
        above = queue.parent
        while above in cohorts and above not in seen:
            seen.add(above)
            for column, nominal in queue.guaranteed.items():
                cohorts[above].guaranteed[column] = cohorts[above].guaranteed.get(column, 0.0) + nominal
            above = cohorts[above].parent
    return [*cohorts.values(), *queues]


def _cluster_queue(each: Object, models: Mapping[str, str], local: Mapping[str, list[dict[str, Value]]]) -> Imported:
    """nominalQuota is guaranteed, with borrowingLimit the limit, what is over lendingLimit the floor."""
    spec, name = _map(each, "spec"), _meta(each, "name")
    cohort = _text(spec.get("cohortName") or spec.get("cohort"))
    guaranteed: Amounts = {}
    limit: Amounts = {}
    floor: Amounts = {}
    for group in _list(spec, "resourceGroups"):
        for flavor in _list(group, "flavors"):
            model = models.get(_text(flavor.get("name")), "")
            for quota in _list(flavor, "resources"):
                nominal = _quantity(quota.get("nominalQuota", 0))
                borrowing, lending = quota.get("borrowingLimit"), quota.get("lendingLimit")
                most = nominal if not cohort else EVERYTHING if borrowing is None else nominal + _quantity(borrowing)
                kept = 0.0 if lending is None or not cohort else max(nominal - _quantity(lending), 0.0)
                for column in _columns(_text(quota.get("name")), model):
                    guaranteed[column] = guaranteed.get(column, 0.0) + nominal
                    limit[column] = limit.get(column, 0.0) + most
                    floor[column] = floor.get(column, 0.0) + kept
    entries: tuple[dict[str, Value], ...] = ({"queues": {"kueueClusterQueue": [name]}}, *local.get(name, ()))
    return Imported(
        ("ClusterQueue", name),
        parent=("Cohort", cohort) if cohort else None,
        guaranteed=guaranteed,
        limit={column: most for column, most in limit.items() if most != EVERYTHING},
        floor={column: kept for column, kept in floor.items() if kept},
        weight=_weight(_map(spec, "fairSharing")),
        members=entries,
    )


def _kai(each: Object) -> Imported:
    """CPU in millicores, memory in 10^6 bytes. quota: -1 everything, 0 none; limit: -1 none, 0 or unset nothing beyond the quota."""
    spec, name = _map(each, "spec"), _meta(each, "name")
    guaranteed: Amounts = {}
    limit: Amounts = {}
    weights: list[float] = []
    for column, unit in (("gpu", 1.0), ("cpu", 1e-3), ("memory", 1e6)):
        said = _map(spec, "resources", column)
        quota, most = _number(said.get("quota")), _number(said.get("limit"))
        if quota:
            guaranteed[column] = EVERYTHING if quota < 0 else quota * unit if unit >= 1 else quota / 1000
        own = guaranteed.get(column, 0.0)
        if most >= 0 and own != EVERYTHING:
            limit[column] = max(own, most * unit if unit >= 1 else most / 1000)
        if "overQuotaWeight" in said:
            weights.append(_number(said["overQuotaWeight"]))
    notes = (f"queue {name} weighs otherwise by resource; the weight of the first is taken",) if len(set(weights)) > 1 else ()
    parent = _text(spec.get("parentQueue"))
    return Imported(
        ("KAI queue", name),
        parent=("KAI queue", parent) if parent else None,
        guaranteed=guaranteed,
        limit=limit,
        weight=next((weight for weight in weights if weight > 0), None),
        priority=int(_number(spec.get("priority", 100))),
        borrow=not weights or max(weights) > 0,
        members=({"queues": {"kai": [name]}},),
        notes=notes,
    )


def _volcano(each: Object) -> Imported:
    """deserved is lent and reclaimed, guarantee never lent, capability the most."""
    spec, name = _map(each, "spec"), _meta(each, "name")
    deserved, floor = _amounts(_map(spec, "deserved")), _amounts(_map(spec, "guarantee", "resource"))
    parent = _text(spec.get("parent"))
    notes = (
        (f"queue {name} is not reclaimable; what it borrows can be taken back all the same",) if spec.get("reclaimable") is False else ()
    )
    weight = _number(spec.get("weight", 0))
    return Imported(
        ("Volcano queue", name),
        parent=("Volcano queue", parent) if parent and parent != "root" else None,
        guaranteed={column: max(deserved.get(column, 0.0), floor.get(column, 0.0)) for column in (*deserved, *floor)},
        limit=_amounts(_map(spec, "capability")),
        floor=floor,
        weight=weight if weight > 0 else None,
        priority=int(_number(spec.get("priority", 0))),
        members=({"queues": {"volcano": [name]}},),
        notes=notes,
    )


def _koordinator(each: Object) -> Imported:
    """min is guaranteed and max the limit; the weight is of cpu, max where nothing else is said."""
    spec, name, labels = _map(each, "spec"), _meta(each, "name"), _map(each, "metadata", "labels")
    limit = _amounts(_map(spec, "max"))
    written = _text(_map(each, "metadata", "annotations").get(f"{_QUOTA_LABEL}shared-weight"))
    try:
        shared = json.loads(written) if written else {}
    except json.JSONDecodeError:
        raise ValueError(f"the shared-weight of ElasticQuota {name} is no JSON") from None
    weights = _amounts(shared) if isinstance(shared, dict) else {}
    weight = weights.get("cpu", limit.get("cpu", 0.0))
    parent = _text(labels.get(f"{_QUOTA_LABEL}parent"))
    return Imported(
        ("ElasticQuota", name),
        parent=("ElasticQuota", parent) if parent and not parent.startswith("koordinator-root") else None,
        guaranteed=_amounts(_map(spec, "min")),
        limit=limit,
        weight=weight if weight > 0 else None,
        lend=labels.get(f"{_QUOTA_LABEL}allow-lent-resource") not in ("false", False),
        members=({"queues": {"koordinator": [name]}},),
    )


def _plugins(each: Object) -> Imported:
    """min and max of a namespace."""
    spec, namespace = _map(each, "spec"), _meta(each, "namespace") or "default"
    return Imported(
        ("ElasticQuota of scheduler-plugins", namespace),
        guaranteed=_amounts(_map(spec, "min")),
        limit=_amounts(_map(spec, "max")),
        members=({"namespaces": [namespace]},),
    )


def _columns(name: str, model: str = "") -> tuple[str, ...]:
    if name not in WHOLE_GPUS:
        return (name,)
    return (GPU, f"{GPU_MODEL}{model}") if model else (GPU,)


def _amounts(said: Mapping[str, Value]) -> Amounts:
    found: Amounts = {}
    for name, value in said.items():
        for column in _columns(name):
            found[column] = found.get(column, 0.0) + _quantity(value)
    return found


def _quantity(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a Kubernetes quantity such as 500m, 2 or 4Gi")
    return parse_quantity(value) if isinstance(value, str) else float(value)


def _number(value: Value) -> float:
    return 0.0 if value is None else _quantity(value)


def _weight(sharing: Mapping[str, Value]) -> float | None:
    weight = _number(sharing.get("weight"))
    return weight if weight > 0 else None


def _map(value: Object, *keys: str) -> Mapping[str, Value]:
    for key in keys:
        below = value.get(key)
        if not isinstance(below, dict):
            return {}
        value = below
    return value


def _list(value: Object, key: str) -> list[Object]:
    below = value.get(key)
    return [each for each in below if isinstance(each, dict)] if isinstance(below, list) else []


def _meta(value: Object, key: str) -> str:
    return _text(_map(value, "metadata").get(key))


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
