"""What the policy loader accepts, and the sentence for everything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import PolicyError
from rebalancer.policy.document import MAX_BYTES
from rebalancer.policy.loader import load_policy, parse_policy
from rebalancer.policy.model import Mode, RebalancePolicy, built_in_policy
from tests.policy.writing import HEADER, policy, policy_text, refusal, told

COMMITTED = Path(__file__).parents[2] / "config"


def test_an_empty_spec_is_the_built_in_policy() -> None:
    """What a file leaves out has the safe default."""
    assert parse_policy(HEADER + "spec: {}\n", origin="policy.yaml") == built_in_policy()


def test_the_shipped_example_is_the_built_in_policy() -> None:
    """The commented example shows every default as it is."""
    assert load_policy(COMMITTED / "policy.yaml") == built_in_policy()


def test_values_are_read_in_their_units() -> None:
    """Durations become seconds, percentages stay percent, modes become modes."""
    spec = policy("mode: evict\ninterval: 1m30s\nbudgets: {total: 5, perTenant: 20%}\nmetrics: {window: 600}").spec
    assert (spec.mode, spec.interval, spec.budgets.total, spec.budgets.per_tenant, spec.metrics.window) == (Mode.EVICT, 90, 5, "20%", 600)


@pytest.mark.parametrize(
    ("spec", "line", "path", "hint"),
    [
        ("modus: evict", 4, "spec.modus", "did you mean mode?"),
        ("budgets:\n  perNod: 2", 5, "spec.budgets.perNod", "did you mean perNode?"),
        ("budgets:\n  per_node: 2", 5, "spec.budgets.per_node", "did you mean perNode?"),
        ("perNode: 2", 4, "spec.perNode", "it belongs at spec.budgets.perNode"),
        ("victims:\n  classes:\n    trainign: refuse", 6, "spec.victims.classes.trainign", "did you mean training?"),
        ("victims:\n  namespaces: {exclud: [a]}", 5, "spec.victims.namespaces.exclud", "did you mean exclude?"),
        (
            "pools:\n- name: a\n  signals:\n    cpu: {low: 1, target: 2, high: 3, wight: 1}",
            7,
            "spec.pools[0].signals.cpu.wight",
            "did you mean weight?",
        ),
        (
            "pools:\n- name: a\n  nodeSelector:\n    matchLabel: {a: b}\n  signals:\n    cpu: {low: 1, target: 2, high: 3}",
            7,
            "spec.pools[0].nodeSelector.matchLabel",
            "did you mean matchLabels?",
        ),
        ("zzz: 1", 4, "spec.zzz", "known keys here are mode, interval, pools"),
    ],
)
def test_c2_an_unknown_key_names_its_line_its_path_and_the_nearest_key(spec: str, line: int, path: str, hint: str) -> None:
    """At every level, a key that is not known is an error, never ignored."""
    message = str(refusal(policy_text(spec)))
    assert message.startswith(f"policy.yaml, line {line}, {path}: unknown key")
    assert hint in message


def test_c2_a_safety_key_at_the_top_level_is_not_ignored() -> None:
    """A budget outside of the spec limits nothing; it is told where it belongs."""
    message = str(refusal(HEADER + "budgets: {total: 1}\nspec: {}\n"))
    assert message == "policy.yaml, line 3, budgets: unknown key: it belongs at spec.budgets"


@pytest.mark.parametrize("version", ["rebalancer.dev/v1", "descheduler/v1alpha2", "1"])
def test_c3_a_policy_of_another_version_is_refused_with_the_versions_known(version: str) -> None:
    """Documentation of a newer version must not be half obeyed by an older one."""
    message = str(refusal(f"apiVersion: {version}\nkind: RebalancePolicy\nspec: {{modus: x}}\n"))
    assert message.startswith("policy.yaml, line 1, apiVersion: ")
    assert message.endswith("is not a version that is known: known is rebalancer.dev/v1alpha1")


def test_c3_the_shipped_example_is_loaded() -> None:
    """The example in the repository is a valid policy of this version."""
    assert isinstance(load_policy(COMMITTED / "policy.yaml"), RebalancePolicy)


@pytest.mark.parametrize("mark", ["low", "target", "high"])
def test_c4_a_signal_without_one_of_its_marks_is_named_with_its_pool(mark: str) -> None:
    """Half a pair would fire never, or always."""
    marks = ", ".join(f"{name}: 50" for name in ("low", "target", "high") if name != mark)
    error = refusal(policy_text(f"pools:\n- name: web\n  signals:\n    memory: {{{marks}}}"))
    assert f"signal memory of pool web has no {mark}" in str(error)
    assert error.remedy == "give it all of low, target, high"


def test_c4_marks_spread_over_two_signals_are_both_told() -> None:
    """`high` on cpu only and `low` on memory only: one mistake for each mark that is missing."""
    error = refusal(policy_text("pools:\n- name: web\n  signals:\n    cpu: {high: 70}\n    memory: {low: 50}"))
    assert len(error.mistakes) == 4
    assert "(and 3 more mistakes)" in error.message


def test_c5_a_mark_on_a_signal_without_a_query_is_refused() -> None:
    """What nothing measures can never fire."""
    message = str(refusal(policy_text("pools:\n- name: web\n  signals:\n    network: {low: 1, target: 2, high: 3}")))
    assert message.startswith(
        "policy.yaml, line 7, spec.pools[0].signals.network: pool web judges signal network, for which there is no query"
    )


def test_c5_a_query_that_no_pool_judges_is_refused() -> None:
    """What is measured and never judged was meant to do something."""
    spec = "signals:\n- {name: network, unit: B, nodeQuery: a, podQuery: b, capacity: {value: 1}}"
    message = str(refusal(policy_text(spec)))
    assert message.startswith("policy.yaml, line 5, spec.signals[0].name: signal network has queries, but no pool judges it")


def test_c1_a_capacity_from_two_places_or_none_is_refused() -> None:
    """A source that is configured and not used, or used and not configured, is told with its keys."""
    pool = "pools:\n- name: a\n  signals: {net: {low: 1, target: 2, high: 3}}\n"
    signal = "signals:\n- {name: net, unit: B, nodeQuery: a, podQuery: b, capacity: %s}"
    both = str(refusal(policy_text(pool + signal % "{value: 1, query: x}")))
    neither = str(refusal(policy_text(pool + signal % "{}")))
    assert "capacity needs exactly one of query, resource, value" in both
    assert "it has none" in neither


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("interval: 5x", "spec.interval: '5x' is not a duration such as 90s, 5m, 1h30m or 6h"),
        ("interval: 1s", "spec.interval: must be at least 10"),
        ("mode: evikt", "spec.mode: must be one of dry-run, annotate, evict, not 'evikt': did you mean evict?"),
        ("events: no", "spec.events: must be true or false, not 'no'"),
        ("events: 1", "spec.events: must be true or false, not 1"),
        ("confirm: {windows: 2.5}", "spec.confirm.windows: must be a whole number, not 2.5"),
        ("confirm: {windows: true}", "spec.confirm.windows: must be a whole number, not true"),
        ("confirm: {windows: '5'}", "spec.confirm.windows: must be a whole number, not '5': take the quotes away"),
        ("metrics: {minCoverage: 101}", "spec.metrics.minCoverage: must be at most 100, not 101"),
        ("metrics: {minCoverage: .nan}", "spec.metrics.minCoverage: must be"),
        ("gain: {disruptionCost: .inf}", "spec.gain.disruptionCost: must be a finite number"),
        ("budgets: {total: -1}", "spec.budgets.total: must not be negative"),
        ("budgets: {total: many}", "spec.budgets.total: must be a whole number such as 5 or a percentage such as 10%"),
        ("budgets: {total: 120%}", "spec.budgets.total: must be at most 100%"),
        ("budgets:", "spec.budgets: is empty, it must be a mapping"),
        ("budgets: []", "spec.budgets: must be a mapping of keys to values, not a list"),
        ("pools: []", "spec.pools: needs at least 1 entry"),
        ("victims: {namespaces: {exclude: prod}}", "spec.victims.namespaces.exclude: must be a list, not 'prod': write [prod]"),
        ("victims: {priorityBelow: [1]}", "spec.victims.priorityBelow: must be the name of a PriorityClass or a whole number"),
        ("victims: {barePods: allow}", "spec.victims.barePods: can only be refuse, not 'allow'"),
        ("confirm: {windows: 3}", "spec.confirm.atLeast: 8 of 3 windows can never be reached"),
        ("cooldown: {workload: 1h, max: 1m}", "spec.cooldown.max: 1m is shorter than cooldown.workload, 1h"),
        ("interval: 5m\ninterval: 6m", "line 5, spec.interval: the key is written twice, first in line 4"),
        ("interval: !!python/name:os.system x", "spec.interval: the tag !!python/name:os.system is not allowed"),
        ("interval: !!int x", "spec.interval: 'x' does not fit the tag !!int"),
        ("1: x", "spec.1: the key 1 is not text: put it in quotes"),
        ("? [a]\n: x", "spec: a key must be text"),
    ],
)
def test_a_wrong_value_is_told_in_words(spec: str, sentence: str) -> None:
    """Each mistake is one sentence with file, line and path, and none speaks of validators."""
    message = str(refusal(policy_text(spec)))
    assert sentence in message
    assert message.startswith("policy.yaml, line ")
    assert "Value error" not in message
    assert "Input should" not in message


@pytest.mark.parametrize(
    ("pool", "sentence"),
    [
        ("{name: web, signals: {cpu: {low: 80, target: 55, high: 70}}}", "low 80 <= target 55 <= high 70 fails in pool web"),
        (
            "{name: web, thresholds: deviation, signals: {cpu: {low: 80, target: 75, high: 70}}}",
            "as deviations target 75 must not be above high 70",
        ),
        ("{name: Web, signals: {cpu: {low: 1, target: 2, high: 3}}}", "'Web' is not a name of lower-case letters"),
        ("{name: web, signals: {}}", "spec.pools[0].signals: needs at least 1 entry"),
        (
            "{name: web, nodeSelector: {matchExpressions: [{key: a, operator: In}]}, signals: {cpu: {low: 1, target: 2, high: 3}}}",
            "operator In needs values",
        ),
        (
            "{name: web, nodeSelector: {matchLabels: {zone: 1}}, signals: {cpu: {low: 1, target: 2, high: 3}}}",
            "spec.pools[0].nodeSelector.matchLabels.zone: must be text, not 1: put it in quotes",
        ),
    ],
)
def test_a_pool_that_makes_no_sense_is_told_in_words(pool: str, sentence: str) -> None:
    """Contradictory marks and selectors are found when the file is read."""
    assert sentence in str(refusal(policy_text(f"pools:\n- {pool}")))


def test_two_pools_with_one_selector_are_refused() -> None:
    """Nodes would be in two pools at once."""
    marks = "signals: {cpu: {low: 1, target: 2, high: 3}}"
    message = str(refusal(policy_text(f"pools:\n- {{name: a, {marks}}}\n- {{name: b, {marks}}}")))
    assert "spec.pools[1]: pools a and b select the same nodes" in message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "policy.yaml: the file is empty"),
        ("# only a comment\n", "policy.yaml: the file is empty"),
        ("---\n", "policy.yaml: the file is empty"),
        ("- a\n", "policy.yaml, line 1: a RebalancePolicy is a mapping of keys to values, not a list"),
        ("hello\n", "policy.yaml, line 1: a RebalancePolicy is a mapping of keys to values, not 'hello'"),
        ("a: [1\n", "policy.yaml, line 2: the policy cannot be read as YAML"),
        ("a:\n\tb: 1\n", "policy.yaml, line 2: the policy cannot be read as YAML, a tab stands where spaces must stand"),
        ("a: 1\n---\nb: 2\n", "there is more than one document in it"),
        ("a: *b\n", "found undefined alias 'b'"),
        ("a: \x01\n", "policy.yaml, line 1: the policy holds a control character"),
        ("[" * 5000, "policy.yaml: the policy is nested too deeply"),
        ("&a [*a]\n", "the aliases unfold into too many values"),
        (HEADER, "policy.yaml, line 1, spec: the key is missing"),
        ("kind: RebalancePolicy\nspec: {}\n", "apiVersion: the key is missing"),
        ("apiVersion: rebalancer.dev/v1alpha1\nspec: {}\n", "kind: the key is missing: write kind: RebalancePolicy"),
        ("apiversion: rebalancer.dev/v1alpha1\nkind: RebalancePolicy\nspec: {}\n", "apiversion: unknown key: did you mean apiVersion?"),
        ("apiVersion: rebalancer.dev/v1alpha1\nkind: TenantQuotas\nspec: {}\n", "this is a TenantQuotas file"),
        ('a: "\\ud800"\n' + HEADER + "spec: {}\n", "not valid Unicode"),
    ],
)
def test_a_text_that_is_no_policy_has_its_sentence(text: str, sentence: str) -> None:
    """Whatever is found where a policy should be ends in words, not in a traceback."""
    assert sentence in str(refusal(text))


def test_billion_laughs_end_early() -> None:
    """Aliases that multiply are refused before they are unfolded."""
    levels = "\n".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12))
    assert "the aliases unfold into too many values" in str(refusal(f"a0: &a0 x\n{levels}\n"))


def test_a_plain_alias_is_unfolded() -> None:
    """Anchors that save typing are allowed."""
    marks = "&marks {low: 40, target: 55, high: 70}"
    spec = policy(f"pools:\n- name: a\n  signals: {{cpu: {marks}, memory: *marks}}").spec
    assert spec.pools[0].signals["memory"] == spec.pools[0].signals["cpu"]


def test_words_that_old_yaml_takes_for_booleans_and_dates_stay_text() -> None:
    """A namespace may be called `no`, `on` or `2024-01-01`."""
    assert policy("victims: {namespaces: {exclude: [no, on, 2024-01-01]}}").spec.victims.namespaces.exclude == ("no", "on", "2024-01-01")


def test_all_mistakes_are_told_in_the_order_of_their_lines() -> None:
    """The sentence tells the first mistake and counts the rest; `mistakes` has them all."""
    error = refusal(policy_text("modus: evict\ninterval: 5x\nbudgets:\n  perNod: 1"))
    assert "line 4, spec.modus" in error.message
    assert "(and 2 more mistakes)" in error.message
    assert [mistake.split(",")[1].strip() for mistake in error.mistakes] == ["line 4", "line 5", "line 7"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\xff\xfe\x00", "is not UTF-8 text"), (b" " * (MAX_BYTES + 1), "is larger than 1 MiB"), (b"", "the file is empty")],
)
def test_a_file_that_is_no_text_has_its_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    """Bytes that are no policy are told with the file's name."""
    path = tmp_path / "policy.yaml"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match=sentence) as caught:
        load_policy(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_directory_have_their_sentences(tmp_path: Path) -> None:
    """A path that leads nowhere is told, not traced."""
    with pytest.raises(PolicyError, match="does not exist"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(PolicyError, match="is a directory"):
        load_policy(tmp_path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + policy_text("interval: 1m").encode())
    assert load_policy(path).spec.interval == 60


@given(st.text(max_size=200).filter(lambda text: "spec" not in text))
def test_any_text_ends_in_a_policy_error(text: str) -> None:
    """No input makes the loader fail in another way; without a spec, none is a policy."""
    assert told(HEADER + text).startswith("policy.yaml")


_yaml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_keys = st.sampled_from(["mode", "interval", "pools", "signals", "metrics", "confirm", "budgets", "cooldown", "victims", "gain", "breaker"])


@given(st.dictionaries(_keys, _yaml_values, max_size=4))
def test_any_value_under_any_key_is_a_policy_or_a_policy_error(spec: dict[str, object]) -> None:
    """Values of every type in every place end in a policy or in sentences without jargon."""
    text = yaml.safe_dump({"apiVersion": "rebalancer.dev/v1alpha1", "kind": "RebalancePolicy", "spec": spec}, allow_unicode=True)
    assert not re.search("Input should|Value error", told(text))
