"""The tables of GPUs in words, for `check` and for the coverage."""

from __future__ import annotations

from rebalancer.gpu.telling import REMEDIES, by_reason, fault_words, notes_of, summary
from rebalancer.state.devices import NO_GPUS, Confidence, DeviceFault, FaultReason
from rebalancer.state.gpu import Scheme
from tests.support.builder import cluster, node, pod
from tests.support.gpus import fraction, gpu, mig, part, whole


def fault(reason: FaultReason, sentence: str) -> DeviceFault:
    return DeviceFault("n1", "", Scheme.PLAIN, reason, sentence)


def test_the_summary_says_what_there_is_and_how_sure_it_is_who_is_on_it() -> None:
    """A pod counts by the least sure of its devices; pods on some device are named as that."""
    state = cluster(
        nodes=[node("n1", gpus=[gpu(), gpu(), mig()]), node("n2", gpus=[gpu()]), node("n3")],
        pods=[
            pod("a", on="n1", gpu=whole(2), holds={0: 1.0, 1: part(1.0, confidence=Confidence.INFERRED)}),
            pod("b", on="n2", gpu=fraction(0.5), holds={0: 0.5}),
            pod("c", on="n2", gpu=fraction(0.5)),
        ],
    )
    assert summary(state.gpus) == (
        "4 devices on 2 nodes (1 mig, 3 plain); 2 pods are placed on them (1 as allocated, 1 by counting); "
        "of 1 pods the device is not known"
    )


def test_a_cluster_without_gpus_has_nothing_to_tell() -> None:
    """No line in any report."""
    assert summary(NO_GPUS) == ""
    assert notes_of(NO_GPUS) == ()


def test_each_sort_of_fault_is_told_once_with_the_number_of_its_kind() -> None:
    """In the order of the reasons, with the first sentence."""
    faults = [fault(FaultReason.TWO_SCHEMES, "node n1: twice"), *(fault(FaultReason.UNREADABLE_NODE, f"node n{n}: odd") for n in (1, 2, 3))]
    assert [fault_words(found) for found in by_reason(faults).values()] == ["node n1: odd (and 2 more like it)", "node n1: twice"]


def test_every_reason_has_a_remedy() -> None:
    """Whoever is told of a fault is told what to do."""
    assert set(REMEDIES) == set(FaultReason)
