"""Label selectors and node terms: one object at a time, or a whole table at once.

The rules are those of the API machinery and of kube-scheduler: ``In``, ``Exists``, ``Gt``, ``Lt`` need the label, ``NotIn`` and
``DoesNotExist`` hold without it; ``Gt`` and ``Lt`` compare 64-bit integers; an expression that cannot be parsed (an unknown operator,
``In`` without values) holds for nothing, so the term that contains it matches nothing while its siblings still can.
An absent selector matches nothing, an empty one everything; a node term without any expression matches nothing.

A table has thousands of rows but few distinct values of a label, so `LabelIndex` decides each expression once per distinct value and
spreads the verdicts over the rows by number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from rebalancer.state.arrays import BoolArray, IntArray, frozen
from rebalancer.state.scheduling import LabelSet, NodeTerm, PodTerm, Requirement, Selector

Lookup = Callable[[str], str | None]
"""label key -> value, or None where the label is absent."""

_INTEGER = re.compile(r"^[+-]?[0-9]+$")
_INT64_MAX = 2**63 - 1
_NAME_FIELD = "metadata.name"


class HasLabels(Protocol):
    """Anything that answers ``get(key)``: a mapping of labels or a `LabelSet`."""

    def get(self, key: str, /) -> str | None: ...


def requirement_holds(requirement: Requirement, value: str | None) -> bool:
    """Whether one expression holds for the value of its label (None: the label is absent)."""
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return bool(values) and (value is None or value not in values)
    if operator == "Exists":
        return value is not None and not values
    if operator == "DoesNotExist":
        return value is None and not values
    if operator in ("Gt", "Lt") and len(values) == 1 and value is not None:
        have, bound = _int64(value), _int64(values[0])
        if have is None or bound is None:
            return False
        return have > bound if operator == "Gt" else have < bound
    return False


def _int64(text: str) -> int | None:
    if _INTEGER.match(text) is None:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def matches(selector: Selector | None, get: Lookup) -> bool:
    """Whether labels match a selector. None matches nothing, a selector without requirements everything."""
    return selector is not None and all(requirement_holds(r, get(r.key)) for r in selector.requirements)


def node_selector_matches(pairs: Iterable[tuple[str, str]], labels: Mapping[str, str]) -> bool:
    """Whether every ``nodeSelector`` pair equals the node's label."""
    return all(labels.get(key) == value for key, value in pairs)


def node_term_matches(term: NodeTerm, labels: Mapping[str, str], name: str) -> bool:
    """Whether one nodeSelectorTerm matches a node; a term with neither expressions nor fields matches none."""
    if not term.expressions and not term.fields:
        return False
    return all(requirement_holds(r, labels.get(r.key)) for r in term.expressions) and all(_field_holds(r, name) for r in term.fields)


def node_terms_match(terms: Iterable[NodeTerm], labels: Mapping[str, str], name: str) -> bool:
    """Whether at least one term matches; no term at all matches nothing."""
    return any(node_term_matches(term, labels, name) for term in terms)


def _field_holds(requirement: Requirement, name: str) -> bool:
    """matchFields knows ``metadata.name`` with ``In`` or ``NotIn`` and exactly one value; everything else cannot be parsed."""
    if requirement.key != _NAME_FIELD or len(requirement.values) != 1:
        return False
    if requirement.operator == "In":
        return name == requirement.values[0]
    return requirement.operator == "NotIn" and name != requirement.values[0]


