"""What happens in a minute of a large cluster: some pods are written anew, some give way to successors, time passes.

The changes are made in the store itself. The agents of the world would take their time for the same: a scheduler that looks at ten thousand
nodes for each pod is not what is measured here.
"""

from __future__ import annotations

import random

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import TERMINAL, controller_of, phase
from rebalancer.simulate.world import World

STEP_S = 60.0
ONE_IN = 10
"""So many of the changed pods are replaced under another name; the others only get another label, as a restart gets another status."""


class Churn:
    """Equal seeds and equal steps change equal pods."""

    def __init__(self, world: World, *, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._turn = 0

    def step(self, pods: int) -> int:
        """Change about so many pods, then let a minute pass; how many were changed."""
        self._turn += 1
        with self._world.lock:
            movable = [pod for pod in self._world.objects("pods") if phase(pod) not in TERMINAL]
            chosen = self._random.sample(movable, min(pods, len(movable)))
            for number, pod in enumerate(chosen):
                owner = controller_of(pod)
                if number % ONE_IN == 0 and owner is not None and owner["kind"] == "ReplicaSet":
                    self._replace(pod, owner)
                else:
                    self._write(pod)
        self._world.advance(STEP_S)
        return len(chosen)

    def _write(self, pod: Json) -> None:
        labels = {**(pod["metadata"].get("labels") or {}), "turn": str(self._turn)}
        self._world.replace("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def _replace(self, pod: Json, owner: Json) -> None:
        """A successor on the same node, in the same state, as old."""
        metadata = {key: value for key, value in pod["metadata"].items() if key not in ("name", "uid", "resourceVersion")}
        self._world.create("pods", {**pod, "metadata": {**metadata, "name": f"{owner['name']}-{self._world.suffix()}"}})
        self._world.remove("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
