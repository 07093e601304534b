"""How much of the cluster is known, and everything that was left out on the way, for people to read.

The shares count what should be known: nodes that are Ready, and running pods that have been there for a whole window. A node that is down
or a pod of a minute ago is no gap in the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.estimates import PodAges
from rebalancer.collect.node_table import NodeAmounts, base_notes
from rebalancer.collect.pod_rows import CLASS_ANNOTATION
from rebalancer.collect.samples import Samples
from rebalancer.state.cluster import Coverage, Share
from rebalancer.state.tables import Nodes, Phase, Pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What did not make it into the tables."""

    odd: Mapping[str, int]
    unreadable_pods: tuple[str, ...]
    homeless_pods: int
    """Pods that name a node which is not listed."""
    bad_class_words: int
    amounts: NodeAmounts
    dropped: Mapping[str, int]


def coverage(nodes: Nodes, pods: Pods, samples: Samples, *, ages: PodAges, gaps: Gaps, more_notes: Sequence[str] = ()) -> Coverage:
    names = [each.signal.name for each in samples.signals]
    expected = ages.settled & (pods.phase == int(Phase.RUNNING)) & ~pods.terminating
    node_known = ~np.isnan(nodes.usage) & nodes.ready[:, None]
    scoped = np.array([each.signal.scoped for each in samples.signals], dtype=np.bool_)
    wanted = nodes.ready[:, None] & ~(scoped[None, :] & np.isnan(nodes.capacity))
    pod_known = ~np.isnan(pods.measured) & expected[:, None]
    dropped = Counter({str(reason): count for reason, count in samples.dropped.items()})
    dropped.update(gaps.dropped)
    return Coverage(
        nodes={name: Share(int(node_known[:, column].sum()), int(wanted[:, column].sum())) for column, name in enumerate(names)},
        pods={name: Share(int(pod_known[:, column].sum()), int(expected.sum())) for column, name in enumerate(names)},
        oldest_sample_s={name: _oldest(nodes, column) for column, name in enumerate(names)},
        dropped=dict(dropped),
        notes=(*samples.notes, *_notes(gaps), *more_notes),
        failed={each.signal.name: each.failed for each in samples.signals if each.failed} or None,
        warnings=samples.warnings,
    )


def _oldest(nodes: Nodes, column: int) -> float:
    used = nodes.sample_age_s[~np.isnan(nodes.usage[:, column]), column]
    known = used[~np.isnan(used)]
    return float(known.max()) if len(known) else float("nan")


def _notes(gaps: Gaps) -> list[str]:
    notes = base_notes(gaps.amounts)
    notes.extend(f"{count} objects were left out ({reason})" for reason, count in sorted(gaps.odd.items()))
    if gaps.unreadable_pods:
        notes.append(
            f"{len(gaps.unreadable_pods)} pods were left out, a request of theirs cannot be read ({gaps.unreadable_pods[0]} is one)"
        )
    if gaps.homeless_pods:
        notes.append(f"{gaps.homeless_pods} pods are on nodes that are not listed; they count nowhere")
    if gaps.bad_class_words:
        notes.append(f"{gaps.bad_class_words} pods carry a {CLASS_ANNOTATION} that names no class; their owners decide")
    return notes
