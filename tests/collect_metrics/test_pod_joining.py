"""Series of pods are joined as columns; what comes of it is what one look at each series after the other would give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.pod_book import PodBook, PodSeries
from rebalancer.collect.pod_labels import pod_labels_type
from rebalancer.collect.pod_samples import PlacedPod, as_columns, joined
from rebalancer.collect.pod_usage import assemble_pods
from rebalancer.collect.prometheus_wire import Answer, answer_on_grid, decode_envelope, decode_raw_series, decode_series
from rebalancer.collect.resolve import resolve
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import DropReason

AT, MAX_AGE_S, MAXIMUM = 1_000.0, 180.0, 100.0
DIRECTORY = NodeDirectory(
    names=frozenset({"n1", "n2"}), addresses={"10.0.0.1": "n1"}, pod_nodes={("a", "p1"): "n1", ("a", "p2"): "n2", ("b", "p1"): "n1"}
)

Series = tuple[dict[str, str], float, str]
"""Labels, time stamp, value."""

labels_of_a_pod = st.fixed_dictionaries(
    {},
    optional={
        "namespace": st.sampled_from(["a", "b"]),
        "pod": st.sampled_from(["p1", "p2", "gone", ""]),
        "exported_pod": st.sampled_from(["p1", "p2"]),
        "node": st.sampled_from(["n1", "n2", "elsewhere"]),
        "instance": st.sampled_from(["10.0.0.1:10250", "10.9.9.9:10250"]),
    },
)
values = st.sampled_from(["0", "1.5", "3", "NaN", "+Inf", "-1", "1e9", "", "many"])
series = st.tuples(labels_of_a_pod, st.sampled_from([AT, AT - MAX_AGE_S - 1]), values)


def body(rows: Sequence[Series]) -> bytes:
    result = [{"metric": labels, "value": [stamp, value]} for labels, stamp, value in rows]
    return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})


def answer(rows: Sequence[Series], *, node_label: str | None, raw: bool = True, book: PodBook | None = None) -> Answer:
    envelope = decode_envelope(body(rows))
    if not raw:
        return answer_on_grid(name="pods", series=decode_series(envelope).series, times=np.array([AT]), step_s=1.0, envelope=envelope)
    series = decode_raw_series(envelope)
    book = book or PodBook(node_label)
    pods = PodSeries(book, book.read([one.metric for one in series]))
    return answer_on_grid(name="pods", series=series, times=np.array([AT]), step_s=1.0, envelope=envelope, pods=pods)


def one_after_the_other(shards: Sequence[Sequence[Series]], node_label: str | None) -> tuple[dict[PlacedPod, float], Counter[DropReason]]:
    """The rule in words, for each series: foreign, told before, stale, no amount, or the usage of its pod."""
    found: dict[PlacedPod, float] = {}
    first: set[PlacedPod] = set()
    twice: set[PlacedPod] = set()
    dropped: Counter[DropReason] = Counter()
    for shard in shards:
        label = node_label or "node"
        places = list(dict.fromkeys((row[0].get(label, ""), at(row[0], node_label)) for row in shard))
        asked = [{label: node} if node_label else {label: node, "instance": instance} for node, instance in places]
        nodes = dict(zip(places, resolve(asked, directory=DIRECTORY, forced=node_label).nodes, strict=True))
        says = any(nodes.values())
        for labels, stamp, text in shard:
            reason, value = amount(text)
            dropped.update([reason] if reason else [])
            place = (labels.get(node_label or "node", ""), at(labels, node_label))
            name = labels.get("exported_pod") or labels.get("pod", "")
            if not name or (says and any(place) and not nodes[place]):
                dropped[DropReason.FOREIGN] += 1
                continue
            key = (labels.get("namespace", ""), name, nodes[place])
            if key in first:
                twice.add(key)
                dropped[DropReason.AMBIGUOUS] += 1
                continue
            first.add(key)
            if stamp < AT - MAX_AGE_S:
                dropped[DropReason.STALE] += 1
            elif not math.isnan(value):
                found[key] = value
    for key in twice:
        dropped[DropReason.AMBIGUOUS] += found.pop(key, None) is not None
    return found, +dropped


def at(labels: Mapping[str, str], node_label: str | None) -> str:
    return "" if node_label else labels.get("instance", "")


def amount(text: str) -> tuple[DropReason | None, float]:
    known = {"NaN": DropReason.NAN, "+Inf": DropReason.INFINITE, "-1": DropReason.NEGATIVE, "1e9": DropReason.ABSURD}
    reason = known.get(text, DropReason.UNPARSABLE if text in ("", "many") else None)
    return reason, math.nan if reason else float(text)


@given(
    st.lists(st.lists(series, max_size=8), max_size=3),
    st.lists(series, max_size=8),
    st.sampled_from([None, "node", "instance"]),
    st.booleans(),
)
def test_joining_by_number_is_joining_one_by_one(
    shards: list[list[Series]], earlier: list[Series], node_label: str | None, raw: bool
) -> None:
    """The same usage and the same counts of what was dropped, however the series are doubled, stale, foreign, senseless or spread, and
    whatever label sets were met before."""
    book = PodBook(node_label)
    answer(earlier, node_label=node_label, book=book)
    usage = assemble_pods(
        (answer(shard, node_label=node_label, raw=raw, book=book) for shard in shards),
        directory=DIRECTORY,
        node_label=node_label,
        maximum=MAXIMUM,
        at=AT,
        max_age_s=MAX_AGE_S,
    )
    expected, dropped = one_after_the_other(shards, node_label)
    assert usage.usage == expected
    assert usage.dropped == dropped
    assert bool(usage.notes) == any(reason is DropReason.AMBIGUOUS for reason in dropped)


def test_a_book_is_outgrown_by_pods_that_are_gone() -> None:
    """Thousands of label sets that nobody tells of any more are not kept, those in use are."""
    book = PodBook(None)
    rows: list[Series] = [({"namespace": "a", "pod": f"p{number}", "node": "n1"}, AT, "1") for number in range(15_000)]
    answer(rows, node_label=None, book=book)
    now = answer(rows[:5_000], node_label=None, book=book)
    assert now.pods is not None
    book.placing(DIRECTORY).locate(now.pods.numbers)
    assert not book.outgrown()
    answer([({**labels, "instance": "10.0.0.1:10250"}, stamp, value) for labels, stamp, value in rows], node_label=None, book=book)
    assert book.outgrown()


@given(st.lists(series, max_size=8), st.sampled_from([None, "node", "pod", "zone"]))
def test_labels_as_bytes_say_what_all_labels_say(rows: list[Series], node_label: str | None) -> None:
    """Leaving labels as bytes gives the same pods, and all labels can still be shown."""
    few, whole = answer(rows, node_label=node_label), answer(rows, node_label=node_label, raw=False)
    assert list(few.labels) == list(whole.labels)
    options = {"directory": DIRECTORY, "node_label": node_label, "maximum": MAXIMUM, "at": AT, "max_age_s": MAX_AGE_S}
    a, b = (assemble_pods([one], **options) for one in (few, whole))  # type: ignore[arg-type]
    assert (dict(a.usage), a.dropped, a.notes) == (dict(b.usage), b.dropped, b.notes)


def test_a_label_that_cannot_be_decoded_twice_is_not() -> None:
    """Whoever forces one of the pod's own labels to name the node is served by the slow way."""
    assert pod_labels_type("pod") is None
    assert pod_labels_type("kubernetes_node") is not None


