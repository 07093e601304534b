"""What a pod would lose when it moves, and what it must take along: local volumes, claims, resource claims.

Local is what dies with the pod on its node: emptyDir on disk, and hostPath. An emptyDir in memory (what GPU pods mount as /dev/shm) is
neither storage nor a reason to stay.
"""

from __future__ import annotations

from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.tables import PodVolumes, ResourceClaim

NO_VOLUMES = PodVolumes()
_IN_MEMORY = "Memory"


def pod_volumes(pod: PodWire) -> PodVolumes:
    """Names of local volumes, of claims (an ephemeral volume's claim is called ``<pod>-<volume>``) and of resource claims."""
    spec = pod.spec
    local: list[str] = []
    claims: list[str] = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            claims.append(f"{pod.metadata.name}-{volume.name}")
        elif volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != _IN_MEMORY):
            local.append(volume.name)
    if not local and not claims and not spec.resource_claims:
        return NO_VOLUMES
    resource_claims = (
        ResourceClaim(name=claim.resource_claim_name or claim.name, shared=claim.resource_claim_name is not None)
        for claim in spec.resource_claims or ()
    )
    return PodVolumes(local=tuple(local), claims=tuple(claims), resource_claims=tuple(resource_claims))
