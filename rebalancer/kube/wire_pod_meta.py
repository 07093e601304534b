"""The metadata of pods on the wire: as of every object, with the annotations by which GPUs are asked for and given away, and those by
which pods belong together or may be taken away.

Only pods carry them, so only pods pay for looking. To read another one, add it to a map here, and to `rebalancer.gpu` whatever reads it.
"""

from __future__ import annotations

from rebalancer.kube.wire import AnnotationsWire, MetaWire

_KEYS = {
    "gpu_fraction": "gpu-fraction",
    "gpu_memory": "gpu-memory",
    "gpu_fraction_devices": "gpu-fraction-num-devices",
    "gpu_fraction_container": "gpu-fraction-container-name",
    "reserved_gpu": "run.ai/reserve_for_gpu_index",
    "use_gpu_type": "nvidia.com/use-gputype",
    "no_gpu_type": "nvidia.com/nouse-gputype",
    "use_gpu_uuid": "nvidia.com/use-gpuuuid",
    "no_gpu_uuid": "nvidia.com/nouse-gpuuuid",
    "tencent_cap": "tencent.com/vcuda-core-limit",
    "tencent_assigned": "tencent.com/gpu-assigned",
    "tencent_0": "tencent.com/predicate-gpu-idx-0",
    "tencent_1": "tencent.com/predicate-gpu-idx-1",
    "tencent_2": "tencent.com/predicate-gpu-idx-2",
    "tencent_3": "tencent.com/predicate-gpu-idx-3",
    "tencent_4": "tencent.com/predicate-gpu-idx-4",
    "tencent_5": "tencent.com/predicate-gpu-idx-5",
    "tencent_6": "tencent.com/predicate-gpu-idx-6",
    "tencent_7": "tencent.com/predicate-gpu-idx-7",
    "gpushare_index": "ALIYUN_COM_GPU_MEM_IDX",
    "gpushare_amount": "ALIYUN_COM_GPU_MEM_POD",
    "gpushare_assigned": "ALIYUN_COM_GPU_MEM_ASSIGNED",
    "gpushare_allocation": "scheduler.framework.gpushare.allocation",
    "hami_allocated": "hami.io/vgpu-devices-allocated",
    "hami_instances": "hami.io/vgpu-mig-allocations",
    "hami_planned": "hami.io/vgpu-devices-to-allocate",
    "hami_node": "hami.io/vgpu-node",
    "hami_phase": "hami.io/bind-phase",
    "volcano_allocated": "volcano.sh/vgpu-ids-new",
    "volcano_planned": "volcano.sh/devices-to-allocate",
    "volcano_node": "volcano.sh/vgpu-node",
    "volcano_phase": "volcano.sh/bind-phase",
    "volcano_index": "volcano.sh/gpu-index",
    "koordinator_devices": "scheduling.koordinator.sh/device-allocated",
    "koordinator_minimum": "gang.scheduling.koordinator.sh/min-available",
    "pod_group": "scheduling.x-k8s.io/pod-group",
    "light_group": "pod-group.scheduling.sigs.k8s.io",
    "light_group_name": "pod-group.scheduling.sigs.k8s.io/name",
    "light_group_minimum": "pod-group.scheduling.sigs.k8s.io/min-available",
    "kueue_group": "kueue.x-k8s.io/pod-group-name",
    "kueue_group_total": "kueue.x-k8s.io/pod-group-total-count",
    "kueue_group_serving": "kueue.x-k8s.io/pod-group-serving",
    "worker_group_size": "leaderworkerset.sigs.k8s.io/size",
    "job_index": "batch.kubernetes.io/job-completion-index",
    "volcano_preemptable": "volcano.sh/preemptable",
    "volcano_cooldown": "volcano.sh/cooldown-time",
    "kai_preemptibility": "kai.scheduler/preemptibility",
    "koordinator_preemptible": "quota.scheduling.koordinator.sh/preemptible",
    "koordinator_eviction": "koordinator.sh/eviction-enabled",
    "ray_fault_tolerant": "ray.io/ft-enabled",
}


class PodAnnotationsWire(AnnotationsWire, frozen=True, gc=False, omit_defaults=True, rename=_KEYS.get):
    gpu_fraction: str | None = None
    gpu_memory: str | None = None
    gpu_fraction_devices: str | None = None
    gpu_fraction_container: str | None = None
    reserved_gpu: str | None = None
    use_gpu_type: str | None = None
    no_gpu_type: str | None = None
    use_gpu_uuid: str | None = None
    no_gpu_uuid: str | None = None
    tencent_cap: str | None = None
    tencent_assigned: str | None = None
    tencent_0: str | None = None
    tencent_1: str | None = None
    tencent_2: str | None = None
    tencent_3: str | None = None
    tencent_4: str | None = None
    tencent_5: str | None = None
    tencent_6: str | None = None
    tencent_7: str | None = None
    gpushare_index: str | None = None
    gpushare_amount: str | None = None
    gpushare_assigned: str | None = None
    gpushare_allocation: str | None = None
    hami_allocated: str | None = None
    hami_instances: str | None = None
    hami_planned: str | None = None
    hami_node: str | None = None
    hami_phase: str | None = None
    volcano_allocated: str | None = None
    volcano_planned: str | None = None
    volcano_node: str | None = None
    volcano_phase: str | None = None
    volcano_index: str | None = None
    koordinator_devices: str | None = None
    koordinator_minimum: str | None = None
    pod_group: str | None = None
    light_group: str | None = None
    light_group_name: str | None = None
    light_group_minimum: str | None = None
    kueue_group: str | None = None
    kueue_group_total: str | None = None
    kueue_group_serving: str | None = None
    worker_group_size: str | None = None
    job_index: str | None = None
    volcano_preemptable: str | None = None
    volcano_cooldown: str | None = None
    kai_preemptibility: str | None = None
    koordinator_preemptible: str | None = None
    koordinator_eviction: str | None = None
    ray_fault_tolerant: str | None = None


NO_ANNOTATIONS = PodAnnotationsWire()


class PodMetaWire(MetaWire, frozen=True, gc=False, rename="camel"):
    annotations: PodAnnotationsWire | None = None
