"""Where the memory lives between cycles: in the process, or in a ConfigMap so that it outlives the process."""

from __future__ import annotations

from typing import Protocol

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.configmaps import StoredMap, read_config_map, write_config_map
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.records import dump_memory, load_memory

CONFIG_MAP = "rebalancer-state"
KEY = "memory.json"


class MemoryStore(Protocol):
    def load(self, *, deadline: Deadline) -> Memory: ...

    def save(self, memory: Memory, *, deadline: Deadline) -> None: ...


class ProcessStore:
    """Forgets with the process: for dry run, demo and tests."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory or Memory()

    def load(self, *, deadline: Deadline) -> Memory:
        return self._memory

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        self._memory = memory


class ConfigMapStore:
    """Written with the resourceVersion that was read, so that two controllers can never overwrite each other's memory."""

    def __init__(self, client: KubeClient, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._stored: StoredMap | None = None

    @property
    def name(self) -> str:
        return f"ConfigMap {self._namespace}/{CONFIG_MAP}"

    def load(self, *, deadline: Deadline) -> Memory:
        """An absent ConfigMap is an empty memory. Raises ConfigurationError when it is damaged, KubernetesError when it cannot be read."""
        stored = read_config_map(self._client, namespace=self._namespace, name=CONFIG_MAP, deadline=deadline)
        self._stored = stored
        if stored is None:
            return Memory()
        text = stored.data.get(KEY)
        return Memory() if text is None else load_memory(text.encode(), origin=self.name)

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        """Raises KubernetesConflict when somebody else wrote in between, KubernetesForbidden and KubernetesNotFound with what to do."""
        try:
            self._stored = write_config_map(
                self._client,
                namespace=self._namespace,
                name=CONFIG_MAP,
                data={KEY: dump_memory(memory).decode()},
                previous=self._stored,
                deadline=deadline,
            )
        except KubernetesConflict as error:
            raise KubernetesConflict(
                f"{self.name} was changed by somebody else", remedy="run only one controller in evict mode for a cluster"
            ) from error
        except KubernetesNotFound as error:
            raise KubernetesNotFound(
                f"namespace {self._namespace} does not exist, so {CONFIG_MAP} cannot be kept there",
                remedy="create it, or name another one with REBALANCER_NAMESPACE",
            ) from error
        except KubernetesForbidden as error:
            raise KubernetesForbidden(
                f"{self.name} may not be written, and without it cooldowns would not survive a restart",
                remedy="grant get, create and update on configmaps in that namespace",
                status=error.status,
            ) from error


class ReadOnlyStore:
    """Reads what a controller remembers, so that a dry run sees its cooldowns; writes nothing."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._memory: Memory | None = None

    def load(self, *, deadline: Deadline) -> Memory:
        """A memory that may not be read is taken as empty: a dry run needs no right beyond reading the cluster."""
        if self._memory is None:
            try:
                return self._store.load(deadline=deadline)
            except KubernetesForbidden:
                return Memory()
        return self._memory

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        self._memory = memory
