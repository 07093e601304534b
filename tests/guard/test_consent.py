"""What annotations say about moving a pod: ours, the descheduler's, the autoscalers', koordinator's."""

from __future__ import annotations

import msgspec
import pytest

from rebalancer.guard.annotations import KARPENTER, READ_KEYS
from rebalancer.guard.gate import first_refusal
from rebalancer.kube.wire import AnnotationsWire
from rebalancer.policy.model import Victims
from rebalancer.state.tables import PodVolumes
from tests.guard.scenes import ask, candidate, measured, reason, scene_of, state_with
from tests.support.builder import workload

OURS = "rebalancer.dev/evict"
DESCHEDULER = "descheduler.alpha.kubernetes.io/evict"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
PREFER_NOT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
COST = "scheduling.koordinator.sh/eviction-cost"


@pytest.mark.parametrize("key", [OURS, DESCHEDULER, SAFE])
def test_v8_false_protects(key: str) -> None:
    """An annotation with the value false means false, in every vocabulary."""
    scene = scene_of(state_with(measured("web-0", annotations={key: "false"})))
    assert reason("opt-out", scene) == f'the pod\'s annotation {key} is "false"'


@pytest.mark.parametrize("key", [OURS, DESCHEDULER, SAFE])
def test_v8_true_permits(key: str) -> None:
    """True is no objection."""
    assert ask("opt-out", scene_of(state_with(measured("web-0", annotations={key: "true"})))) is None


@pytest.mark.parametrize("key", [OURS, DESCHEDULER, SAFE, *KARPENTER])
@pytest.mark.parametrize("value", ["", "no", "False", "TRUE", "10m"])
def test_v8_any_other_value_protects_and_says_so(key: str, value: str) -> None:
    """A value that nobody understands is never taken for permission."""
    scene = scene_of(state_with(measured("web-0", annotations={key: value})))
    assert reason("opt-out", scene) == f'the pod\'s annotation {key} is "{value}", which is neither "true" nor "false", so it protects'


@pytest.mark.parametrize("key", KARPENTER)
def test_karpenters_annotations_protect_when_true_and_not_when_false(key: str) -> None:
    """do-not-disrupt and its elders forbid; false takes that back."""
    assert reason("opt-out", scene_of(state_with(measured("w", annotations={key: "true"})))) == f'the pod\'s annotation {key} is "true"'
    assert ask("opt-out", scene_of(state_with(measured("w", annotations={key: "false"})))) is None


@pytest.mark.parametrize(("value", "protects"), [("", True), ("true", True), ("yes", True), ("false", False)])
def test_prefer_no_eviction_protects_by_being_there(value: str, protects: bool) -> None:
    """The descheduler's key counts by presence; only an explicit false is not an objection."""
    scene = scene_of(state_with(measured("web-0", annotations={PREFER_NOT: value})))
    assert (ask("opt-out", scene) is not None) is protects


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2147483647", "the pod's annotation scheduling.koordinator.sh/eviction-cost is 2147483647, the cost that forbids eviction"),
        ("much", 'the pod\'s annotation scheduling.koordinator.sh/eviction-cost is "much", which is not a number, so it protects'),
        ("2147483646", None),
        ("-1", None),
    ],
)
def test_koordinators_highest_cost_protects(value: str, words: str | None) -> None:
    """Only the highest 32-bit cost forbids; what is not a number protects."""
    refusal = ask("opt-out", scene_of(state_with(measured("web-0", annotations={COST: value}))))
    assert (refusal.reason if refusal else None) == words


def test_the_workload_may_speak_for_its_pods() -> None:
    """An annotation on the Deployment protects each of its pods, and the sentence says where it is."""
    state = state_with(measured("web-0"), workloads=[workload("web", annotations={OURS: "false"})])
    assert reason("opt-out", scene_of(state)) == f'the workload\'s annotation {OURS} is "false"'


@pytest.mark.parametrize(("of_pod", "of_workload"), [("true", "false"), ("false", "true")])
def test_one_word_of_protection_is_enough(of_pod: str, of_workload: str) -> None:
    """When pod and workload disagree, the pod stays."""
    state = state_with(measured("web-0", annotations={OURS: of_pod}), workloads=[workload("web", annotations={OURS: of_workload})])
    assert ask("opt-out", scene_of(state)) is not None


def test_silence_is_a_no_where_opting_in_is_required() -> None:
    """With requireOptIn a pod that nobody annotated stays, and the sentence says how to opt in."""
    volunteers = Victims(require_opt_in=True)
    assert reason("opt-in-required", scene_of(state_with(measured("w")), victims=volunteers)) == (
        'neither the pod nor its workload is annotated rebalancer.dev/evict: "true" (policy victims.requireOptIn)'
    )
    assert ask("opt-in-required", scene_of(state_with(measured("w")))) is None


@pytest.mark.parametrize("key", [OURS, DESCHEDULER])
@pytest.mark.parametrize("on_workload", [False, True])
def test_either_opt_in_counts_on_the_pod_or_its_workload(key: str, on_workload: bool) -> None:
    """A volunteer passes where volunteers are asked for."""
    annotations = {key: "true"}
    state = state_with(
        measured("web-0", annotations={} if on_workload else annotations),
        workloads=[workload("web", annotations=annotations if on_workload else {})],
    )
    assert ask("opt-in-required", scene_of(state, victims=Victims(require_opt_in=True))) is None


@pytest.mark.parametrize(
    ("fields", "gate"),
    [
        ({"mirror": True}, "mirror"),
        ({"terminating": True}, "terminating"),
        ({"priority": 2_000_000_000}, "system-critical"),
        ({"workload": None}, "bare-pod"),
        ({"volumes": PodVolumes(local=("data",))}, "local-storage"),
        ({"uses": {}}, "unknown-usage"),
    ],
)
@pytest.mark.parametrize("key", [OURS, DESCHEDULER])
def test_opting_in_opens_no_other_gate(key: str, fields: dict[str, object], gate: str) -> None:
    """Opting in is a yes to being asked, not a way around the protections."""
    scene = scene_of(state_with(measured("web-0", annotations={key: "true"}, **fields)))
    refusal = first_refusal(candidate(scene), scene)
    assert refusal is not None
    assert refusal.gate == gate


def test_whoever_collects_annotations_knows_which_keys_are_read() -> None:
    """The closed set of keys covers every one that a gate reads, and the decoder of the wire keeps each of them."""
    assert {OURS, DESCHEDULER, SAFE, PREFER_NOT, COST, *KARPENTER} == READ_KEYS
    assert {field.encode_name for field in msgspec.structs.fields(AnnotationsWire)} >= READ_KEYS
