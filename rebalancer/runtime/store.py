"""Where the memory lives between cycles: in the process, or in a ConfigMap so that it outlives the process."""

from __future__ import annotations

from typing import Protocol

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.kube.client import KubeClient
from rebalancer.kube.configmaps import StoredMap, read_config_map, write_config_map
from rebalancer.kube.failures import leaves_open
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.records import dump_memory, load_memory

CONFIG_MAP = "rebalancer-state"
"""The name of the ConfigMap where the settings say no other."""
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

    def __init__(self, client: KubeClient, *, namespace: str, name: str = CONFIG_MAP) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._stored: StoredMap | None = None
        self._unanswered = ""
        """What was written last without an answer: it may be there, with a resourceVersion that nobody told us."""

    @property
    def name(self) -> str:
        return f"ConfigMap {self._namespace}/{self._name}"

    def load(self, *, deadline: Deadline) -> Memory:
        """An absent ConfigMap is an empty memory. Raises ConfigurationError when it is damaged, KubernetesError when it cannot be read."""
        stored = read_config_map(self._client, namespace=self._namespace, name=self._name, deadline=deadline)
        self._stored, self._unanswered = stored, ""
        if stored is None:
            return Memory()
        text = stored.data.get(KEY)
        return Memory() if text is None else load_memory(text.encode(), origin=self.name)

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        """Writes only what is new.

        Raises KubernetesConflict when somebody else wrote in between, KubernetesForbidden and KubernetesNotFound with what to do,
        KubernetesUnreachable or another KubernetesError of status 5xx when it is open whether the write took place.
        """
        text = dump_memory(memory).decode()
        certain = not self._unanswered
        self._find_unanswered(deadline)
        if certain and self._stored is not None and self._stored.data.get(KEY) == text:
            return
        try:
            self._stored = write_config_map(
                self._client,
                namespace=self._namespace,
                name=self._name,
                data={KEY: text},
                previous=self._stored,
                deadline=deadline,
            )
        except KubernetesConflict as error:
            raise KubernetesConflict(
                f"{self.name} was changed by somebody else",
                remedy="run only one controller in evict mode with it; another has a leader_election.lease_name of its own",
                status=error.status,
            ) from error
        except KubernetesNotFound as error:
            if self._stored is not None:
                raise KubernetesConflict(
                    f"{self.name} was deleted by somebody else",
                    remedy="nothing to do; the next cycle begins a new one",
                    status=error.status,
                ) from error
            raise KubernetesNotFound(
                f"namespace {self._namespace} does not exist, so {self._name} cannot be kept there",
                remedy="create it, or name another one with REBALANCER_NAMESPACE",
                status=error.status,
            ) from error
        except KubernetesForbidden as error:
            raise KubernetesForbidden(
                f"{self.name} may not be written, and without it cooldowns would not survive a restart",
                remedy="grant get, create and update on configmaps in that namespace",
                status=error.status,
            ) from error
        except KubernetesError as error:
            if leaves_open(error):
                self._unanswered = text
            raise

    def _find_unanswered(self, deadline: Deadline) -> None:
        """See whether the write whose answer was lost took place, so that it is not taken for somebody else's."""
        if not self._unanswered:
            return
        found = read_config_map(self._client, namespace=self._namespace, name=self._name, deadline=deadline)
        if found is not None and found.data.get(KEY) == self._unanswered:
            self._stored = found
        self._unanswered = ""


class ReadOnlyStore:
    """Reads what a controller remembers, so that a dry run sees its cooldowns; writes nothing.

    What is saved here is given back until the controller's own memory changes: an open move that nobody settles there any more would else
    be settled, and counted, in every cycle.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._seen = b""
        self._memory: Memory | None = None

    def load(self, *, deadline: Deadline) -> Memory:
        """A memory that may not be read is taken as empty: a dry run needs no right beyond reading the cluster."""
        try:
            read = self._store.load(deadline=deadline)
        except KubernetesForbidden:
            read = Memory()
        seen = dump_memory(read)
        if self._memory is None or seen != self._seen:
            self._seen, self._memory = seen, read
        return self._memory

    def save(self, memory: Memory, *, deadline: Deadline) -> None:
        self._memory = memory
