"""Every failure that an operator can meet, each with a sentence, a remedy and an exit status.

::

    RebalancerError
    ├── UsageError                      2   a flag or an argument that makes no sense
    │   ├── PlanFileError                   a plan file that cannot be used: other cluster, too old, unreadable
    │   └── SnapshotError                   a snapshot file that cannot be read
    ├── ConfigurationError              3   what the operator wrote is wrong
    │   ├── PolicyError                     the policy file
    │   ├── ScenarioError                   a scenario to simulate, or a trace that it names
    │   └── SettingsError                   settings, environment, kubeconfig
    ├── KubernetesError                 4   the API server
    │   ├── KubernetesUnreachable           no connection, time-out, cut short
    │   ├── KubernetesForbidden             401 and 403
    │   ├── KubernetesNotFound              404
    │   ├── KubernetesConflict              409: a precondition failed
    │   ├── KubernetesExpired               410: a resourceVersion or a continue token is too old
    │   └── KubernetesThrottled             429 that no disruption budget caused
    ├── MetricsError                    5   Prometheus and what it says
    │   ├── PrometheusUnreachable           no connection, time-out, a page that is not Prometheus
    │   ├── PrometheusRefused               400, 401, 403, 422, 503: it answered, and said no
    │   └── MetricsMissing                  it answered, with nothing that can be used
    ├── PartlyDone                      6   some moves were carried out, others failed
    └── Interrupted                   130   the operator stopped it

A message is one sentence that names the thing and the place; ``remedy`` says what to do. Nothing secret may enter either.
"""

from __future__ import annotations


class RebalancerError(Exception):
    """Base of the tree. ``exit_status`` is what a command that ends with this error returns to the shell."""

    exit_status = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message


class UsageError(RebalancerError):
    exit_status = 2


class PlanFileError(UsageError):
    pass


class SnapshotError(UsageError):
    pass


class ConfigurationError(RebalancerError):
    """``mistakes``: every mistake of a file as a sentence of its own, the first one included; empty when it could not be read at all."""

    exit_status = 3

    def __init__(self, message: str, *, remedy: str = "", mistakes: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.mistakes = mistakes


class PolicyError(ConfigurationError):
    pass


class ScenarioError(ConfigurationError):
    pass


class SettingsError(ConfigurationError):
    pass


class KubernetesError(RebalancerError):
    exit_status = 4

    def __init__(self, message: str, *, remedy: str = "", status: int | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class KubernetesUnreachable(KubernetesError):
    pass


class KubernetesForbidden(KubernetesError):
    pass


class KubernetesNotFound(KubernetesError):
    pass


class KubernetesConflict(KubernetesError):
    pass


class KubernetesExpired(KubernetesError):
    pass


class KubernetesThrottled(KubernetesError):
    def __init__(self, message: str, *, remedy: str = "", status: int | None = 429, retry_after_s: float | None = None) -> None:
        super().__init__(message, remedy=remedy, status=status)
        self.retry_after_s = retry_after_s


class MetricsError(RebalancerError):
    """``query`` names the query that failed, ``url`` the address without credentials, ``status`` the HTTP status, if there was one."""

    exit_status = 5

    def __init__(self, message: str, *, remedy: str = "", query: str = "", url: str = "", status: int | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.query = query
        self.url = url
        self.status = status


class PrometheusUnreachable(MetricsError):
    pass


class PrometheusRefused(MetricsError):
    pass


class MetricsMissing(MetricsError):
    pass


class PartlyDone(RebalancerError):
    exit_status = 6


class Interrupted(RebalancerError):
    exit_status = 130
