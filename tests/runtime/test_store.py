"""Where the memory lives: one ConfigMap that nobody overwrites unseen, and a reader that never writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import ConfigurationError, KubernetesConflict, KubernetesForbidden, KubernetesNotFound, KubernetesUnreachable
from rebalancer.kube.client import KubeClient
from rebalancer.runtime.memory import (
    MOST_EVICTIONS,
    MOST_LANDINGS,
    MOST_OPEN,
    MOST_QUARANTINED,
    Landing,
    LandingResult,
    Memory,
    OpenMove,
    remember,
)
from rebalancer.runtime.records import MOST_BYTES, dump_memory, load_memory
from rebalancer.runtime.store import ConfigMapStore, ProcessStore, ReadOnlyStore
from rebalancer.state.history import PastEviction, Quarantine
from rebalancer.state.tables import WorkloadRef
from tests.act.plans import AT
from tests.support.scripted_api import Reply, ScriptedApi, status

COLLECTION = "/api/v1/namespaces/ops/configmaps"
PATH = f"{COLLECTION}/rebalancer-state"


def opened(number: int = 1, *, letters: int = 20) -> OpenMove:
    """A move whose names have about as many letters."""

    def name(kind: str) -> str:
        return f"{kind}-{number}".ljust(letters, "x")

    workload = WorkloadRef("Deployment", name("ns"), name("web"))
    eviction = PastEviction(
        at=AT + number + 0.123456,
        pod_uid=f"00000000-0000-4000-8000-{number:012}",
        namespace=name("ns"),
        pod=name("pod"),
        workload=workload,
        controller_uid=f"10000000-0000-4000-8000-{number:012}",
        tenant=name("tenant"),
        source=name("node"),
        destination=name("other"),
        usage={"cpu": 1.23456789, "memory": 123456789.25},
    )
    loads = {"cpu": 0.912345, "memory": 0.512345}
    return OpenMove(eviction, tuple(name(f"alt{i}") for i in range(5)), 0.051234, loads, loads, 0.987654)


MEMORY = remember(Memory(), opened())


def config_map(memory: Memory | None = MEMORY, *, version: str = "5", data: dict[str, str] | None = None) -> Reply:
    kept = data if data is not None else {} if memory is None else {"memory.json": dump_memory(memory).decode()}
    return Reply(body={"metadata": {"name": "rebalancer-state", "namespace": "ops", "uid": "u", "resourceVersion": version}, "data": kept})


@pytest.fixture
def store(client: KubeClient) -> ConfigMapStore:
    return ConfigMapStore(client, namespace="ops")


def written(api: ScriptedApi, method: str) -> list[Any]:
    return [asked.json for asked in api.requests(method)]


def test_an_absent_config_map_is_an_empty_memory_and_is_created_at_the_first_save(
    api: ScriptedApi, store: ConfigMapStore, deadline: Deadline
) -> None:
    """The first start ever."""
    api.on("POST", COLLECTION, config_map())
    assert store.load(deadline=deadline) == Memory()
    store.save(MEMORY, deadline=deadline)
    (body,) = written(api, "POST")
    assert load_memory(body["data"]["memory.json"].encode(), origin="it") == MEMORY


def test_a_config_map_without_our_key_is_an_empty_memory(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """An administrator may have created it beforehand, to grant less."""
    api.on("GET", PATH, config_map(None))
    assert store.load(deadline=deadline) == Memory()


def test_what_was_saved_is_what_is_loaded(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """Over the wire and back."""
    api.on("GET", PATH, config_map())
    assert store.load(deadline=deadline) == MEMORY


def test_a_damaged_memory_stops_the_controller_with_what_to_do(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """Empty would mean: every cooldown forgotten."""
    api.on("GET", PATH, config_map(data={"memory.json": '{"version": 1, "evictions": [{"at": "yesterday"}]}'}))
    with pytest.raises(ConfigurationError, match="the remembered evictions in ConfigMap ops/rebalancer-state cannot be read") as caught:
        store.load(deadline=deadline)
    assert "delete ConfigMap ops/rebalancer-state if its cooldowns may be forgotten" in str(caught.value)


def test_a_save_carries_the_version_that_was_read_and_then_that_of_the_answer(
    api: ScriptedApi, store: ConfigMapStore, deadline: Deadline
) -> None:
    """So two controllers can never overwrite each other."""
    api.on("GET", PATH, config_map(Memory()))
    api.on("PUT", PATH, config_map(version="6"), config_map(version="7"))
    store.load(deadline=deadline)
    store.save(MEMORY, deadline=deadline)
    store.save(remember(MEMORY, opened(2)), deadline=deadline)
    assert [body["metadata"]["resourceVersion"] for body in written(api, "PUT")] == ["5", "6"]


def test_nothing_new_is_not_written(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """A quiet cluster costs the API server no write a cycle."""
    api.on("GET", PATH, config_map())
    store.save(store.load(deadline=deadline), deadline=deadline)
    assert [asked.method for asked in api.asked] == ["GET"]


def test_a_conflict_names_the_config_map_and_the_cause(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """In words that an operator can act on."""
    api.on("GET", PATH, config_map(Memory()))
    api.on("PUT", PATH, status(409, "the object has been modified", reason="Conflict"))
    store.load(deadline=deadline)
    with pytest.raises(KubernetesConflict) as caught:
        store.save(MEMORY, deadline=deadline)
    assert str(caught.value) == (
        "ConfigMap ops/rebalancer-state was changed by somebody else: "
        "run only one controller in evict mode with it; another has a leader_election.lease_name of its own"
    )


def test_a_config_map_that_was_deleted_meanwhile_is_not_a_missing_namespace(
    api: ScriptedApi, store: ConfigMapStore, deadline: Deadline
) -> None:
    """Both are a 404; only one of them needs the operator."""
    api.on("GET", PATH, config_map(Memory()))
    api.on("PUT", PATH, status(404, "not found", reason="NotFound"))
    store.load(deadline=deadline)
    with pytest.raises(KubernetesConflict, match="was deleted by somebody else"):
        store.save(MEMORY, deadline=deadline)


def test_a_missing_namespace_says_which_and_how_to_name_another(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """The ConfigMap cannot be created there."""
    store.load(deadline=deadline)
    with pytest.raises(KubernetesNotFound, match=r"namespace ops does not exist.*REBALANCER_NAMESPACE"):
        store.save(MEMORY, deadline=deadline)


def test_a_missing_right_says_what_it_is_good_for(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """And what to grant."""
    api.on("POST", COLLECTION, status(403, "configmaps is forbidden", reason="Forbidden"))
    store.load(deadline=deadline)
    with pytest.raises(KubernetesForbidden, match=r"cooldowns would not survive a restart.*grant get, create and update on configmaps"):
        store.save(MEMORY, deadline=deadline)


def test_a_write_whose_answer_was_lost_is_found_again_and_not_blamed_on_somebody_else(
    api: ScriptedApi, store: ConfigMapStore, deadline: Deadline
) -> None:
    """The server took it, the connection broke: the next save goes on from there."""
    api.on("GET", PATH, config_map(Memory()), config_map(MEMORY, version="6"))
    api.on("PUT", PATH, Reply(drop=True), config_map(version="7"))
    store.load(deadline=deadline)
    with pytest.raises(KubernetesUnreachable):
        store.save(MEMORY, deadline=deadline)
    store.save(Memory(), deadline=deadline)
    assert [body["metadata"]["resourceVersion"] for body in written(api, "PUT")] == ["5", "6"]


def test_somebody_elses_write_after_a_lost_answer_is_still_a_conflict(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """Only what we wrote ourselves is taken for ours."""
    api.on("GET", PATH, config_map(Memory()), config_map(remember(Memory(), opened(9)), version="6"))
    api.on("PUT", PATH, Reply(drop=True), status(409, "the object has been modified", reason="Conflict"))
    store.load(deadline=deadline)
    with pytest.raises(KubernetesUnreachable):
        store.save(MEMORY, deadline=deadline)
    with pytest.raises(KubernetesConflict):
        store.save(Memory(), deadline=deadline)
    assert [body["metadata"]["resourceVersion"] for body in written(api, "PUT")] == ["5", "5"]


def full(letters: int) -> Memory:
    """As much as is ever kept, with names of so many letters."""
    moves = tuple(opened(number, letters=letters) for number in range(MOST_EVICTIONS))
    landing = Landing(moves[0], LandingResult.SOURCE, AT, "n".ljust(letters, "x"), 61.25, 0.987654321)
    rest = Quarantine(until=AT, returns=3, node="n".ljust(letters, "x"))
    return Memory(
        evictions=tuple(m.eviction for m in moves),
        open_moves=moves[-MOST_OPEN:],
        quarantine={WorkloadRef("Deployment", "ns", f"web-{i}".ljust(letters, "x")): rest for i in range(MOST_QUARANTINED)},
        landings=(landing,) * MOST_LANDINGS,
    )


@pytest.mark.parametrize("letters", [10, 40, 63, 100])
def test_the_fullest_memory_fits_a_config_map(letters: int) -> None:
    """1 MiB is the limit of a ConfigMap; what is given up first is what is needed least."""
    memory = full(letters)
    data = dump_memory(memory)
    assert len(data) <= MOST_BYTES < 1024 * 1024
    again = load_memory(data, origin="it")
    assert again.open_moves == memory.open_moves
    assert again.quarantine == memory.quarantine
    assert again.evictions == memory.evictions[len(memory.evictions) - len(again.evictions) :]
    assert not again.landings or again.evictions == memory.evictions


def test_usual_names_give_nothing_up() -> None:
    """Node and pod names of about thirty letters: every eviction and landing is kept."""
    memory = full(30)
    memory = replace(memory, quarantine={}, open_moves=memory.open_moves[-100:])
    again = load_memory(dump_memory(memory), origin="it")
    assert (len(again.evictions), len(again.landings)) == (MOST_EVICTIONS, MOST_LANDINGS)


def test_the_process_store_gives_back_what_was_saved(deadline: Deadline) -> None:
    """For the demo and tests."""
    store = ProcessStore()
    assert store.load(deadline=deadline) == Memory()
    store.save(MEMORY, deadline=deadline)
    assert store.load(deadline=deadline) == MEMORY


def test_a_reader_sees_the_controllers_memory_and_writes_nothing(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """A dry run respects the cooldowns of the controller that acts."""
    api.on("GET", PATH, config_map())
    reader = ReadOnlyStore(store)
    assert reader.load(deadline=deadline) == MEMORY
    reader.save(Memory(), deadline=deadline)
    assert {asked.method for asked in api.asked} == {"GET"}


def test_a_reader_settles_a_move_once_and_sees_what_the_controller_does_next(deadline: Deadline) -> None:
    """What it settled stays settled while the controller's memory is the same; a new eviction there is seen at once."""
    kept = ProcessStore(MEMORY)
    reader = ReadOnlyStore(kept)
    settled = replace(MEMORY, open_moves=())
    reader.load(deadline=deadline)
    reader.save(settled, deadline=deadline)
    assert reader.load(deadline=deadline) == settled
    kept.save(remember(MEMORY, opened(2)), deadline=deadline)
    assert reader.load(deadline=deadline) == remember(MEMORY, opened(2))


def test_a_reader_without_the_right_to_read_takes_the_memory_for_empty(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """A dry run needs no right beyond reading the cluster."""
    api.on("GET", PATH, status(403, "configmaps is forbidden", reason="Forbidden"))
    assert ReadOnlyStore(store).load(deadline=deadline) == Memory()


def test_a_reader_does_not_take_a_damaged_memory_for_empty(api: ScriptedApi, store: ConfigMapStore, deadline: Deadline) -> None:
    """It would show moves that the controller would never make."""
    api.on("GET", PATH, config_map(data={"memory.json": json.dumps({"version": 99})}))
    with pytest.raises(ConfigurationError, match="version 99"):
        ReadOnlyStore(store).load(deadline=deadline)