class LabelIndex:
    """The labels of many rows, by key and distinct value, so that a selector costs one look-up a row.

    Build it once a cycle over `Nodes.labels` or over ``ClusterState.label_sets``. It only caches: equal questions give equal answers.
    Masks that it returns are shared and read-only.
    """

    def __init__(self, rows: Sequence[HasLabels]) -> None:
        self._rows = rows
        self._columns: dict[str, tuple[IntArray, tuple[str | None, ...]]] = {}
        self._numbers: dict[str, dict[str | None, int]] = {}
        self._masks: dict[Requirement, BoolArray] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, key: str) -> tuple[IntArray, tuple[str | None, ...]]:
        """((rows,) number of each row's value, the distinct values). The value None, always number 0, is an absent label."""
        found = self._columns.get(key)
        if found is None:
            numbers: dict[str | None, int] = {None: 0}
            codes = np.fromiter(
                (numbers.setdefault(row.get(key), len(numbers)) for row in self._rows), dtype=np.int64, count=len(self._rows)
            )
            frozen(codes)
            found = self._columns[key] = (codes, tuple(numbers))
            self._numbers[key] = numbers
        return found

    def requirement_mask(self, requirement: Requirement) -> BoolArray:
        """(rows,) bool: where one expression holds."""
        mask = self._masks.get(requirement)
        if mask is None:
            codes, values = self.column(requirement.key)
            if requirement.operator in ("In", "NotIn") and requirement.values:  # a few values of many: the others need no look
                named = [number for value in requirement.values if (number := self._numbers[requirement.key].get(value)) is not None]
                verdicts = np.full(len(values), requirement.operator == "NotIn", dtype=np.bool_)
                verdicts[named] = requirement.operator == "In"
            else:
                verdicts = np.array([requirement_holds(requirement, value) for value in values], dtype=np.bool_)
            mask = self._masks[requirement] = verdicts[codes]
            frozen(mask)
        return mask

    def mask(self, selector: Selector | None) -> BoolArray:
        """(rows,) bool: where a selector matches; nowhere for None."""
        if selector is None:
            return np.zeros(len(self._rows), dtype=np.bool_)
        return self._all(selector.requirements)

    def pairs_mask(self, pairs: Iterable[tuple[str, str]]) -> BoolArray:
        """(rows,) bool: where every ``nodeSelector`` pair equals the label."""
        return self._all(Requirement(key, "In", (value,)) for key, value in pairs)

    def node_terms_mask(self, terms: Iterable[NodeTerm], rows_by_name: Mapping[str, int]) -> BoolArray:
        """(rows,) bool: where at least one term matches; ``rows_by_name`` is `ClusterState.node_index`."""
        result = np.zeros(len(self._rows), dtype=np.bool_)
        for term in terms:
            if term.expressions or term.fields:
                result |= self._all(term.expressions) & self._fields_mask(term.fields, rows_by_name)
        return result

    def _all(self, requirements: Iterable[Requirement]) -> BoolArray:
        result = np.ones(len(self._rows), dtype=np.bool_)
        for requirement in requirements:
            result &= self.requirement_mask(requirement)
        return result

    def _fields_mask(self, fields: Iterable[Requirement], rows_by_name: Mapping[str, int]) -> BoolArray:
        result = np.ones(len(self._rows), dtype=np.bool_)
        for requirement in fields:
            if requirement.key != _NAME_FIELD or len(requirement.values) != 1 or requirement.operator not in ("In", "NotIn"):
                return np.zeros(len(self._rows), dtype=np.bool_)
            here = np.zeros(len(self._rows), dtype=np.bool_)
            row = rows_by_name.get(requirement.values[0])
            if row is not None:
                here[row] = True
            result &= here if requirement.operator == "In" else ~here
        return result


def in_namespaces(label_sets: Sequence[LabelSet], names: Iterable[str]) -> BoolArray:
    """(label sets,) bool: which of them live in one of the namespaces."""
    wanted = frozenset(names)
    return np.fromiter((row.namespace in wanted for row in label_sets), dtype=np.bool_, count=len(label_sets))


def namespaces_of_term(term: PodTerm, owner_namespace: str, namespaces: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """The namespaces whose pods a (anti-)affinity term looks at; ``namespaces`` is name -> labels."""
    if not term.namespaces and term.namespace_selector is None:
        return frozenset((owner_namespace,))
    selected = (name for name, labels in namespaces.items() if matches(term.namespace_selector, labels.get))
    return frozenset((*term.namespaces, *selected))
