"""Whether placement hints would happen at all: asked before each plan that counts on them, and by the preflight."""

from __future__ import annotations

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.admission import mutates_by
from rebalancer.kube.announcements import KIND
from rebalancer.kube.client import KubeClient

INSTALL = "install what `rebalancer policy hints` prints"


def hints_unready(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> str:
    """Why no replacement would be gated, in words; empty when it would, where a namespace asks for it. ``name``: of the announcement, in
    ``namespace``. What cannot be asked counts as not there. Raises Interrupted."""
    try:
        bound = mutates_by(client, namespace=namespace, name=name, deadline=deadline)
    except KubernetesError as error:
        return str(error)
    if bound is None:
        return "the API server has no MutatingAdmissionPolicy v1, which is of Kubernetes 1.36"
    return "" if bound else f"no admission policy goes by {KIND} {namespace}/{name}; {INSTALL}"
