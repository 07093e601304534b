"""Every setting with its type, its default and what contradicts it. Names are the keys of the file and the words of the variables.

Secrets are named by file. The one exception, request headers, is kept in types that do not print themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from rebalancer.errors import SettingsError
from rebalancer.policy.document import KeyPath
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.policy.quantities import Duration, MisplacedValue, Percent, TimeZone
from rebalancer.settings.listen import Listen, ListenAddress

ENV_PREFIX = "REBALANCER_"
_OWN_PARAMETERS = frozenset(("query", "time", "start", "end", "step", "timeout"))
"""Of a query to Prometheus; what each is, is no setting."""
SHORT_EVICTION_S = 3.0
"""An API server under load may need that long to answer an eviction."""
SettingPath = Annotated[Path, AfterValidator(lambda path: path.expanduser())]
LeaseName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253)]
Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


class SourceKind(Enum):
    """From the strongest to the weakest."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


def _prometheus_url(url: str) -> str:
    """No message may repeat the address: it may hold a password in a place where nobody looks for one."""
    try:
        parts = urlsplit(url.strip())
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise ValueError("is not an http or https address; write it like http://prometheus.monitoring:9090")
    if "@" in parts.netloc:
        raise ValueError("carries a user name or a password; put user:password into a file and name it with prometheus.basic_auth_file")
    if parts.query or parts.fragment:
        raise ValueError("carries a query string; write only what stands before /api/v1/query")
    return url.strip().rstrip("/")


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, use_attribute_docstrings=True)


