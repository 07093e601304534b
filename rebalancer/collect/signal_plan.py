"""Which queries a policy asks for: each judged signal with its ways to measure nodes and pods, in the order in which they are tried.

Built-in signals and the operator's own become the same shape here, so that nothing further on has to tell them apart. The whole list can
be had before anything is asked (`describe_queries`), for ``rebalancer check`` to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rebalancer.collect.queries import (
    BuiltInSignal,
    NamedQuery,
    NodeSource,
    PodSource,
    Subject,
    deviation_query,
    last_seen_query,
    live_query,
    own_query,
    pod_labels,
    pod_usage_query,
    usage_query,
)
from rebalancer.collect.recording import (
    WORD,
    last_seen_lookup,
    live_lookup,
    nodes_lookup,
    pods_lookup,
    recorded_nodes,
    recorded_pods,
)
from rebalancer.collect.signals import built_in_signals
from rebalancer.errors import PolicyError
from rebalancer.policy.model import Capacity, SignalQueries, Spec
from rebalancer.state.tables import Signal

GPU_SIGNALS = ("gpu", "gpu_memory")
Shards = Sequence[Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class NodeWay:
    """``live`` and ``last_seen`` yield times of raw samples, series by series; ``age`` yields ages, node by node; all may be missing."""

    source: str
    usage: NamedQuery
    is_rate: bool = False
    """The usage is a counter's rate, which is too low where samples cover a part of the window."""
    live: NamedQuery | None = None
    last_seen: NamedQuery | None = None
    age: NamedQuery | None = None
    recorded: bool = False
    """Looks up what a rule has computed; the way that computes it comes next."""


@dataclass(frozen=True, slots=True)
class PodWay:
    """One query a shard."""

    source: str
    usage: tuple[NamedQuery, ...]
    deviation: tuple[NamedQuery, ...] = ()
    """Standard deviations, where the policy asks for room for swings."""
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class SignalPlan:
    signal: Signal
    maximum: float | None
    nodes: tuple[NodeWay, ...]
    pods: tuple[PodWay, ...]
    capacity: Capacity
    capacity_query: NamedQuery | None = None


def forced_label(spec: Spec) -> str | None:
    """The label that alone may name the node, or None when it is to be detected."""
    return None if spec.metrics.node_label == "auto" else spec.metrics.node_label


def plan_signals(spec: Spec, *, shards: Shards = (None,), recorded: bool = False) -> tuple[SignalPlan, ...]:
    """One plan a judged signal, in the order of `Spec.judged_signals`. Raises PolicyError when a signal has no queries.

    ``recorded``: each source of a built-in signal is looked up in what recording rules have made of it, before it is asked itself.
    """
    own = {signal.name: signal for signal in spec.signals}
    known = built_in_signals()
    plans = []
    for name in spec.judged_signals:
        if name in GPU_SIGNALS and name not in own:
            continue  # read by device, not by node and pod
        if name in own:
            plans.append(_own_plan(own[name], spec, built_in=known.get(name)))
        elif name in known:
            plans.append(_built_in_plan(known[name], spec, shards=shards, recorded=recorded))
        else:
            raise PolicyError(f"signal {name} has no query", remedy="define it under spec.signals")
    return tuple(plans)


def describe_queries(spec: Spec, *, recorded: bool = False) -> tuple[NamedQuery, ...]:
    """Every query that a cycle may send for this policy, except those that only help to find node names."""
    queries: list[NamedQuery] = []
    for plan in plan_signals(spec, recorded=recorded):
        for way in plan.nodes:
            queries.extend(query for query in (way.usage, way.live, way.last_seen, way.age) if query is not None)
        for pod_way in plan.pods:
            queries.extend((*pod_way.usage, *pod_way.deviation))
        if plan.capacity_query is not None:
            queries.append(plan.capacity_query)
    return tuple(queries)


def _built_in_plan(built_in: BuiltInSignal, spec: Spec, *, shards: Shards, recorded: bool) -> SignalPlan:
    signal = built_in.signal
    nodes: list[NodeWay] = []
    for source in built_in.nodes:
        nodes += [*([_recorded_node_way(built_in, source, spec)] if recorded else []), _node_way(signal.name, source, spec)]
    pods: list[PodWay] = []
    for pod_source in built_in.pods:
        pods += [
            *([_recorded_pod_way(built_in, pod_source, spec, shards=shards)] if recorded else []),
            _pod_way(signal.name, pod_source, spec, shards=shards),
        ]
    return SignalPlan(
        signal=signal,
        maximum=built_in.maximum,
        nodes=tuple(nodes),
        pods=tuple(pods),
        capacity=Capacity(resource=signal.resource) if signal.resource is not None else Capacity(value=1.0),
    )


def _lookback_s(spec: Spec) -> float:
    return max(spec.metrics.window, spec.metrics.max_age) + 60.0


