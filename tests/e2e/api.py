"""The API server as the tests speak to it: plain JSON, apart from the client that is under test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import kubernetes
import urllib3

Json = dict[str, Any]
TIMEOUT_S = 30.0
GROUPS = {
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "clusterroles": "apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "validatingadmissionpolicies": "apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings": "apis/admissionregistration.k8s.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "hintannouncements": "apis/rebalancer.dev/v1alpha1",
    "mutatingadmissionpolicies": "apis/admissionregistration.k8s.io/v1",
    "mutatingadmissionpolicybindings": "apis/admissionregistration.k8s.io/v1",
}
"""Plural -> group and version of what is not in the core group."""
KINDS = {"priorityclasses": "PriorityClass", "validatingadmissionpolicies": "ValidatingAdmissionPolicy"}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Refused(Exception):
    """An answer of the server that is no success."""

    def __init__(self, status: int, words: str, *, doing: str) -> None:
        super().__init__(f"{doing}: {status} {words}")
        self.status = status
        self.words = words


class Api:
    """One user of one API server. Threads may share it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        client = kubernetes.config.new_client_from_config(str(kubeconfig))
        self.server: str = client.configuration.host
        self._pool: urllib3.PoolManager = client.rest_client.pool_manager
        settings = client.configuration.auth_settings().values()
        self._headers: dict[str, str] = {each["key"]: each["value"] for each in settings if each["in"] == "header"}

    def close(self) -> None:
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        body: object | None = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str | int] | None = None,
    ) -> Json:
        """Raises Refused, and urllib3's errors when there is no answer."""
        url = f"{self.server}/{path.lstrip('/')}" + (f"?{urlencode(query)}" if query else "")
        answer = self._pool.request(
            method,
            url,
            body=None if body is None else json.dumps(body),
            headers={**self._headers, "Content-Type": content_type, "Accept": "application/json"},
            timeout=TIMEOUT_S,
            retries=False,
        )
        text = answer.data.decode()
        if answer.status >= 300:
            raise Refused(answer.status, _message(text), doing=f"{method} {path}")
        found = json.loads(text) if text.startswith("{") else {"text": text}
        assert isinstance(found, dict)
        return found

    def ready(self) -> bool:
        try:
            return bool(self.request("GET", "readyz")["text"] == "ok")
        except (Refused, urllib3.exceptions.HTTPError):
            return False

    def list(self, resource: str, namespace: str = "", **query: str | int) -> list[Json]:
        items = self.request("GET", path(resource, namespace), query=query)["items"]
        assert isinstance(items, list)
        return items

    def get(self, resource: str, name: str, namespace: str = "") -> Json:
        return self.request("GET", path(resource, namespace, name))

    def find(self, resource: str, name: str, namespace: str = "") -> Json | None:
        """None where there is none."""
        try:
            return self.get(resource, name, namespace)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def create(self, resource: str, manifest: Json) -> Json:
        """``apiVersion`` and ``kind`` may be left out: the path says them."""
        group = GROUPS.get(resource, "api/v1").partition("/")[2]
        kind = manifest.get("kind") or KINDS.get(resource, "")
        whole = {"apiVersion": group, **({"kind": kind} if kind else {}), **manifest}
        return self.request("POST", path(resource, manifest["metadata"].get("namespace", "")), whole)

    def patch(self, resource: str, name: str, body: object, namespace: str = "", *, part: str = "", content_type: str = MERGE) -> Json:
        return self.request("PATCH", path(resource, namespace, name, part), body, content_type=content_type)

    def delete(self, resource: str, name: str, namespace: str = "", *, grace_s: int | None = None, uid: str = "") -> bool:
        """False when it was gone already, or is another one by now."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self.request("DELETE", path(resource, namespace, name), body)
        except Refused as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    def evict(self, name: str, namespace: str) -> None:
        """Raises Refused with status 429 when a budget says no."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        self.request("POST", path("pods", namespace, name, "eviction"), body)

    def scale(self, resource: str, name: str, namespace: str, replicas: int) -> None:
        self.patch(resource, name, {"spec": {"replicas": replicas}}, namespace)

    def watch(
        self, resource: str, *, since: str, seconds: int, namespace: str = "", stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Json]:
        """Events after ``since``, for at most ``seconds``. An event of type ERROR is the last one: list again."""
        query = {"watch": "1", "resourceVersion": since, "timeoutSeconds": str(seconds), "allowWatchBookmarks": "true"}
        url = f"{self.server}/{path(resource, namespace)}?{urlencode(query)}"
        answer = self._pool.request(
            "GET", url, headers=self._headers, preload_content=False, retries=False, timeout=urllib3.Timeout(connect=5, read=seconds + 5)
        )
        try:
            if answer.status != 200:
                raise Refused(answer.status, _message(answer.read().decode()), doing=f"watch {resource}")
            rest = b""
            for chunk in answer.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)
                if stop():
                    return
        finally:
            answer.close()
            answer.release_conn()


def path(resource: str, namespace: str = "", name: str = "", part: str = "") -> str:
    """``path("pods", "shop", "web-1", "eviction")`` -> ``api/v1/namespaces/shop/pods/web-1/eviction``."""
    steps = [GROUPS.get(resource, "api/v1"), *(["namespaces", namespace] if namespace else []), resource, name, part]
    return "/".join(step for step in steps if step)


def until(condition: Callable[[], Any], what: str, *, seconds: float = 60.0, step: float = 0.1) -> Any:
    """The first true value; fails with what was waited for, after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(step)


def _message(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return text[:300]
    return str(found.get("message", text)[:1000]) if isinstance(found, Mapping) else text[:300]
