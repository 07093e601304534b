"""Where the API server is and who we are there: the service account inside a cluster, else the usual kubeconfig rules.

Everything is checked here before the client sees it, because the client's own messages quote whole entries of the file, tokens included.
Nothing is written back to the file, and no process-wide default is set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR, KubeConfigLoader, KubeConfigMerger

from rebalancer.errors import SettingsError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _nowhere_else() -> Access:
    raise SettingsError("these credentials come from no file")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server. ``ca`` names the trusted certificate authority, for messages."""

    configuration: Any  # the client's own Configuration, which has no types
    ca: str
    again: Callable[[], Access] = _nowhere_else
    """The same access with what its files and plugins say now. Raises SettingsError."""


def find_access(
    *,
    kubeconfig: Path | None,
    context: str | None,
    environ: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """A kubeconfig or context that was asked for; else the service account of the pod; else ``$KUBECONFIG``; else ``~/.kube/config``.

    Raises SettingsError in one sentence for everything that can be wrong before a request is sent.
    """
    again = partial(find_access, kubeconfig=kubeconfig, context=context, environ=environ, service_account=service_account)
    if kubeconfig is None and context is None and environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return replace(_in_cluster(environ=environ, service_account=service_account), again=again)
    return replace(_from_files(_files(kubeconfig=kubeconfig, environ=environ), context=context), again=again)


def _in_cluster(*, environ: Mapping[str, str], service_account: Path) -> Access:
    configuration = Configuration()
    ca = service_account / "ca.crt"
    try:
        InClusterConfigLoader(token_filename=str(service_account / "token"), cert_filename=str(ca), environ=environ).load_and_set(
            configuration
        )
    except (ConfigException, OSError, ValueError) as error:
        raise SettingsError(
            f"the service account in {service_account} cannot be used: {_first_line(error)}",
            remedy="see that the pod mounts its token (automountServiceAccountToken)",
        ) from error
    return Access(configuration=configuration, ca=str(ca))


def _files(*, kubeconfig: Path | None, environ: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise SettingsError(f"the kubeconfig {kubeconfig} does not exist or is no file", remedy="give an existing file to --kubeconfig")
        return [kubeconfig]
    named = environ.get("KUBECONFIG", "")
    home = Path(environ.get("HOME") or Path.home())
    wanted = [Path(part).expanduser() for part in named.split(ENV_KUBECONFIG_PATH_SEPARATOR) if part] or [home / ".kube" / "config"]
    found = [path for path in wanted if path.is_file()]
    if not found:
        raise SettingsError(
            f"no way to the API server: this is no pod of a cluster, and there is no {' or '.join(map(str, wanted))}",
            remedy="give --kubeconfig, or set KUBECONFIG",
        )
    return found


def _from_files(paths: list[Path], *, context: str | None) -> Access:
    place = " and ".join(map(str, paths))
    for path in paths:
        _check_file(path)
    with _explained(place):
        merged = KubeConfigMerger(ENV_KUBECONFIG_PATH_SEPARATOR.join(map(str, paths))).config
        entries = _Entries.of(merged.value, place=place)
    chosen = context or entries.current
    _check_context(chosen, entries=entries, place=place)
    configuration = Configuration()
    with _explained(place):
        # Without None, paths in the file would be relative to the working directory and not to the file.
        loader = KubeConfigLoader(config_dict=merged, active_context=chosen, config_base_path=None)
        loader.load_and_set(configuration)
    user = entries.users.get(entries.contexts[chosen].get("user") or "", {})
    if "exec" in user and not configuration.api_key and not configuration.cert_file:
        command = user["exec"].get("command", "") if isinstance(user["exec"], dict) else ""
        raise SettingsError(
            f"the credential plugin {command} of context {chosen} in {place} gave no credentials",
            remedy="run it by hand, or log in with it again",
        )
    return Access(configuration=configuration, ca=str(configuration.ssl_ca_cert or "the system's certificate authorities"))


@dataclass(frozen=True, slots=True)
class _Entries:
    current: str
    contexts: dict[str, dict[str, Any]]
    clusters: dict[str, dict[str, Any]]
    users: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, merged: Mapping[str, Any], *, place: str) -> _Entries:
        def named(section: str, key: str) -> dict[str, dict[str, Any]]:
            found = {str(node.value["name"]): node.value.get(key) or {} for node in merged[section]}
            odd = [name for name, entry in found.items() if not isinstance(entry, dict)]
            if odd:
                raise SettingsError(f"the kubeconfig {place} is broken: {key} {odd[0]} is no mapping", remedy="correct it")
            return found

        return cls(
            current=merged.get("current-context") or "",
            contexts=named("contexts", "context"),
            clusters=named("clusters", "cluster"),
            users=named("users", "user"),
        )


def _check_file(path: Path) -> None:
    """The file is YAML and has the three lists of named entries."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError(f"the kubeconfig {path} is no valid YAML{where}", remedy="correct it, or write it anew") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"the kubeconfig {path} is no valid YAML", remedy="correct it, or write it anew") from error
    except OSError as error:
        raise SettingsError(f"the kubeconfig {path} cannot be read ({error.strerror})", remedy="check its permissions") from error
    if not isinstance(content, dict):
        raise SettingsError(f"the kubeconfig {path} is empty or no mapping", remedy="write it anew")
    for section in ("clusters", "contexts", "users"):
        entries = content.get(section) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise SettingsError(f"the kubeconfig {path} is broken: {section} is no list of named entries", remedy="correct it")


def _check_context(chosen: str, *, entries: _Entries, place: str) -> None:
    known = ", ".join(sorted(entries.contexts)) or "none"
    if not chosen:
        raise SettingsError(f"{place} has no current context", remedy=f"give --context; known ones: {known}")
    if chosen not in entries.contexts:
        raise SettingsError(f"context {chosen} is not in {place}", remedy=f"choose one of the known ones: {known}")
    context = entries.contexts[chosen]
    cluster = context.get("cluster")
    if cluster not in entries.clusters or not entries.clusters[cluster].get("server"):
        raise SettingsError(
            f"context {chosen} in {place} names the cluster {cluster}, which has no entry with a server", remedy="correct it"
        )
    user = context.get("user")
    if user and user not in entries.users:
        raise SettingsError(f"context {chosen} in {place} names the user {user}, which has no entry", remedy="correct it")


@contextlib.contextmanager
def _explained(place: str) -> Iterator[None]:
    try:
        yield
    except ConfigException as error:
        said = str(error)
        reason = said if said.startswith("File does not exist") else "an entry is incomplete"
        raise SettingsError(f"the kubeconfig {place} cannot be used: {reason}", remedy="correct it, or write it anew") from None
    except OSError as error:
        raise SettingsError(
            f"the kubeconfig {place} cannot be used: {error.filename or 'a file that it names'} cannot be read ({error.strerror})",
            remedy="correct the path, or check its permissions",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"the kubeconfig {place} cannot be used: an entry is malformed ({type(error).__name__})", remedy="correct it, or write it anew"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
