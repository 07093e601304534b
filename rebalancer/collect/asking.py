"""What the readings of one cycle share: whom to ask, at which moment, until when, and the side tables that are fetched at most once.

A side table that cannot be had resolves nothing, and says so in a note; it never fails a signal by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.queries import NamedQuery, quoted, re_literal
from rebalancer.collect.resolve import Lookups
from rebalancer.collect.samples import NodeDirectory, PodKey
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsError

SHOWN_JOBS = 12


@dataclass(frozen=True, slots=True)
class Heard:
    """What was learnt on the way; filled by several threads, read when all are done."""

    notes: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, text: str) -> None:
        if text:
            with self.lock:
                self.notes[text] = None

    def warn(self, texts: Iterable[str]) -> None:
        with self.lock:
            self.warnings.update(dict.fromkeys(texts))


class Asking:
    """One cycle's questions to one Prometheus. Nothing of it survives the cycle."""

    def __init__(self, prometheus: Prometheus, *, directory: NodeDirectory, at: float, deadline: Deadline) -> None:
        self.directory = directory
        self.at = at
        self.deadline = deadline
        self.heard = Heard()
        self.lookups = Lookups(exporter_pods=self._exporter_pods, unames=self._unames)
        self._prometheus = prometheus
        self._tables_lock = threading.Lock()
        self._pods: dict[str, dict[PodKey, str]] = {}
        self._names: Mapping[str, str] | None = None
        self._jobs: str | None = None

    def instant(self, query: NamedQuery) -> Answer:
        answer = self._prometheus.instant(query.text, at=self.at, deadline=self.deadline, name=query.name)
        self.heard.warn(f"{query.name}: {text}" for text in answer.warnings)
        return answer

    def pods(self, query: NamedQuery, *, node_label: str | None) -> Answer:
        """Series of pods; ``node_label``: the only label that may name the node, or None."""
        answer = self._prometheus.pods(query.text, at=self.at, deadline=self.deadline, name=query.name, node_label=node_label)
        self.heard.warn(f"{query.name}: {text}" for text in answer.warnings)
        return answer

    @property
    def recorded(self) -> bool:
        """What recording rules have made is asked for first."""
        return self._prometheus.access.recording_rules

    def between(self, query: NamedQuery, *, start: float, end: float, step_s: float) -> Answer:
        """Points from ``start`` to ``end`` (unix seconds), ``step_s`` apart."""
        answer = self._prometheus.range(query.text, start=start, end=end, step_s=step_s, deadline=self.deadline, name=query.name)
        self.heard.warn(f"{query.name}: {text}" for text in answer.warnings)
        return answer

    def windows(self, query: NamedQuery, *, windows: int, step_s: float) -> Answer:
        """The last ``windows`` points, ``step_s`` apart, the newest at the moment of the cycle."""
        return self.between(query, start=self.at - (windows - 1) * step_s, end=self.at, step_s=step_s)

    def scraped_jobs(self) -> str:
        """What Prometheus does scrape, for the sentence that says what it does not have."""
        with self._tables_lock:
            if self._jobs is None:
                answer = self._table("jobs", "count by (job) (up)")
                jobs = sorted(labels.get("job", "") for labels in answer.labels) if answer is not None else []
                more = f" and {len(jobs) - SHOWN_JOBS} more" if len(jobs) > SHOWN_JOBS else ""
                self._jobs = (
                    f"the jobs that Prometheus scrapes are {', '.join(jobs[:SHOWN_JOBS])}{more}"
                    if jobs
                    else "Prometheus scrapes no job at all"
                )
            return self._jobs

    def _exporter_pods(self, namespaces: Iterable[str]) -> Mapping[PodKey, str]:
        found: dict[PodKey, str] = {}
        with self._tables_lock:
            if missing := sorted(set(namespaces) - self._pods.keys()):
                self._pods.update((namespace, {}) for namespace in missing)
                matcher = quoted("|".join(map(re_literal, missing)))
                answer = self._table(
                    "nodes of exporter pods", f'max by (namespace, pod, node) (kube_pod_info{{node!="", namespace=~{matcher}}})'
                )
                for labels in answer.labels if answer is not None else ():
                    namespace, pod = labels.get("namespace", ""), labels.get("pod", "")
                    self._pods.setdefault(namespace, {})[namespace, pod] = labels.get("node", "")
            for namespace in namespaces:
                found.update(self._pods.get(namespace, {}))
        return found

    def _unames(self) -> Mapping[str, str]:
        with self._tables_lock:
            if self._names is None:
                names: dict[str, str] = {}
                answer = self._table("host names of instances", "max by (instance, nodename) (node_uname_info)")
                for labels in answer.labels if answer is not None else ():
                    instance, name = labels.get("instance", ""), labels.get("nodename", "")
                    names[instance] = name if names.get(instance, name) == name else ""
                self._names = names
            return self._names

    def _table(self, name: str, text: str) -> Answer | None:
        try:
            return self._prometheus.instant(text, at=self.at, deadline=self.deadline, name=name)
        except MetricsError as error:
            self.heard.note(error.message)
            return None
