"""The admission policy of placement hints for the embedded cluster: what `steer.hint_policy` has a real API server do, without CEL.

A pod is gated when its namespace asks for hints, nothing else holds or places it, and the announcement names its controller with a time
that lies ahead.
"""

from __future__ import annotations

from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL, STOCK_SCHEDULER
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import controller_of
from rebalancer.simulate.world import World
from rebalancer.steer.hinting import GATE, LABEL
from rebalancer.units import parse_time


class HintAdmission:
    """``world.admission.append(HintAdmission(world, ...))`` installs it. The arguments are those of `steer.hint_policy.hint_policy`."""

    def __init__(self, world: World, *, namespace: str, announcement: str, owner: str) -> None:
        self._world = world
        self._namespace, self._announcement, self._owner = namespace, announcement, owner

    def __call__(self, plural: str, value: Json) -> Json:
        """The object as it is stored."""
        if plural != "pods" or not self._wanted(value):
            return value
        metadata, spec = value["metadata"], value["spec"]
        labels = {**(metadata.get("labels") or {}), LABEL: self._owner}
        return {**value, "metadata": {**metadata, "labels": labels}, "spec": {**spec, "schedulingGates": [{"name": GATE}]}}

    def _wanted(self, pod: Json) -> bool:
        spec, owner = pod["spec"], controller_of(pod)
        namespace = self._world.find("namespaces", pod["metadata"].get("namespace", ""))
        if namespace is None or (namespace["metadata"].get("labels") or {}).get(NAMESPACE_LABEL) != ENABLED:
            return False
        if spec.get("nodeName") or spec.get("schedulingGates") or spec.get("schedulerName", STOCK_SCHEDULER) != STOCK_SCHEDULER:
            return False
        return owner is not None and owner["kind"] != "DaemonSet" and self._announced(owner["uid"])

    def _announced(self, controller: str) -> bool:
        found = self._world.find("hintannouncements", self._announcement, self._namespace)
        said = {} if found is None else (found.get("awaited") or {}).get(controller, {})
        try:
            return self._world.now < parse_time(said.get("until", ""))
        except ValueError:
            return False  # an error in an expression: the policy is ignored