class PrometheusSettings(_Part):
    """Where usage is read, and with which credentials."""

    url: Annotated[str, AfterValidator(_prometheus_url)] | None = None
    """Address of Prometheus, or of what answers like it: Thanos, Mimir, VictoriaMetrics."""
    timeout: Duration = Field(default=30.0, ge=1, le=600)
    """For one query."""
    ca_file: SettingPath | None = None
    """Certificate authorities to trust instead of the system's."""
    token_file: SettingPath | None = None
    """Bearer token; read again for each request."""
    basic_auth_file: SettingPath | None = None
    """One line, user:password; read again for each request."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Sent with each request, such as X-Scope-OrgID. As a variable: a JSON object."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """Sent with each query, such as partial_response: "false" for Thanos. As a variable: a JSON object."""
    recording_rules: bool = False
    """Look up what the rules in deploy/rules have recorded, and ask the queries themselves only where that does not suffice."""
    max_in_flight: int = Field(default=2, ge=1, le=32)
    """Queries under way at once."""
    insecure_skip_verify: bool = False
    """Accept any certificate. For trials only."""

    @model_validator(mode="after")
    def _used_and_not_contradictory(self) -> PrometheusSettings:
        for name in ("ca_file", "token_file", "basic_auth_file", "headers", "parameters", "recording_rules", "insecure_skip_verify"):
            if self.url is None and getattr(self, name):
                raise MisplacedValue("is set, but there is no prometheus.url that it is for; set the address too", at=(name,))
        if self.token_file is not None and self.basic_auth_file is not None:
            raise MisplacedValue("is set beside prometheus.token_file; keep one of the two", at=("basic_auth_file",))
        taken = sorted(self.parameters.keys() & _OWN_PARAMETERS)
        if taken:
            raise MisplacedValue(f"holds {taken[0]}, which each query says for itself; take it out", at=("parameters", taken[0]))
        authorised = any(name.lower() == "authorization" for name in self.headers)
        if authorised and (self.token_file is not None or self.basic_auth_file is not None):
            raise MisplacedValue("holds Authorization beside a file with credentials; keep one of the two", at=("headers",))
        if self.insecure_skip_verify and self.ca_file is not None:
            raise MisplacedValue("is on, so prometheus.ca_file would not be used; keep one of the two", at=("insecure_skip_verify",))
        return self

    def header_values(self) -> Mapping[str, str]:
        """The headers as they are sent. Not for messages."""
        return {name: value.get_secret_value() for name, value in self.headers.items()}


class KubernetesSettings(_Part):
    """How the API server is used: politely."""

    page_size: int = Field(default=500, ge=10, le=5000)
    """Objects in one page of a list."""
    qps: float = Field(default=20.0, gt=0, le=1000, allow_inf_nan=False)
    """Requests a second on average, leader election not counted."""
    burst: int = Field(default=40, ge=1, le=2000)
    """Requests that may follow each other at once."""
    annotation_qps: float = Field(default=50.0, gt=0, le=1000, allow_inf_nan=False)
    """Patches of node load annotations a second on average; they are not counted in ``qps``."""
    timeout: Duration = Field(default=30.0, ge=1, le=600)
    """For one request."""
    watch: bool = True
    """`rebalancer run` lists what is large once and then reads changes; off: it lists everything in each cycle, as other commands do."""
    relist: Duration = Field(default=600.0, ge=60, le=86400)
    """How often what is watched is listed all the same, to find out a watch that misses something."""


class LeaderElectionSettings(_Part):
    """Of several replicas, one acts at a time: the one that holds the Lease."""

    enabled: bool = False
    """On in a cluster, off elsewhere."""
    lease_name: LeaseName = "rebalancer"
    """The Lease, in the namespace of these settings; every replica has to name the same one, every other controller another."""
    lease_duration: Duration = Field(default=15.0, ge=1, le=600)
    """How long the others wait for a leader that is not heard of."""
    renew_deadline: Duration = Field(default=10.0, ge=0.5, le=600)
    """How long a leader goes on without a renewal. The rest of the lease is the time that an eviction may take."""
    retry_period: Duration = Field(default=2.0, ge=0.1, le=60)
    """Between two tries."""

    @model_validator(mode="after")
    def _in_order(self) -> LeaderElectionSettings:
        for longer, shorter in (("lease_duration", "renew_deadline"), ("renew_deadline", "retry_period")):
            if getattr(self, longer) <= getattr(self, shorter):
                raise MisplacedValue(
                    f"is {getattr(self, longer):g} s, not longer than leader_election.{shorter} of {getattr(self, shorter):g} s; "
                    "keep lease_duration > renew_deadline > retry_period, such as 15s, 10s and 2s",
                    at=(longer,),
                )
        return self


class TlsSettings(_Part):
    """Serve health and metrics over https, with a certificate of your own. Plain http without."""

    cert_file: SettingPath | None = None
    """The certificate, with those between it and the root; PEM."""
    key_file: SettingPath | None = None
    """Its private key; PEM."""

    @model_validator(mode="after")
    def _both(self) -> TlsSettings:
        if (self.cert_file is None) != (self.key_file is None):
            given, missing = ("cert_file", "key_file") if self.key_file is None else ("key_file", "cert_file")
            raise MisplacedValue(f"is set without tls.{missing}; set both", at=(given,))
        return self


class GpuShareSettings(_Part):
    """The verbs of the gpushare extender, for clusters that share GPUs by memory. They bind pods, so they need more rights."""

    enabled: bool = False
    """Serve them beside the others, below ``/gpushare-scheduler``."""
    busy_ceiling: Percent = 90.0
    """A device that is measured to be busy for more of the time than that is avoided while another one fits. 100: none is."""
    memory_ceiling: Percent = 90.0
    """The same for the share of its memory that is really in use."""
    qps: float = Field(default=50.0, gt=0, le=1000, allow_inf_nan=False)
    """Requests a second for bindings, on average; each takes two, or four. They have a connection of their own."""
    bind_timeout: Duration = Field(default=4.0, ge=1, le=60)
    """For one binding; at least one second less than the ``httpTimeout`` that kube-scheduler has for this extender."""


class ExtenderSettings(_Part):
    """`rebalancer extender`: what kube-scheduler asks, and what it is answered by."""

    listen: ListenAddress = Listen(host="127.0.0.1", port=8088)
    """Where kube-scheduler asks, and where health and metrics are; in a cluster 0.0.0.0:8088."""
    cert_file: SettingPath | None = None
    """Certificate to serve https with, with those between it and the root; PEM. Plain http without. Read again when it is renewed."""
    key_file: SettingPath | None = None
    """Its private key; PEM."""
    judge: Literal["own", "dynamic"] = "own"
    """``own``: our score, from ``rebalancer.dev/load``; ``dynamic``: filter and score of crane-scheduler, from its annotations."""
    crane_time_zone: TimeZone | None = None
    """Zone of the times in crane annotations, for ``dynamic``; else the policy's ``steering.craneTimeZone``."""
    hot_value: Literal["annotation", "code", "product-text"] = "annotation"
    """For ``dynamic``, what makes nodes hot: ``node_hot_value`` as it stands there, or pods just bound, counted here at once as
    crane-scheduler's ``code`` does or as its ``product-text`` says."""
    missing: Literal["low", "neutral"] = "low"
    """For ``dynamic``, a series that a node lacks adds no points to its score (``low``, as in crane-scheduler) or is left out."""
    refuse_all: bool = False
    """Let the filter refuse every node, as crane-scheduler does; the pod then waits. Off: if all would be refused, none is."""
    reservation: Duration = Field(default=300.0, ge=0, le=3600)
    """How long a planned move keeps its room on the planned node for its replacement, unless that comes sooner. 0: not at all."""
    refresh: Duration = Field(default=0.1, ge=0.05, le=60)
    """The least time from one view of the nodes to the next."""
    oldest_view: Duration = Field(default=600.0, ge=10, le=86400)
    """When the API server has been gone for that long, every node passes and all score alike."""
    gpushare: GpuShareSettings = GpuShareSettings()
    """Sharing of GPUs by memory."""

    @model_validator(mode="after")
    def _both(self) -> ExtenderSettings:
        if (self.cert_file is None) != (self.key_file is None):
            given, missing = ("cert_file", "key_file") if self.key_file is None else ("key_file", "cert_file")
            raise MisplacedValue(f"is set without extender.{missing}; set both", at=(given,))
        return self

    @model_validator(mode="after")
    def _looks_in_time(self) -> ExtenderSettings:
        if self.refresh > self.oldest_view / 2:
            raise MisplacedValue("is more than half of extender.oldest_view, so views would be too old before the next", at=("refresh",))
        return self


