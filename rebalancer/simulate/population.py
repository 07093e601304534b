"""Fills a world: nodes, namespaces, classes, and the owners of the catalogue with their budgets, claims and autoscalers.

Either the world lives through the days in which its workloads were rolled out one after the other, with the scheduler placing each pod,
or (for very large worlds) the pods are written down where they would be, by turns.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from rebalancer.simulate.catalogue import Catalogue, Workload, system_workloads
from rebalancer.simulate.gpu.fleet import GANG, gpu_workloads
from rebalancer.simulate.gpu.nodes import with_gpus
from rebalancer.simulate.kinds import BY_KIND, Json
from rebalancer.simulate.kubelet import running_status
from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.making_pods import managed_fields, owner_reference, pod_from
from rebalancer.simulate.pods import effective_request, with_condition
from rebalancer.simulate.world import World
from rebalancer.units import format_time

if TYPE_CHECKING:
    from rebalancer.simulate.scenario import Scenario

_LIVED_S = 2 * 86400.0
_SETTLED_S = 1800.0
_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000, "important": 10_000}
_APPS = {"apiVersion": "v1"}


class Population:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._rng = random.Random(scenario.seed * 1_000_003 + 1)  # noqa: S311 - repeatable, not unguessable
        begin = scenario.now - (_LIVED_S if scenario.scheduled else 0.0)
        self.world = World(seed=scenario.seed, now=begin)
        daemons = 3 * scenario.nodes
        catalogue = Catalogue(self._rng, pods=max(1, scenario.pods - daemons - 5), budgets=scenario.budgets, awkward=scenario.awkward)
        self._system, self._workloads = system_workloads(), list(catalogue)
        if scenario.gpus is not None:
            self._workloads.extend(gpu_workloads(self._rng))
        self._managed_fields = managed_fields() if scenario.managed_fields else None
        self._base_objects()

    # ---- the ground ---------------------------------------------------------------------------------------------------

    def _base_objects(self) -> None:
        world = self.world
        names = {"default", "kube-system", "monitoring", "logging"} | {w.namespace for w in self._workloads}
        for name in sorted(names):
            labels = {"kubernetes.io/metadata.name": name}
            world.create("namespaces", {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"phase": "Active"}})
        for name, value in _PRIORITIES.items():
            world.create("priorityclasses", {"metadata": {"name": name}, "value": value, "globalDefault": False})
        created = format_time(self._scenario.now - 30 * 86400)
        scenario = self._scenario
        for number in range(scenario.nodes):
            world.create("nodes", self._node(f"node-{number:04d}", number, created, cores=scenario.node_cores, gib=scenario.node_gib))
        number = scenario.nodes
        for group in scenario.gpus.groups if scenario.gpus is not None else ():
            for place in range(group.count):
                plain = self._node(f"{group.name}-{place:02d}", number, created, cores=group.cores, gib=group.gib)
                world.create("nodes", with_gpus(plain, group))
                number += 1

    def _node(self, name: str, number: int, created: str, *, cores: int, gib: int) -> Json:
        zone = "abcdefgh"[number % self._scenario.zones]
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": f"m{cores}",
            "topology.kubernetes.io/region": "eu-1",
            "topology.kubernetes.io/zone": f"eu-1{zone}",
        }
        capacity = {"cpu": str(cores), "memory": f"{gib}Gi", "pods": "110", "ephemeral-storage": "200Gi"}
        allocatable = {**capacity, "cpu": f"{cores * 1000 - 200}m", "memory": f"{gib - 2}Gi"}
        conditions = [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": created, "lastHeartbeatTime": created}
        ]
        status = {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": f"10.{250 + (number >> 16 & 3)}.{number >> 8 & 255}.{number & 255}"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "operatingSystem": "linux", "architecture": "amd64"},
        }
        return {"metadata": {"name": name, "labels": labels, "creationTimestamp": created}, "spec": {}, "status": status}

    # ---- owners -------------------------------------------------------------------------------------------------------

    def _create(self, workload: Workload) -> Json:
        """The owner of a workload's pods (for a Deployment its ReplicaSet; for a bare pod the pod), with all that belongs to it."""
        if workload.budget is not None:
            self._create_budgets(workload)
        if workload.claims:
            self._create_claims(workload)
        metadata: Json = {"name": workload.name, "namespace": workload.namespace, "labels": {"app": workload.name}}
        if workload.kind == "Pod":
            shape = self._template(workload)
            stand_in = {**_APPS, "kind": "None", "metadata": {**metadata, "uid": ""}}
            pod = pod_from(self.world, stand_in, shape, name=workload.name)
            del pod["metadata"]["ownerReferences"]
            return self.world.create("pods", pod)
        if workload.kind == GANG:  # its controller is not simulated: what it made stays, or is missing
            return {"apiVersion": "kubeflow.org/v1", "kind": GANG, "metadata": {**metadata, "uid": self.world.new_uid()}}
        spec: Json = {"template": self._template(workload), **workload.spec}
        if workload.kind == "Job":
            spec |= {"parallelism": workload.replicas, "completions": workload.replicas}
        else:
            spec["selector"] = workload.selector
        if workload.kind in ("Deployment", "StatefulSet"):
            spec["replicas"] = workload.replicas
        if workload.claims:
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
        owner = self.world.create(BY_KIND[workload.kind].plural, {"metadata": metadata, "spec": spec})
        if workload.autoscaled:
            self._create_autoscaler(workload)
        return self._create_replica_set(workload, owner) if workload.kind == "Deployment" else owner

    def _template(self, workload: Workload) -> Json:
        shape = workload.template
        if self._managed_fields is None:
            return shape
        return {**shape, "metadata": {**shape["metadata"], "managedFields": self._managed_fields}}

    def _create_replica_set(self, workload: Workload, deployment: Json) -> Json:
        revision = self.world.suffix(9)
        shape = self._template(workload)
        labels = {**shape["metadata"]["labels"], "pod-template-hash": revision}
        pod_template = {**shape, "metadata": {**shape["metadata"], "labels": labels}}
        selector = {"matchLabels": {"app": workload.name, "pod-template-hash": revision}}
        metadata = {
            "name": f"{workload.name}-{revision}",
            "namespace": workload.namespace,
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": [owner_reference(deployment)],
        }
        spec = {"replicas": workload.replicas, "selector": selector, "template": pod_template}
        return self.world.create("replicasets", {"metadata": metadata, "spec": spec})

    def _create_budgets(self, workload: Workload) -> None:
        for name in (workload.name, f"{workload.name}-extra") if workload.twice else (workload.name,):
            spec = {**(workload.budget or {}), "selector": workload.selector}
            self.world.create("poddisruptionbudgets", {"metadata": {"name": name, "namespace": workload.namespace}, "spec": spec})

    def _create_claims(self, workload: Workload) -> None:
        """A volume for each replica, each in the zone of its number."""
        for ordinal in range(workload.replicas):
            name = f"data-{workload.name}-{ordinal}"
            zone = f"eu-1{'abcdefgh'[ordinal % self._scenario.zones]}"
            expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
            affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
            claim_ref = {"namespace": workload.namespace, "name": name}
            volume = {"capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "nodeAffinity": affinity, "claimRef": claim_ref}
            self.world.create("persistentvolumes", {"metadata": {"name": f"pv-{name}"}, "spec": volume, "status": {"phase": "Bound"}})
            claim = {"accessModes": ["ReadWriteOnce"], "volumeName": f"pv-{name}", "resources": {"requests": {"storage": "20Gi"}}}
            metadata = {"name": name, "namespace": workload.namespace}
            self.world.create("persistentvolumeclaims", {"metadata": metadata, "spec": claim, "status": {"phase": "Bound"}})

    def _create_autoscaler(self, workload: Workload) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name}
        spec = {"scaleTargetRef": target, "minReplicas": workload.replicas, "maxReplicas": workload.replicas * 2}
        status = {
            "currentReplicas": workload.replicas,
            "desiredReplicas": workload.replicas,
            "lastScaleTime": format_time(self._scenario.now - self._rng.choice((120, 7200))),
        }
        metadata = {"name": workload.name, "namespace": workload.namespace}
        self.world.create("horizontalpodautoscalers", {"metadata": metadata, "spec": spec, "status": status})

    # ---- life ---------------------------------------------------------------------------------------------------------

    def _profiles(self, workload: Workload) -> list[Profile]:
        request = effective_request({"spec": workload.template["spec"]})
        found = []
        for _ in range(workload.replicas):
            cores = request.get("cpu", 100.0) / 1000 * workload.cpu_share * self._rng.uniform(0.8, 1.2)
            size = request.get("memory", 2.0**28) * self._rng.uniform(0.45, 0.85)
            vary = self._rng.uniform(0.9, 1.1) if workload.gpu_gib else 0.0
            busy, held = workload.gpu_busy * vary, workload.gpu_gib * 2.0**30 * vary
            found.append(Profile(cores, size, swing=0.04, noise=0.03, gpu_busy=busy, gpu_memory_bytes=held))
        return found

    def _create_members(self, owner: Json, workload: Workload) -> None:
        """The pods of a gang, numbered as its operator does."""
        for number in range(workload.replicas):
            shape = self._template(workload)
            labels = {**shape["metadata"]["labels"], "training.kubeflow.org/replica-index": str(number)}
            numbered = {**shape, "metadata": {**shape["metadata"], "labels": labels}}
            self.world.create("pods", pod_from(self.world, owner, numbered, name=f"{workload.name}-worker-{number}"))

    def live_through(self, load: LoadModel) -> None:
        """Create every workload in its turn and let the agents do the rest, until the scenario's now."""
        world = self.world
        for workload in self._system:
            self._create(workload)
        gap = (_LIVED_S - _SETTLED_S) / max(1, len(self._workloads))
        for workload in self._workloads:
            owner = self._create(workload)
            load.plan(owner, self._profiles(workload))
            if workload.kind == GANG:
                self._create_members(owner, workload)
            world.advance(gap)
        world.advance(self._scenario.now - world.now)

    def place_by_turns(self) -> None:
        """Write every pod down as running, node after node."""
        nodes = list(self.world.objects("nodes"))
        turn = 0
        for workload in (*self._system, *self._workloads):
            owner = self._create(workload)
            age = self._rng.uniform(1200.0, _LIVED_S)
            since = self._scenario.now - age
            if workload.kind == "Pod":
                self.world.remove("pods", workload.name, workload.namespace)
                continue
            count = len(nodes) if workload.kind == "DaemonSet" else workload.replicas
            for number in range(count):
                node = nodes[number if workload.kind == "DaemonSet" else turn % len(nodes)]
                turn += workload.kind != "DaemonSet"
                self.world.create("pods", self._running(owner, node, number, since))

    def _running(self, owner: Json, node: Json, number: int, since: float) -> Json:
        daemon, ordered = owner["kind"] == "DaemonSet", owner["kind"] == "StatefulSet"
        name = node["metadata"]["name"]
        parent = owner["metadata"]["name"]
        pod = pod_from(
            self.world,
            owner,
            owner["spec"]["template"],
            name=f"{parent}-{number}" if ordered else "",
            node_name_only=name if daemon else "",
        )
        pod["metadata"]["creationTimestamp"] = format_time(since)
        pod["spec"]["nodeName"] = name
        pod = with_condition(pod, "PodScheduled", "True", since)
        address = node["status"]["addresses"][0]["address"]
        return {**pod, "status": running_status(pod, since, host_ip=address, pod_ip=f"10.{number >> 8 & 127}.{number & 255}.7")}
