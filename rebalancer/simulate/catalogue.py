"""The workloads of a scenario: what runs in the cluster, what it asks for, what protects it. All drawn from one seeded generator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rebalancer.simulate.kinds import Json

_TEAMS = ("shop", "search", "ads", "payments", "media", "maps", "mail", "ml")
_ROLES = ("api", "web", "worker", "cache", "gateway", "indexer", "feed", "render", "sync", "auth")
_CPU = ("50m", "100m", "200m", "250m", "500m", "500m", "750m", "1")
_BUDGETS: tuple[Json, ...] = ({"maxUnavailable": "10%"}, {"maxUnavailable": 1}, {"minAvailable": "80%"})
_MEMORY = ("512Mi", "1Gi", "1Gi", "2Gi", "2Gi", "4Gi")


@dataclass(frozen=True, slots=True)
class Workload:
    """``budget``: the spec of its disruption budget without selector; ``twice``: two budgets cover it."""

    kind: str
    namespace: str
    name: str
    replicas: int
    template: Json
    budget: Json | None = None
    twice: bool = False
    claims: bool = False
    spec: Json = field(default_factory=dict)
    autoscaled: bool = False
    cpu_share: float = 0.6
    """Use of CPU over request, on average."""
    gpu_busy: float = 0.0
    """Share of the time of each of its devices that a pod works, on average."""
    gpu_gib: float = 0.0
    """Of each of its devices' memory, on average."""

    @property
    def selector(self) -> Json:
        return {"matchLabels": {"app": self.name}}


