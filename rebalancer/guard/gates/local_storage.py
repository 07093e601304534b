"""What lies on a disk of the node is lost when the pod leaves. Memory volumes hold nothing that would survive a restart anyway."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "local-storage"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    local = scene.state.pods.volumes[candidate.pod].local
    if not local or scene.spec.victims.local_storage == "allow":
        return None
    what = f"volume {local[0]} is" if len(local) == 1 else f"volumes {', '.join(local)} are"
    return Refusal(NAME, f"{what} local to the node and would be lost (policy victims.localStorage)", retryable=False)


GATE = Gate(
    name=NAME,
    order=180,
    describe=(
        "Pods with a disk emptyDir or a hostPath volume, unless `victims.localStorage` is `allow`; `emptyDir: {medium: "
        "Memory}` is not local storage."
    ),
    check=check,
)
