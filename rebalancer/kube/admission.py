"""Whether an admission policy of ours is installed: looked up by what it reads, since its name is whoever installed it's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesNotFound
from rebalancer.kube.lists import Resource, list_all
from rebalancer.kube.wire import MetaWire

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

GROUP = "admissionregistration.k8s.io"
BINDINGS = "mutatingadmissionpolicybindings"


class _ParamRef(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    param_ref: _ParamRef | None = None


class BindingWire(msgspec.Struct, frozen=True):
    """A MutatingAdmissionPolicyBinding."""

    metadata: MetaWire
    spec: _Spec = _Spec()


MUTATING_BINDINGS = Resource(name=BINDINGS, path=f"/apis/{GROUP}/v1/{BINDINGS}", item=BindingWire)


def mutates_by(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> bool | None:
    """Whether some MutatingAdmissionPolicy is bound with the object of this name as its parameter; None where the API server has no such
    policies (v1 came with Kubernetes 1.36). Raises KubernetesError."""
    try:
        found = list_all(client, MUTATING_BINDINGS, deadline=deadline).items
    except KubernetesNotFound:
        return None
    refs = (binding.spec.param_ref for binding in found)
    return any(ref is not None and (ref.namespace, ref.name) == (namespace, name) for ref in refs)