def template(name: str, *, cpu: str, memory: str, annotations: Json | None = None, labels: Json | None = None, **spec: Any) -> Json:
    """A pod template with one container; ``spec`` adds fields to the pod spec."""
    container = {
        "name": name.rsplit("-", 1)[-1],
        "image": f"registry.example/{name}:1.4",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
    }
    metadata: Json = {"labels": {"app": name, **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def system_workloads() -> list[Workload]:
    """What every cluster runs: daemons on each node, DNS, metrics."""
    everywhere: Json = {"tolerations": [{"operator": "Exists"}]}
    host: Json = {"volumes": [{"name": "host", "hostPath": {"path": "/var/log"}}]}
    critical: Json = {"priorityClassName": "system-cluster-critical"}
    node_critical: Json = {"priorityClassName": "system-node-critical"}
    return [
        Workload(
            "DaemonSet", "kube-system", "kube-proxy", 0, template("kube-proxy", cpu="100m", memory="64Mi", **everywhere, **node_critical)
        ),
        Workload("DaemonSet", "monitoring", "node-exporter", 0, template("node-exporter", cpu="50m", memory="64Mi", **everywhere, **host)),
        Workload("DaemonSet", "logging", "log-agent", 0, template("log-agent", cpu="100m", memory="128Mi", **everywhere, **host)),
        Workload(
            "Deployment", "kube-system", "coredns", 3, template("coredns", cpu="100m", memory="128Mi", **critical), {"maxUnavailable": 1}
        ),
        Workload("Deployment", "kube-system", "metrics-server", 1, template("metrics-server", cpu="100m", memory="256Mi", **critical)),
        Workload("Deployment", "monitoring", "kube-state-metrics", 1, template("kube-state-metrics", cpu="100m", memory="256Mi")),
    ]


class Catalogue:
    """Draws workloads until the wanted number of pods is reached."""

    def __init__(self, rng: random.Random, *, pods: int, budgets: bool, awkward: bool) -> None:
        self._rng = rng
        self._pods = pods
        self._budgets, self._awkward = budgets, awkward

    def __iter__(self) -> Iterator[Workload]:
        left = self._pods
        if self._awkward:
            for workload in self._special():
                left -= workload.replicas
                yield workload
        largest = max(8, min(40, self._pods // 20)) if self._pods < 5000 else 100
        number = 0
        while left > 0:
            replicas = min(left, self._rng.randint(3, largest))
            yield self._ordinary(number, replicas)
            left -= replicas
            number += 1

    def _ordinary(self, number: int, replicas: int) -> Workload:
        team, role = _TEAMS[number % len(_TEAMS)], _ROLES[(number // len(_TEAMS)) % len(_ROLES)]
        turn = number // (len(_TEAMS) * len(_ROLES))
        name = f"{team}-{role}" + (f"-{turn}" if turn else "")
        budget: Json | None = None
        if self._budgets and replicas >= 3 and self._rng.random() < 0.5:
            budget = self._rng.choice(_BUDGETS)
        spec: Json = {}
        draw = self._rng.random()
        if self._awkward and draw < 0.08:
            spec["topologySpreadConstraints"] = [self._spread(name, "topology.kubernetes.io/zone", "DoNotSchedule")]
        elif self._awkward and draw < 0.16:
            spec["topologySpreadConstraints"] = [self._spread(name, "kubernetes.io/hostname", "ScheduleAnyway")]
        elif self._awkward and draw < 0.22 and replicas <= 12:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_apart(name)]}}
        cpu, memory = self._rng.choice(_CPU), self._rng.choice(_MEMORY)
        made = template(name, cpu=cpu, memory=memory, labels={"team": team}, **spec)
        share = min(1.4, self._rng.lognormvariate(-0.6, 0.45))
        autoscaled = self._awkward and number % 11 == 5
        return Workload("Deployment", team, name, replicas, made, budget, autoscaled=autoscaled, cpu_share=share)

    @staticmethod
    def _spread(name: str, key: str, when: str) -> Json:
        return {"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": name}}}

    def _special(self) -> Iterator[Workload]:
        """One or two of everything that a rebalancer must treat with care."""
        no = {"rebalancer.dev/evict": "false"}
        autoscaler = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        scratch: Json = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
        once: Json = {"restartPolicy": "Never"}
        never = {"minAvailable": "100%"}
        yield Workload("Deployment", "payments", "payments-ledger", 6, template("payments-ledger", cpu="500m", memory="1Gi"), never)
        yield Workload(
            "Deployment", "payments", "payments-vault", 3, template("payments-vault", cpu="250m", memory="512Mi", annotations=no)
        )
        yield Workload("Deployment", "ads", "ads-bidder", 4, template("ads-bidder", cpu="500m", memory="512Mi", annotations=autoscaler))
        yield Workload(
            "Deployment", "mail", "mail-queue", 5, template("mail-queue", cpu="250m", memory="512Mi"), {"maxUnavailable": 1}, twice=True
        )
        for team in ("shop", "maps", "media"):
            yield Workload("Deployment", team, f"{team}-admin", 1, template(f"{team}-admin", cpu="200m", memory="256Mi"))
        yield Workload("Deployment", "media", "media-transcoder", 6, template("media-transcoder", cpu="500m", memory="1Gi", **scratch))
        for name, replicas in (("search-shards", 6), ("shop-db", 3)):
            budget = {"maxUnavailable": 1}
            made = template(name, cpu="500m", memory="2Gi")
            yield Workload("StatefulSet", name.split("-", 1)[0], name, replicas, made, budget, claims=name == "shop-db")
        parallel = {"podManagementPolicy": "Parallel"}
        yield Workload("StatefulSet", "ml", "ml-features", 8, template("ml-features", cpu="500m", memory="1Gi"), spec=parallel)
        ignore = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
        for name, spec in (("ml-train", {"podFailurePolicy": ignore}), ("ads-report", {"backoffLimit": 2})):
            made = template(name, cpu="1", memory="1Gi", **once)
            yield Workload("Job", name.split("-", 1)[0], name, 4, made, spec=spec)
        yield Workload("Pod", "maps", "maps-debug", 1, template("maps-debug", cpu="100m", memory="128Mi"))


def _apart(name: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
