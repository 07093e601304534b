"""Writes on gated pods: a node proposed, the gate opened; and a clean-up that opens every gate of ours.

The proposal is ``status.nominatedNodeName``: kube-scheduler tries that node first, takes it whatever the scores when the pod fits there,
keeps others of the same or a lower priority off the room meanwhile, and clears the field when the pod is bound, so that nothing of it
stays. A preferred node affinity would work as well, but stays in the pod's spec for life.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.announcements import KIND, delete_announcement
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gates import GatedPodWire, gated_pods, nominate, open_gate, read_gated, takes_pods
from rebalancer.kube.lists import list_all
from rebalancer.steer.hinting import GATE, LABEL, GatedPod, Ungated


def gated_pod(wire: GatedPodWire) -> GatedPod:
    meta, controller = wire.metadata, wire.metadata.controller
    return GatedPod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        controller_uid="" if controller is None else controller.uid,
        controller_kind="" if controller is None else controller.kind,
        created_at=meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0,
    )


def propose(client: KubeClient, pod: GatedPod, nodes: Sequence[str], *, deadline: Deadline) -> tuple[Ungated, str]:
    """Give the pod the first of ``nodes`` that takes pods now: (HINTED, node), or why there is no hint, with a sentence. Never raises
    KubernetesError: whatever came of the proposal, the gate is to be opened."""
    try:
        node = next((node for node in nodes if _takes_pods(client, node, deadline=deadline)), "")
    except KubernetesError as error:
        return Ungated.REFUSED, str(error)
    if not node:
        return Ungated.NO_NODE, f"none of {', '.join(nodes) or 'its nodes'} takes pods now"
    try:
        nominate(client, namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node, deadline=deadline)
    except KubernetesError as error:
        return Ungated.REFUSED, str(error)
    return Ungated.HINTED, node


def let_go(client: KubeClient, pod: GatedPod, *, deadline: Deadline) -> bool:
    """Open our gate and take our label off. False when the pod is gone. Raises KubernetesError; then the gate may still be shut.

    An answer of 422 may mean that another pod has the name, or that some admission refuses the change; only a look can tell.
    """
    try:
        open_gate(client, namespace=pod.namespace, name=pod.name, uid=pod.uid, gate=GATE, label=LABEL, deadline=deadline)
    except KubernetesNotFound:
        return False
    except KubernetesConflict:
        found = read_gated(client, namespace=pod.namespace, name=pod.name, deadline=deadline)
        if found is not None and found.metadata.uid == pod.uid:
            raise
        return False
    return True


def remove_hints(
    client: KubeClient,
    *,
    namespace: str,
    announcement: str,
    owner: str,
    deadline: Deadline,
    search: str = "",
    opened: Callable[[GatedPod], None] = lambda pod: None,
) -> tuple[str, ...]:
    """Delete the announcement and let every pod go that our gate holds or our label marks. Returns sentences.

    ``owner``: leave the pods of other controllers' labels alone; empty: whoever gated them. ``search``: a label selector of the pods that
    are looked at; empty: all pods, so that those are found too that have lost the label. ``opened`` hears of each pod that is let go.
    """
    notes: list[str] = []
    try:
        if delete_announcement(client, namespace=namespace, name=announcement, deadline=deadline):
            notes.append(f"{KIND} {namespace}/{announcement} deleted: no new pod is gated")
    except KubernetesError as error:
        notes.append(f"{KIND} {namespace}/{announcement} could not be deleted: {error}")
    count = 0
    for wire in list_all(client, gated_pods(search), deadline=deadline).items:
        labelled = (wire.metadata.labels or {}).get(LABEL)
        if labelled is None and not wire.held_by(GATE):
            continue
        if labelled is not None and owner and labelled != owner:
            continue
        try:
            if let_go(client, gated_pod(wire), deadline=deadline):
                opened(gated_pod(wire))
                count += 1
        except KubernetesForbidden as error:
            notes.append(f"scheduling gates could not be opened: {error}")
            break
        except KubernetesError as error:
            notes.append(f"the gate of pod {wire.metadata.namespace}/{wire.metadata.name} could not be opened: {error}")
    if count:
        notes.append(f"scheduling gate {GATE} opened for {count} pod{'s' if count != 1 else ''}")
    return tuple(notes)


def _takes_pods(client: KubeClient, node: str, *, deadline: Deadline) -> bool:
    try:
        return takes_pods(client, node, deadline=deadline)
    except KubernetesNotFound:
        return False