@pytest.mark.parametrize("metric", [b"7", b'{"pod": 7}', b"[]"])
def test_a_series_with_a_pod_that_is_no_text_is_refused(metric: bytes) -> None:
    """It is no answer of the query API."""
    envelope = decode_envelope(b'{"status":"success","data":{"resultType":"vector","result":[{"metric":%s,"value":[1,"1"]}]}}' % metric)
    with pytest.raises(msgspec.DecodeError):
        PodBook(None).read([one.metric for one in decode_raw_series(envelope)])


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["p", "q"]), st.sampled_from(["n1", "n2", ""])), st.floats(0, 1), max_size=6
    )
)
def test_columns_are_the_mapping(samples: dict[PlacedPod, float]) -> None:
    """What is made of a mapping reads like it, and joins by row."""
    columns = as_columns(samples)
    assert columns == samples
    assert as_columns(columns) is columns
    found = joined(samples, pods={("a", "p"): 0, ("b", "q"): 1}, nodes={"n1": 0})
    rows = {("a", "p"): 0, ("b", "q"): 1}
    assert found.row.tolist() == [rows.get(key[:2], -1) for key in samples]
    assert found.where.tolist() == [0 if key[2] == "n1" else -1 for key in samples]
    assert found.nodeless.tolist() == [not key[2] for key in samples]