class LogSettings(_Part):
    """How logs are written, to stderr."""

    format: Literal["json", "console"] = "console"
    """json in a cluster, console elsewhere."""
    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    """The least severe lines that are written."""


class Settings(BaseSettings):
    """Made by `load_settings`. Its sources are put together there, so that flags and environment are arguments and nothing is read here."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        validate_default=True,
        use_attribute_docstrings=True,
    )

    kubeconfig: SettingPath | None = None
    """Else in-cluster, else the usual rules: KUBECONFIG, then ~/.kube/config."""
    context: Annotated[str, Field(min_length=1)] | None = None
    """Context of the kubeconfig; else its current one."""
    prometheus: PrometheusSettings = PrometheusSettings()
    """Where usage is read."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """How the API server is used."""
    policy_file: SettingPath | None = None
    """Else the built-in policy, which is safe."""
    tenants_file: SettingPath | None = None
    """Else there are no tenants."""
    crane_policy_file: SettingPath | None = None
    """The policy of crane-scheduler, for crane annotations; else the one that it is shipped with."""
    mode: Mode | None = None
    """Overrules the policy's mode: dry-run, annotate or evict."""
    namespace: Namespace = "default"
    """Where the Lease and the state are kept; in a cluster, the pod's own namespace."""
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    """Which of several replicas acts."""
    state_name: LeaseName | None = None
    """The ConfigMap of cooldowns and open moves; else the name of the Lease with -state."""
    cycle_timeout: Duration = Field(default=120.0, ge=10, le=3600)
    """A cycle that takes longer is given up."""
    listen: ListenAddress = Listen(host="127.0.0.1", port=8080)
    """Health and metrics; in a cluster 0.0.0.0:8080."""
    tls: TlsSettings = TlsSettings()
    """Serve health and metrics over https."""
    extender: ExtenderSettings = ExtenderSettings()
    """What `rebalancer extender` serves and judges by."""
    log: LogSettings = LogSettings()
    """How logs are written, to stderr."""

    _sources: Mapping[KeyPath, tuple[SourceKind, str]] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    def source_of(self, *path: str) -> tuple[SourceKind, str]:
        """Where a setting came from, and the words for it: ``source_of("prometheus", "url")``."""
        return self._sources.get(path, (SourceKind.DEFAULT, "the default"))

    def is_set(self, *path: str) -> bool:
        """True if somebody chose the value of a setting, false for a default."""
        return self.source_of(*path)[0] is not SourceKind.DEFAULT

    @property
    def memory_name(self) -> str:
        """Of the ConfigMap that the memory is kept in."""
        return self.state_name or f"{self.leader_election.lease_name}-state"

    def require_prometheus_url(self) -> str:
        """The address of Prometheus. Raises SettingsError when there is none."""
        if self.prometheus.url is None:
            raise SettingsError("no address of Prometheus is set", remedy="give --prometheus-url or REBALANCER_PROMETHEUS__URL")
        return self.prometheus.url

    def warnings(self) -> tuple[str, ...]:
        """What is allowed and should be known, one sentence each; what `collect` says about files and certificates is not repeated."""
        found = []
        names = {name.lower() for name in self.prometheus.headers}
        if "authorization" in names and (self.prometheus.url or "").startswith("http:"):
            found.append("the Authorization header for Prometheus travels unencrypted, because its address is http; use https")
        if self.cycle_timeout < self.prometheus.timeout:
            found.append("cycle_timeout is shorter than prometheus.timeout, so one slow query may end a cycle; raise cycle_timeout")
        reserve = self.leader_election.lease_duration - self.leader_election.renew_deadline
        if self.leader_election.enabled and reserve < SHORT_EVICTION_S:
            found.append(f"an eviction may take only {reserve:g} s, the rest of the lease; raise leader_election.lease_duration")
        return tuple(found)


def effective_mode(settings: Settings, policy: RebalancePolicy) -> tuple[Mode, str]:
    """The mode in force, and where it came from in words that follow ``from``."""
    if settings.mode is not None:
        return settings.mode, settings.source_of("mode")[1]
    if "mode" in policy.spec.model_fields_set:
        return policy.spec.mode, f"policy {policy.metadata.name}"
    return policy.spec.mode, "the default"
