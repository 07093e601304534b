"""The Lease on the wire: what is written, what survives, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from rebalancer.errors import KubernetesConflict, KubernetesNotFound, KubernetesUnreachable
from rebalancer.kube.lease import LeaseClaim, LeaseClient
from tests.leadership.kit import NAME, NAMESPACE, PATH, Cluster

AT = 1_800_000_000.25


def claim(lease: LeaseClient, *, holder: str = "a", duration_s: float = 15.0, transitions: int = 0, acquires: bool = True) -> LeaseClaim:
    return LeaseClaim(over=lease.read(), holder=holder, duration_s=duration_s, transitions=transitions, acquires=acquires)


def test_a_lease_that_is_absent_reads_as_none(cluster: Cluster) -> None:
    """Nobody has campaigned yet."""
    assert cluster.lease().read() is None


def test_a_new_lease_says_who_holds_it_since_when(cluster: Cluster) -> None:
    """The times carry microseconds, as the API server wants them."""
    lease = cluster.lease()
    lease.write(claim(lease), at=AT)
    assert cluster.stored["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.250000Z",
        "renewTime": "2027-01-15T08:00:00.250000Z",
        "leaseTransitions": 0,
    }


def test_what_was_written_is_what_is_read(cluster: Cluster) -> None:
    """The answer of a write and a later read are the same record."""
    lease = cluster.lease()
    assert lease.write(claim(lease), at=AT) == lease.read()


def test_a_renewal_keeps_the_time_of_acquisition(cluster: Cluster) -> None:
    """Only `renewTime` moves."""
    lease = cluster.lease()
    lease.write(claim(lease), at=AT)
    renewed = lease.write(claim(lease, acquires=False), at=AT + 2)
    assert (renewed.acquired, renewed.renewed) == ("2027-01-15T08:00:00.250000Z", "2027-01-15T08:00:02.250000Z")


def test_a_duration_is_written_in_whole_seconds_rounded_up(cluster: Cluster) -> None:
    """Others may wait longer than the holder counts on, never shorter."""
    lease = cluster.lease()
    assert lease.write(claim(lease, duration_s=1.5), at=AT).duration_s == 2.0


def test_a_write_over_an_older_record_is_refused(cluster: Cluster) -> None:
    """Of two who read the same record, the second to write learns of it."""
    lease = cluster.lease()
    lease.write(claim(lease), at=AT)
    both = claim(lease, holder="b"), claim(lease, holder="c")
    lease.write(both[0], at=AT)
    with pytest.raises(KubernetesConflict):
        lease.write(both[1], at=AT)
    assert cluster.stored["spec"]["holderIdentity"] == "b"


def test_a_second_creation_is_refused(cluster: Cluster) -> None:
    """Of two who found nothing, one creates."""
    lease = cluster.lease()
    both = claim(lease, holder="a"), claim(lease, holder="b")
    lease.write(both[0], at=AT)
    with pytest.raises(KubernetesConflict):
        lease.write(both[1], at=AT)


def test_every_replacement_carries_the_version_that_was_read(cluster: Cluster) -> None:
    """A PUT without it would overwrite whatever is there."""
    lease = cluster.lease()
    first = lease.write(claim(lease), at=AT)
    lease.write(claim(lease), at=AT)
    put = cluster.api.requests.of("PUT", PATH)[0]
    assert msgspec.json.decode(put.body)["metadata"]["resourceVersion"] == first.version


def test_what_others_put_on_the_lease_survives(cluster: Cluster) -> None:
    """Labels of an installer, and fields that this program does not know."""
    lease = cluster.lease()
    lease.write(claim(lease), at=AT)
    cluster.edit(metadata={"labels": {"app.kubernetes.io/managed-by": "Helm"}}, spec={"strategy": "OldestEmulationVersion"})
    lease.write(claim(lease), at=AT + 1)
    assert cluster.stored["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert cluster.stored["spec"]["strategy"] == "OldestEmulationVersion"


def test_a_lease_without_a_spec_is_held_by_nobody(cluster: Cluster) -> None:
    """As somebody may have created it by hand."""
    cluster.world.create("leases", {"metadata": {"name": NAME, "namespace": NAMESPACE}})
    record = cluster.lease().read()
    assert record is not None
    assert (record.holder, record.duration_s, record.transitions) == ("", 0.0, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"metadata": {}}',
        b'{"metadata": {"name": "rebalancer"}, "spec": {"holderIdentity": "a"}}',
        b'{"metadata": {"resourceVersion": "5"}, "spec": {"leaseDurationSeconds": "many"}}',
        b'{"metadata": {"resourceVersion": "5"}, "spec": {"holder',
    ],
)
def test_an_answer_that_is_no_whole_lease_is_no_record(cluster: Cluster, body: bytes) -> None:
    """Least of all one without a version, with which a write would be unguarded."""
    cluster.faults.status(200, path=PATH, body=body)
    with pytest.raises(KubernetesUnreachable):
        cluster.lease().read()


def test_a_namespace_that_does_not_exist_is_told_with_what_to_do(cluster: Cluster) -> None:
    """The API server only says that something was not found."""
    cluster.faults.status(404, method="POST", path="/leases")
    lease = cluster.lease()
    with pytest.raises(KubernetesNotFound, match=r"namespace rebalancer does not exist.*REBALANCER_NAMESPACE"):
        lease.write(claim(lease), at=AT)
