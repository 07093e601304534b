"""What a pod would lose or must take along: volumes and resource claims."""

from __future__ import annotations

from rebalancer.policy.model import Victims
from rebalancer.state.tables import PodVolumes, ResourceClaim
from tests.guard.scenes import ask, measured, reason, scene_of, state_with


def test_v12_local_storage_is_refused_by_the_name_of_its_volume() -> None:
    """Disk emptyDir and hostPath follow the policy, and the refusal says which volume it is about."""
    one = state_with(measured("db-0", volumes=PodVolumes(local=("scratch",))))
    two = state_with(measured("db-0", volumes=PodVolumes(local=("scratch", "logs"))))
    assert reason("local-storage", scene_of(one)) == "volume scratch is local to the node and would be lost (policy victims.localStorage)"
    assert reason("local-storage", scene_of(two)).startswith("volumes scratch, logs are local to the node")
    assert ask("local-storage", scene_of(one, victims=Victims(local_storage="allow"))) is None


def test_v12_a_pod_without_local_volumes_passes() -> None:
    """A memory emptyDir is not in the list of local volumes, so a GPU pod with /dev/shm passes."""
    assert ask("local-storage", scene_of(state_with(measured("gpu-0", volumes=PodVolumes())))) is None


def test_persistent_volumes_may_follow_unless_the_policy_refuses() -> None:
    """Claims pass by default; where the policy refuses them the sentence names them."""
    state = state_with(measured("db-0", volumes=PodVolumes(claims=("data", "wal"))))
    assert ask("persistent-volume", scene_of(state)) is None
    assert reason("persistent-volume", scene_of(state, victims=Victims(persistent_volumes="refuse"))) == (
        "it uses persistent volume claims data, wal (policy victims.persistentVolumes)"
    )


def test_v11_a_claim_that_the_pod_names_itself_is_refused() -> None:
    """Others may hold the device of a shared ResourceClaim."""
    shared = PodVolumes(resource_claims=(ResourceClaim("own", shared=False), ResourceClaim("gpu-pool", shared=True)))
    assert reason("resource-claim", scene_of(state_with(measured("gpu-0", volumes=shared)))).startswith(
        "resource claim gpu-pool is named by the pod instead of a template"
    )


def test_v11_a_claim_from_a_template_passes() -> None:
    """A new pod gets a new claim, so the device need not follow."""
    own = PodVolumes(resource_claims=(ResourceClaim("own", shared=False),))
    assert ask("resource-claim", scene_of(state_with(measured("gpu-0", volumes=own)))) is None
