"""Pods that ask for GPUs, in a few words each."""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.reading import Asked, asks_of
from rebalancer.gpu.clues import ClaimRequest, ContainerClues, PodClues, pairs
from rebalancer.gpu.meaning import PLAIN_MEANING, Meaning
from rebalancer.gpu.names import DEFAULT_NAMES, GpuNames
from rebalancer.state.gpu import GpuAsk

Limits = Mapping[str, str]


def container(name: str = "main", limits: Limits | None = None, *, requests: Limits | None = None, init: bool = False) -> ContainerClues:
    return ContainerClues(name=name, limits=pairs(limits), requests=pairs(requests), init=init)


def pod(
    *containers: ContainerClues,
    annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    namespace: str = "ml",
    claims: tuple[ClaimRequest, ...] = (),
) -> PodClues:
    return PodClues(namespace=namespace, containers=containers, annotations=pairs(annotations), selector=pairs(selector), claims=claims)


def asked(of: PodClues, meaning: Meaning = PLAIN_MEANING, names: GpuNames = DEFAULT_NAMES) -> Asked:
    return asks_of(of, Context(meaning, names))


def asks(limits: Limits, meaning: Meaning = PLAIN_MEANING, names: GpuNames = DEFAULT_NAMES) -> tuple[GpuAsk, ...]:
    """Of a pod with one container; everything in it can be read."""
    found = asked(pod(container(limits=limits)), meaning, names)
    assert found.unreadable == ()
    return found.asks


def one(limits: Limits, meaning: Meaning = PLAIN_MEANING, names: GpuNames = DEFAULT_NAMES) -> GpuAsk:
    (found,) = asks(limits, meaning, names)
    return found


def same(found: float, expected: float | None) -> bool:
    """``expected`` None: unknown."""
    return found != found if expected is None else found == expected
