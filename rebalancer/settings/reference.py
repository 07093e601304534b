"""The reference of settings, generated from the model: every key with its variable, its flag, its default and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, SecretStr

from rebalancer.policy.quantities import Duration, TimeZone
from rebalancer.policy.reference import Words, default_words, sentence, table, type_words
from rebalancer.settings.listen import ListenAddress
from rebalancer.settings.loading import FLAGS, SETTINGS_VARIABLE, leaves, variable_of
from rebalancer.settings.model import (
    ExtenderSettings,
    GpuShareSettings,
    KubernetesSettings,
    LeaderElectionSettings,
    LeaseName,
    LogSettings,
    Namespace,
    PrometheusSettings,
    Settings,
    TlsSettings,
)

SETTINGS_WORDS: Words = (
    (Duration, "duration"),
    (ListenAddress, "host:port"),
    (Namespace, "name of a namespace"),
    (LeaseName, "name of a Lease"),
    (TimeZone, "time zone"),
    (Path, "path of a file"),
    (SecretStr, "text that is never shown"),
)
PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("", Settings),
    ("prometheus", PrometheusSettings),
    ("kubernetes", KubernetesSettings),
    ("leader_election", LeaderElectionSettings),
    ("tls", TlsSettings),
    ("extender", ExtenderSettings),
    ("extender.gpushare", GpuShareSettings),
    ("log", LogSettings),
)
"""(section of the file, its model), in the order of the page."""

_HEAD = f"""# Settings

Settings say where things are: addresses, credentials, files, ports. What is wanted is in the [policy](policy.md). Every key is
optional, and [config/settings.yaml](../config/settings.yaml) shows all of them. Each key is also an environment variable, and some are
flags: **a flag wins over a variable, a variable over the file, the file over the default.** `--settings` or `{SETTINGS_VARIABLE}` names
the file.

An unknown key, and a variable that begins with `REBALANCER_` and matches no setting, is an error with the nearest name that exists. An
empty variable counts as unset. Secrets are named by file; no message, log or report shows one.

Durations are written `90s`, `5m`, `1h30m`, or as a plain number of seconds. In a cluster the defaults of `listen`, `extender.listen`,
`log.format`, `namespace` and `leader_election.enabled` fit a pod. This page is generated from the model; `make docs` writes it.
"""

_EXAMPLE = """
## Example

```yaml
prometheus:
  url: https://mimir.monitoring:8080/prometheus
  token_file: /var/run/secrets/prometheus/token
  headers: {X-Scope-OrgID: platform}
policy_file: /etc/rebalancer/policy.yaml
listen: 0.0.0.0:8080
log: {format: json, level: info}
```

The same address as a variable, and as a flag:

```sh
export REBALANCER_PROMETHEUS__URL=https://mimir.monitoring:8080/prometheus
rebalancer plan --prometheus-url https://mimir.monitoring:8080/prometheus
```
"""


def settings_markdown() -> str:
    """The content of docs/settings.md."""
    return _HEAD + "".join(f"\n{_section(section, model)}" for section, model in PARTS) + _EXAMPLE


def _section(section: str, model: type[BaseModel]) -> str:
    title, about = (f"`{section}`", sentence(model.__doc__)) if section else ("Top level", "Keys that stand in no section.")
    rows = table(("key", "type", "default", "variable", "flag", "meaning"), _rows(section, model))
    return f"## {title}\n\n{about}\n\n{rows}"


def _rows(section: str, model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for path in leaves():
        if path[:-1] != (tuple(section.split(".")) if section else ()):
            continue
        key = ".".join(path)
        flag = FLAGS.get(key)
        yield (
            f"`{key}`",
            type_words(model, path[-1], words=SETTINGS_WORDS),
            default_words(model, path[-1]),
            f"`{variable_of(path)}`",
            f"`{flag}`" if flag else "",
            sentence(model.model_fields[path[-1]].description),
        )
