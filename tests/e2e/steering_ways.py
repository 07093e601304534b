"""The ways in which new pods can be led, as contenders of one closed loop: what each needs in policy, settings, scheduler and cluster.

All have the same policy but for `spec.steering`. It lets a workload move again after half a minute and three pods of it within the run, so
that a second eviction is a matter of steering and not of a limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.e2e.ground import Ground
from tests.e2e.hinting import ENABLED, admission
from tests.e2e.hollow import HOLLOW
from tests.e2e.reference_course import HOT
from tests.e2e.reference_run import Contender
from tests.e2e.steering_extender import extender

OWN = "e2e-steering"
"""Where the controller keeps its state, and where the extender finds it."""
CPU = 'sum without (cpu, mode) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[30s]))'
CPU_LATER = CPU.replace("[30s]", "[30s] offset -5m")
MEMORY = "(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
MEMORY_LATER = "(node_memory_MemTotal_bytes offset -5m - node_memory_MemAvailable_bytes offset -5m)"
POLICY = f"""\
  mode: evict
  interval: 12s
  pools:
    - name: default
      nodeSelector: {{matchLabels: {{{HOLLOW}: "true"}}}}
      signals:
        cpu: {{low: 40, target: 52, high: {HOT * 100:g}}}
        memory: {{low: 50, target: 80, high: 90}}
  signals:
    # Load annotations say the mean of five minutes, and of a node that was not measured before them none. A Prometheus that has just begun
    # has no five minutes, so these say of the time before it what they say of five minutes later.
    - name: cpu
      unit: cores
      nodeQuery: '{CPU} or {CPU_LATER}'
      podQuery: 'sum by (namespace, pod, node) (rate(container_cpu_usage_seconds_total{{container!="",container!="POD"}}[30s]))'
      capacity: {{resource: cpu}}
    - name: memory
      unit: bytes
      nodeQuery: '{MEMORY} or {MEMORY_LATER}'
      podQuery: 'sum by (namespace, pod, node) (container_memory_working_set_bytes{{container!="",container!="POD"}})'
      capacity: {{resource: memory}}
  metrics: {{window: 30s, maxAge: 30s, minCoverage: 50}}
  confirm: {{windows: 3, atLeast: 2, step: 10s}}
  risk: {{deviations: 0}}
  budgets: {{window: 10m, total: 40, perNode: 10, perNamespace: 40, perWorkload: 3}}
  cooldown: {{workload: 30s, node: 10s}}
  victims: {{minAge: 30s}}
  breaker: {{pendingAfter: 1m}}
"""


@dataclass(frozen=True)
class Way:
    """``steering``: of the policy; ``reservation_s``: of the extender, None for a cluster without one."""

    name: str
    steering: str
    reservation_s: float | None = None
    hinted: bool = False
    """The admission policy of placement hints is in force, and every namespace asks for them."""

    @property
    def spec(self) -> str:
        return f"{POLICY}  steering: {{{self.steering}}}\n"

    @property
    def taints(self) -> bool:
        return "softTaint: true" in self.steering

    @property
    def annotates(self) -> bool:
        return "annotateNodes" in self.steering

    @property
    def env(self) -> Mapping[str, str]:
        return {"REBALANCER_NAMESPACE": OWN}

    @contextlib.contextmanager
    def prepared(self, own: Ground) -> Iterator[None]:
        """The cluster as this way needs it: scheduler, extender, admission."""
        own.namespace(OWN)
        with contextlib.ExitStack() as stack:
            if self.reservation_s is not None:
                policy = own.policy(self.spec, name="extender-policy.yaml")
                stack.enter_context(extender(own, policy=policy, namespace=OWN, reservation_s=self.reservation_s))
            if self.hinted:
                stack.enter_context(admission(own, namespace=OWN))
            yield

    @property
    def contender(self) -> Contender:
        return Contender(self.name, self.spec, env=self.env, beside=self.prepared, labels=ENABLED if self.hinted else {})


NONE = Way("no steering", "softTaint: false")
TAINTS = Way("soft taints, two grades", "softTaint: true, grades: 2")
ANNOTATIONS = Way("annotations, read by the extender", "softTaint: false, annotateNodes: own", reservation_s=0.0)
RESERVATIONS = Way("extender with reservations", "softTaint: false, annotateNodes: own, extenderWeight: 5", reservation_s=300.0)
HINTS = Way("placement hints", "softTaint: false, hints: true", hinted=True)
WAYS = (NONE, TAINTS, ANNOTATIONS, RESERVATIONS, HINTS)


def one_move(spec: str) -> str:
    """The policy with a budget of one move, at once: enough for soft taints to be put, which come with a plan, and no cure."""
    return spec.replace("total: 40", "total: 1").replace("minAge: 30s", "minAge: 0s")
