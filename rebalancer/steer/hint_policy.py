"""What an operator installs for placement hints: the kind of the announcement, and the admission policy that gates by it, with its binding.

Kubernetes 1.36 has `admissionregistration.k8s.io/v1` MutatingAdmissionPolicy: the API server itself adds the gate and the label, with no
webhook in the way. The expressions see the new pod and, as the parameter, the announcement (`hinting`): controllers by their uid, each with
the time until which its pods are gated. CEL has no clock. What it can read is the time in ``metadata.managedFields``, which the
API server itself writes on every new object before it asks admission, so an announcement that nobody renews gates nothing any more,
whatever became of who wrote it. Tried on a real 1.36.3:

- pods of a ReplicaSet carry one entry in ``managedFields`` then, of kube-controller-manager, with the time of the request in whole seconds;
- the comparison holds: with a time that lies ahead the pod is gated, with one that has passed it is not;
- with no announcement there the policy is not asked at all (``parameterNotFoundAction: Allow``), and a value that is no time is an error,
  which ``failurePolicy: Ignore`` lets pass: whatever is wrong, the pod is created as if the policy were not there;
- the announcement was in force for the request that was sent right behind it in 23 of 24 tries, and for the next one in the last, with one
  API server; with several each reads it by a watch of its own, so the controller waits a moment between the two;
- the announcement is of a kind of its own, not a ConfigMap: an API server stops reading ConfigMaps as parameters when the last policy that
  has some is deleted, and never begins anew before it restarts. So hints that were uninstalled and installed again gated nothing any more.
  Parameters of custom kinds are read anew: a policy was in force within a second of its second installation, within three of the kind's.

Never gated: pods of DaemonSets, pods with a node, static pods' mirrors, pods that another gate holds, pods of other schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.kube.announcements import API_VERSION, GROUP, KIND, PLURAL
from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL, STOCK_SCHEDULER
from rebalancer.steer.hinting import GATE, LABEL

GROUP_VERSION = "admissionregistration.k8s.io/v1"
_AWAITED = (
    "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind != 'DaemonSet' && "
    "o.uid in params.?awaited.orValue({}) && "
    "object.metadata.?managedFields.orValue([]).size() > 0 && "
    "object.metadata.managedFields.all(m, timestamp(m.time) < timestamp(params.awaited[o.uid].until)))"
)
_FREE = (
    "object.spec.?nodeName.orValue('') == '' && object.spec.?schedulingGates.orValue([]).size() == 0 && "
    f"object.spec.?schedulerName.orValue('{STOCK_SCHEDULER}') == '{STOCK_SCHEDULER}' && "
    "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
)


def announcement_kind() -> Mapping[str, object]:
    """The definition of the kind, one for all controllers of a cluster."""
    pods = {"type": "array", "items": {"type": "string"}, "description": "Evicted pods whose replacements are awaited, by uid."}
    until = {"type": "string", "description": "Until when new pods of the controller are gated, RFC 3339."}
    entry = {"type": "object", "required": ["until"], "properties": {"until": until, "pods": pods}}
    awaited = {"type": "object", "description": "Controllers by uid.", "additionalProperties": entry}
    schema = {
        "type": "object",
        "description": "Whose new pods are gated, until when: written by the rebalancer right before it evicts, and deleted after.",
        "properties": {"awaited": awaited},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": KIND.lower(), "kind": KIND},
            "versions": [
                {"name": API_VERSION.rpartition("/")[2], "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


def hint_policy(*, name: str, namespace: str, announcement: str, owner: str) -> tuple[Mapping[str, object], ...]:
    """The policy and its binding. ``announcement``: its name, in ``namespace``. ``owner``: the value of our label on gated pods."""
    gated = (
        f"Object{{metadata: Object.metadata{{labels: {{'{LABEL}': '{owner}'}}}}, "
        f"spec: Object.spec{{schedulingGates: [Object.spec.schedulingGates{{name: '{GATE}'}}]}}}}"
    )
    policy: dict[str, object] = {
        "apiVersion": GROUP_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "paramKind": {"apiVersion": API_VERSION, "kind": KIND},
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: ENABLED}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            },
            "matchConditions": [
                {"name": "free-to-be-placed", "expression": _FREE},
                {"name": "awaited-replacement", "expression": _AWAITED},
            ],
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": gated}}],
        },
    }
    binding: dict[str, object] = {
        "apiVersion": GROUP_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "paramRef": {"name": announcement, "namespace": namespace, "parameterNotFoundAction": "Allow"}},
    }
    return policy, binding