def _node_way(signal: str, source: NodeSource, spec: Spec) -> NodeWay:
    label = f"{signal} of nodes ({source.name})"
    usage = usage_query(source.usage, window_s=spec.metrics.window, statistic=spec.metrics.statistic)
    last_seen = last_seen_query(source, lookback_s=_lookback_s(spec))
    return NodeWay(
        source=source.name,
        usage=NamedQuery(name=label, signal=signal, text=usage, subject="nodes"),
        is_rate=source.usage.is_rate,
        live=NamedQuery(name=f"age of {label}", signal=signal, text=live_query(source), subject="age"),
        last_seen=NamedQuery(name=f"last sample of {label}", signal=signal, text=last_seen, subject="age"),
    )


def _recorded_node_way(built_in: BuiltInSignal, source: NodeSource, spec: Spec) -> NodeWay:
    signal, names = built_in.signal.name, recorded_nodes(built_in, source, spec)
    way = f"{source.name}, {WORD}"
    label = f"{signal} of nodes ({way})"

    def query(name: str, text: str, subject: Subject) -> NamedQuery:
        return NamedQuery(name=name, signal=signal, text=text, subject=subject, recorded=True)

    return NodeWay(
        source=way,
        usage=query(label, nodes_lookup(names, max_age_s=spec.metrics.max_age), "nodes"),
        is_rate=source.usage.is_rate,
        live=query(f"age of {label}", live_lookup(names), "age"),
        last_seen=query(f"last sample of {label}", last_seen_lookup(names, lookback_s=_lookback_s(spec)), "age"),
        recorded=True,
    )


def _pod_way(signal: str, source: PodSource, spec: Spec, *, shards: Shards) -> PodWay:
    queries = []
    for part, namespaces in _parts(shards):
        text = pod_usage_query(
            source,
            window_s=spec.metrics.window,
            statistic=spec.metrics.statistic,
            node_label=forced_label(spec),
            namespaces=namespaces,
        )
        queries.append(NamedQuery(name=f"{signal} of pods ({source.name}{part})", signal=signal, text=text, subject="pods"))
    return PodWay(source=source.name, usage=tuple(queries), deviation=_deviations(queries, spec))


def _recorded_pod_way(built_in: BuiltInSignal, source: PodSource, spec: Spec, *, shards: Shards) -> PodWay:
    label, way = forced_label(spec), f"{source.name}, {WORD}"
    name = recorded_pods(built_in, source, spec, node_label=label)
    queries = []
    for part, namespaces in _parts(shards):
        text = pods_lookup(name, labels=pod_labels(label), namespaces=namespaces, max_age_s=spec.metrics.max_age)
        title = f"{built_in.signal.name} of pods ({way}{part})"
        queries.append(NamedQuery(name=title, signal=built_in.signal.name, text=text, subject="pods", recorded=True))
    return PodWay(source=way, usage=tuple(queries), deviation=_deviations(queries, spec), recorded=True)


def _deviations(queries: Sequence[NamedQuery], spec: Spec) -> tuple[NamedQuery, ...]:
    """For the standard deviations of what ``queries`` yield; none where the policy asks for no room for swings."""
    if not spec.risk.deviations:
        return ()
    return tuple(
        replace(
            query,
            name=f"deviation of {query.name}",
            text=deviation_query(query.text, lookback_s=spec.risk.lookback, step_s=spec.risk.step),
        )
        for query in queries
    )


def _parts(shards: Shards) -> Iterator[tuple[str, Sequence[str] | None]]:
    """Of which part a query is, in words, and the namespaces of that part."""
    for number, namespaces in enumerate(shards, start=1):
        yield (f", part {number} of {len(shards)}" if len(shards) > 1 else ""), namespaces


def _own_plan(own: SignalQueries, spec: Spec, *, built_in: BuiltInSignal | None) -> SignalPlan:
    """A query of the operator's is one way, without alternatives; the resource that it is compared with is that of its capacity."""
    window_s, name = spec.metrics.window, own.name
    resource = built_in.signal.resource if built_in is not None else own.capacity.resource

    def query(subject: Subject, what: str, text: str) -> NamedQuery:
        return NamedQuery(name=f"{name} {what} (policy)", signal=name, text=own_query(text, window_s=window_s), subject=subject)

    nodes = query("nodes", "of nodes", own.node_query)
    pods = query("pods", "of pods", own.pod_query)
    age = query("age", "ages of nodes", own.node_age_query) if own.node_age_query is not None else None
    capacity = query("capacity", "capacity of nodes", own.capacity.query) if own.capacity.query is not None else None
    return SignalPlan(
        signal=Signal(name, own.unit, resource),
        maximum=own.maximum if own.maximum is not None else (built_in.maximum if built_in is not None else None),
        nodes=(NodeWay(source="policy", usage=nodes, age=age),),
        pods=(PodWay(source="policy", usage=(pods,), deviation=_deviations((pods,), spec)),),
        capacity=own.capacity,
        capacity_query=capacity,
    )
