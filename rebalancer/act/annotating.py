"""Annotate mode: marks the candidates of a plan on their pods, for people and for other controllers, and evicts nothing.

The mark is one annotation with the reason, the gain, the destination and an end; what the newest plan does not name any more is taken off.
A mark that names a source outside of the policy's pools is another controller's, and stays.
"""

from __future__ import annotations

import msgspec

from rebalancer.act.names import CANDIDATE
from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.deadline import Deadline
from rebalancer.detect.pools import claimed
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound, KubernetesThrottled
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import Resource, list_all
from rebalancer.kube.operations import pod_path
from rebalancer.kube.patches import annotate
from rebalancer.kube.resources import NODES
from rebalancer.kube.wire import MetadataWire
from rebalancer.plan.model import Move, Plan, PodRef
from rebalancer.policy.model import Pool
from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_time

KEEP_S = 1800.0
_MARKED = Resource(name="pods", path="/api/v1/pods", item=MetadataWire, metadata_only=True)


class CandidateMark(msgspec.Struct, frozen=True, rename="camel"):
    """The value of ``rebalancer.dev/candidate``."""

    reason: str
    gain: float
    source: str
    destination: str
    expires: str


class AnnotateActuator:
    """``keep_s``: how long a mark is good for when no later plan renews it."""

    def __init__(self, client: KubeClient, *, keep_s: float = KEEP_S) -> None:
        self._client = client
        self._keep_s = keep_s

    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> Prepared:
        wanted = {move.pod.uid for move in plan.moves}
        foreign = {report.name for report in plan.nodes if report.pool is None}
        return Prepared(self._take_off(keep=wanted, foreign=foreign, deadline=deadline))

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome:
        mark = CandidateMark(
            reason=move.reason,
            gain=move.gain,
            source=move.source,
            destination=move.destination,
            expires=format_time(at + self._keep_s),
        )
        value = msgspec.json.encode(mark).decode()
        path = pod_path(namespace=move.pod.namespace, name=move.pod.name)
        try:
            annotate(self._client, path, {CANDIDATE: value}, uid=move.pod.uid, deadline=deadline)
        except (KubernetesNotFound, KubernetesConflict):
            return Outcome(move, Result.GONE, "it is gone, or another pod of the same name by now")
        except KubernetesForbidden as error:
            return Outcome(move, Result.FORBIDDEN, str(error), stop=True)
        except KubernetesThrottled as error:
            return Outcome(move, Result.THROTTLED, str(error), stop=True)
        except KubernetesError as error:
            return Outcome(move, Result.FAILED, str(error))
        return Outcome(move, Result.ANNOTATED, f"marked as a candidate until {mark.expires}")

    def tell_rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        """Nothing was evicted in this mode, so there is nobody to tell."""

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        foreign: set[str] = set()
        if pools is not None:
            nodes = [node.metadata for node in list_all(self._client, NODES, deadline=deadline).items]
            foreign = {node.name for node in nodes if not claimed(pools, node.labels or {})}
        return self._take_off(keep=set(), foreign=foreign, deadline=deadline)

    def _take_off(self, *, keep: set[str], foreign: set[str], deadline: Deadline) -> tuple[str, ...]:
        """Remove the mark from every pod that carries it, but for those in ``keep`` (uids) and marks of the nodes in ``foreign``."""
        marked = [
            PodRef(namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.metadata.uid)
            for pod in list_all(self._client, _MARKED, deadline=deadline).items
            if pod.metadata.annotations is not None
            and (mark := pod.metadata.annotations.candidate) is not None
            and pod.metadata.uid not in keep
            and not (foreign and _source(mark) in foreign)
        ]
        notes: list[str] = []
        removed = 0
        for pod in marked:
            try:
                path = pod_path(namespace=pod.namespace, name=pod.name)
                removed += annotate(self._client, path, {CANDIDATE: None}, uid=pod.uid, deadline=deadline)
            except (KubernetesNotFound, KubernetesConflict):
                continue
            except KubernetesForbidden as error:
                notes.append(f"candidate marks could not be removed: {error}")
                break
            except KubernetesError as error:
                notes.append(f"mark on pod {pod.namespace}/{pod.name} could not be removed: {error}")
        if removed:
            notes.append(f"candidate mark {CANDIDATE} taken off {removed} pod{'s' if removed != 1 else ''}")
        return tuple(notes)


def _source(mark: str) -> str:
    """The node that a mark speaks of; empty where it is none of ours by its form."""
    try:
        return msgspec.json.decode(mark, type=CandidateMark).source
    except msgspec.DecodeError:
        return ""
