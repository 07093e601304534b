"""Selectors and node terms: the worked examples of kube-scheduler's rules, and the table form equals the single form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.state.matching import (
    LabelIndex,
    in_namespaces,
    matches,
    namespaces_of_term,
    node_selector_matches,
    node_term_matches,
    node_terms_match,
    requirement_holds,
)
from rebalancer.state.scheduling import LabelSet, NodeTerm, PodTerm, Requirement, Selector

KEYS = st.sampled_from(["zone", "gen", "disk"])
VALUES = st.sampled_from(["a", "b", "8", "9", "v9", "-1", ""])
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
REQUIREMENTS = st.builds(
    Requirement,
    key=KEYS,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
    values=st.lists(VALUES, max_size=2).map(tuple),
)
FIELDS = st.builds(
    Requirement,
    key=st.sampled_from(["metadata.name", "spec.x"]),
    operator=st.sampled_from(["In", "NotIn", "Exists"]),
    values=st.lists(st.sampled_from(["n0", "n1", "gone"]), max_size=2).map(tuple),
)
TERMS = st.builds(NodeTerm, expressions=st.lists(REQUIREMENTS, max_size=2).map(tuple), fields=st.lists(FIELDS, max_size=1).map(tuple))


def _term(*expressions: Requirement) -> NodeTerm:
    return NodeTerm(expressions=expressions)


def test_e7_gt_is_a_strict_comparison_of_integers() -> None:
    """gen=9 is greater than 8, not greater than 9."""
    assert node_term_matches(_term(Requirement("gen", "Gt", ("8",))), {"gen": "9"}, "n")
    assert not node_term_matches(_term(Requirement("gen", "Gt", ("9",))), {"gen": "9"}, "n")


def test_e8_a_label_that_is_no_number_is_never_greater() -> None:
    """gen=v9 fails Gt, and is not in [v8]."""
    assert not node_term_matches(_term(Requirement("gen", "Gt", ("8",))), {"gen": "v9"}, "n")
    assert node_term_matches(_term(Requirement("gen", "NotIn", ("v8",))), {"gen": "v9"}, "n")


def test_e9_notin_and_doesnotexist_hold_for_an_absent_label() -> None:
    """A node without the gpu label matches both."""
    assert node_term_matches(_term(Requirement("gpu", "NotIn", ("a100",))), {}, "n")
    assert node_term_matches(_term(Requirement("gpu", "DoesNotExist")), {}, "n")


def test_e10_terms_are_ored_and_expressions_anded() -> None:
    """Neither [zone In b] nor [zone In a, disk Exists] matches a node with zone=a alone."""
    terms = (
        _term(Requirement("zone", "In", ("b",))),
        _term(Requirement("zone", "In", ("a",)), Requirement("disk", "Exists")),
    )
    assert not node_terms_match(terms, {"zone": "a"}, "n")
    assert node_terms_match(terms, {"zone": "a", "disk": "ssd"}, "n")


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    """None and {} are opposites."""
    assert not matches(None, {"a": "b"}.get)
    assert matches(Selector(), {}.get)


def test_an_empty_node_term_matches_nothing() -> None:
    """A term with neither expressions nor fields selects no node; nor does an empty list of terms."""
    assert not node_term_matches(NodeTerm(), {"a": "b"}, "n")
    assert not node_terms_match((), {"a": "b"}, "n")


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("a", "Near", ("b",)),
        Requirement("a", "In"),
        Requirement("a", "NotIn"),
        Requirement("a", "Exists", ("b",)),
        Requirement("a", "Gt", ("1", "2")),
        Requirement("a", "Lt", ("9223372036854775808",)),
    ],
)
def test_an_expression_that_cannot_be_parsed_holds_for_nothing(requirement: Requirement) -> None:
    """Neither a present nor an absent label satisfies it."""
    assert not requirement_holds(requirement, "1")
    assert not requirement_holds(requirement, None)


def test_a_term_that_cannot_be_parsed_leaves_its_siblings_alone() -> None:
    """The other term still decides."""
    terms = (_term(Requirement("zone", "Near", ("a",))), _term(Requirement("zone", "In", ("a",))))
    assert node_terms_match(terms, {"zone": "a"}, "n")


def test_match_fields_knows_the_name_alone() -> None:
    """metadata.name In and NotIn with one value; any other field matches nothing."""
    assert node_term_matches(NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)), {}, "n1")
    assert not node_term_matches(NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)), {}, "n1")
    assert not node_term_matches(NodeTerm(fields=(Requirement("metadata.name", "In", ("n1", "n2")),)), {}, "n1")
    assert not node_term_matches(NodeTerm(fields=(Requirement("spec.unschedulable", "In", ("true",)),)), {}, "n1")


def test_node_selector_pairs_must_all_be_equal() -> None:
    """One differing pair is enough to fail."""
    assert node_selector_matches((("a", "1"), ("b", "2")), {"a": "1", "b": "2"})
    assert not node_selector_matches((("a", "1"), ("b", "2")), {"a": "1"})


@given(rows=st.lists(LABELS, max_size=6), requirements=st.lists(REQUIREMENTS, max_size=3))
def test_the_mask_of_a_table_equals_the_rows_one_by_one(rows: list[dict[str, str]], requirements: list[Requirement]) -> None:
    """`LabelIndex.mask` is `matches` for every row."""
    selector = Selector(tuple(requirements))
    assert LabelIndex(rows).mask(selector).tolist() == [matches(selector, row.get) for row in rows]


@given(rows=st.lists(LABELS, max_size=3), terms=st.lists(TERMS, max_size=3))
def test_the_mask_of_node_terms_equals_the_nodes_one_by_one(rows: list[dict[str, str]], terms: list[NodeTerm]) -> None:
    """`LabelIndex.node_terms_mask` is `node_terms_match` for every node."""
    names = {f"n{row}": row for row in range(len(rows))}
    expected = [node_terms_match(terms, row, name) for row, name in zip(rows, names, strict=True)]
    assert LabelIndex(rows).node_terms_mask(terms, names).tolist() == expected


def test_masks_are_read_only_and_none_selects_no_row() -> None:
    """A shared mask cannot be changed by whoever got it."""
    index = LabelIndex([LabelSet("ns", (("app", "web"),)), LabelSet("ns", ())])
    mask = index.requirement_mask(Requirement("app", "Exists"))
    assert mask.tolist() == [True, False]
    assert not mask.flags.writeable
    assert not np.any(index.mask(None))
    assert index.pairs_mask([("app", "web")]).tolist() == [True, False]


def test_namespaces_of_a_term_default_to_the_owners() -> None:
    """Explicit names and the namespace selector are united; neither means the owner's own; {} means all."""
    labels = {"own": {}, "prod": {"env": "prod"}, "dev": {"env": "dev"}}
    prod = Selector((Requirement("env", "In", ("prod",)),))
    assert namespaces_of_term(PodTerm("zone", None), "own", labels) == {"own"}
    assert namespaces_of_term(PodTerm("zone", None, namespaces=("dev",), namespace_selector=prod), "own", labels) == {"dev", "prod"}
    assert namespaces_of_term(PodTerm("zone", None, namespace_selector=Selector()), "own", labels) == {"own", "prod", "dev"}


def test_in_namespaces_marks_label_sets() -> None:
    """Only those that live there."""
    assert in_namespaces([LabelSet("a"), LabelSet("b")], ["b", "c"]).tolist() == [False, True]
