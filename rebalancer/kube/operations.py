"""Paths of the API and the words for them: which verb on which resource a request is, in the terms of an RBAC rule.

A refusal is only useful if it names the rule that is missing, so every request is described before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Operation:
    """``resource`` is the plural with its subresource (``pods/eviction``); for ``/version`` it is the path, with no ``group``."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def sentence(self) -> str:
        """``create pods/eviction shop/web-1``: what a message calls the request."""
        target = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name
        place = f" in namespace {self.namespace}" if self.namespace and not self.name else ""
        return f"{self.verb} {self.resource}{' ' + target if target else ''}{place}"

    @property
    def rule(self) -> str:
        """The RBAC rule that allows it, as YAML in one line."""
        if self.resource.startswith("/"):
            return f'{{nonResourceURLs: ["{self.resource}"], verbs: ["{self.verb}"]}}'
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"], verbs: ["{self.verb}"]}}'

    @property
    def question(self) -> str:
        """The kubectl command that asks whether it is allowed."""
        resource, _, subresource = self.resource.partition("/") if not self.resource.startswith("/") else (self.resource, "", "")
        kind = f"{resource}.{self.group}" if self.group else resource
        parts = ["kubectl auth can-i", self.verb, kind]
        parts += [f"--subresource={subresource}"] if subresource else []
        parts += ["-n", self.namespace] if self.namespace else []
        return " ".join(parts)


def describe(method: str, path: str) -> Operation:
    """The operation that ``method`` on ``path`` is."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return Operation(verb=_VERBS.get(method, "get"), group="", resource=path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    resource = f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]
    verb = _VERBS.get(method) or ("get" if name else "list")
    return Operation(verb=verb, group=group, resource=resource, namespace=namespace, name=name)


def object_path(*, api_version: str, plural: str, name: str, namespace: str = "") -> str:
    """The path of one object: ``object_path(api_version="apps/v1", plural="deployments", namespace="shop", name="web")``."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    place = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{root}{place}/{plural}/{quote(name, safe='')}"


def pod_path(*, namespace: str, name: str) -> str:
    return object_path(api_version="v1", plural="pods", namespace=namespace, name=name)


def node_path(name: str) -> str:
    return object_path(api_version="v1", plural="nodes", name=name)
