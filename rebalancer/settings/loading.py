"""Settings from flags, environment, file and defaults, in that order of strength; every mistake is told with the place it came from.

pydantic-settings reads the variables and judges the values. What it leaves open is closed here: a variable that matches no setting, a file
that does not exist, the line of a key, and that no message may show a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from rebalancer.errors import SettingsError
from rebalancer.policy.document import Document, KeyPath, dotted, parse_document, read_text
from rebalancer.policy.mistakes import nearest, sentence_of, show
from rebalancer.policy.quantities import MisplacedValue
from rebalancer.settings.model import ENV_PREFIX, Settings, SourceKind

SETTINGS_VARIABLE = f"{ENV_PREFIX}SETTINGS"
FLAGS = {
    "kubeconfig": "--kubeconfig",
    "context": "--context",
    "prometheus.url": "--prometheus-url",
    "policy_file": "--policy",
    "tenants_file": "--tenants",
    "mode": "--mode",
    "listen": "--listen",
    "extender.listen": "--listen",
    "log.format": "--log-format",
    "log.level": "--log-level",
}
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

_SECRET = (("prometheus", "url"), ("prometheus", "headers"))
_FOR_TESTS = f"{ENV_PREFIX}TEST_"
_SERVICE_LINK = re.compile(
    rf"^{ENV_PREFIX}(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$"
)
"""Variables that kubelet sets for every Service whose name begins with rebalancer, this project's own among them."""
_FILES = (
    ("prometheus", "ca_file"),
    ("prometheus", "token_file"),
    ("prometheus", "basic_auth_file"),
    ("tls", "cert_file"),
    ("tls", "key_file"),
    ("extender", "cert_file"),
    ("extender", "key_file"),
)


def load_settings(
    *,
    settings_file: Path | None,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    namespace_file: Path = NAMESPACE_FILE,
) -> Settings:
    """Put the settings together. Raises SettingsError, whose ``mistakes`` hold every mistake that was found.

    ``flags``: the keys of `FLAGS`, with None for a flag that was not given. ``environ``: the process environment; what it says about
    being in a cluster changes defaults. Without ``settings_file`` the variable REBALANCER_SETTINGS names the file, if any.
    """
    named = environ.get(SETTINGS_VARIABLE)
    if settings_file is None and named:
        settings_file = Path(named).expanduser()
    gathered = _Gathered.empty()
    _add_defaults(gathered, environ, namespace_file)
    if settings_file is not None:
        _add_file(gathered, settings_file)
    _add_environment(gathered, environ)
    _add_flags(gathered, flags)
    settings = _judged(gathered)
    gathered.mistakes += _missing_files(settings, gathered)
    if settings is None or gathered.mistakes:
        raise _failure(gathered.mistakes)
    object.__setattr__(settings, "_sources", {path: (place.kind, place.words) for path, place in gathered.places.items()})
    return settings


@dataclass(frozen=True, slots=True)
class _Place:
    kind: SourceKind
    words: str
    """As it stands in a sentence: ``the flag --mode``."""


@dataclass(slots=True)
class _Gathered:
    """What the sources say so far: values, where each came from, and what is wrong."""

    values: dict[str, Any]
    places: dict[KeyPath, _Place]
    mistakes: list[tuple[str, str]]
    """(message, remedy), strongest source last."""
    document: Document | None = None

    @classmethod
    def empty(cls) -> _Gathered:
        return cls(values={}, places={}, mistakes=[])

    def put(self, path: tuple[str, ...], value: object, place: _Place) -> None:
        target = self.values
        for step in path[:-1]:
            target = target.setdefault(step, {})
            if not isinstance(target, dict):
                return  # the file has something else there, and is told so
        target[path[-1]] = value
        self.places[path] = place

    def where(self, path: KeyPath) -> str:
        """The place to name in a sentence about the value at the path."""
        leaf = _leaf_of(path)
        place = self.places.get(leaf)
        if place is not None and place.kind is not SourceKind.FILE:
            return place.words
        if self.document is not None:
            return f"{self.document.origin}, line {self.document.line_of(path)}, {dotted(path)}"
        return dotted(path)


def leaves(model: type[BaseModel] = Settings, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every setting that holds a value."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, (*path, name))
        else:
            yield (*path, name)


def variable_of(path: tuple[str, ...]) -> str:
    """``("prometheus", "url")`` as ``REBALANCER_PROMETHEUS__URL``."""
    return ENV_PREFIX + "__".join(path).upper()


def _leaf_of(path: KeyPath) -> KeyPath:
    return next((leaf for leaf in leaves() if path[: len(leaf)] == leaf), path)


def _add_defaults(gathered: _Gathered, environ: Mapping[str, str], namespace_file: Path) -> None:
    namespace = environ.get("POD_NAMESPACE", "")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        place = _Place(SourceKind.DEFAULT, "the default in a cluster")
        gathered.put(("listen",), "0.0.0.0:8080", place)
        gathered.put(("extender", "listen"), "0.0.0.0:8088", place)
        gathered.put(("log", "format"), "json", place)
        gathered.put(("leader_election", "enabled"), True, place)
        if not namespace and namespace_file.is_file():
            namespace = namespace_file.read_text(encoding="utf-8").strip()
    if namespace:
        gathered.put(("namespace",), namespace, _Place(SourceKind.DEFAULT, "the namespace of the pod"))


def _add_file(gathered: _Gathered, path: Path) -> None:
    origin = str(path)
    document = parse_document(read_text(path, what="settings", error=SettingsError), origin=origin, what="settings", error=SettingsError)
    if document.value is None:
        return
    if not isinstance(document.value, dict):
        raise SettingsError(
            f"{origin}, line {document.line_of(())}: settings are a mapping of keys to values, not {show(document.value)}",
            remedy="write key: value",
        )
    gathered.document = document
    gathered.mistakes += [(f"{origin}, line {m.line}, {dotted(m.path)}: {m.message}", m.remedy) for m in document.mistakes]
    _merge(gathered.values, document.value)
    for leaf in leaves():
        if leaf in document.lines:
            gathered.places[leaf] = _Place(SourceKind.FILE, f"{origin}, line {document.lines[leaf]}")


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """A key without a value counts as left out: so stands a section whose lines are all commented out."""
    for key, value in values.items():
        if value is None and key in Settings.model_fields:
            continue
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, dict) else value


def _add_environment(gathered: _Gathered, environ: Mapping[str, str]) -> None:
    """An empty variable counts as unset: charts and shells make them so."""
    known = {variable_of(leaf): leaf for leaf in leaves()}
    in_cluster = bool(environ.get("KUBERNETES_SERVICE_HOST"))
    given: dict[str, str] = {}
    for name, value in environ.items():
        if not name.startswith(ENV_PREFIX) or name == SETTINGS_VARIABLE or name.startswith(_FOR_TESTS):
            continue
        if name in known:
            if value and _is_readable(gathered, name, known[name], value):
                given[name.lower()] = value
        elif not (in_cluster and _SERVICE_LINK.match(name)):
            close = nearest(name.removeprefix(ENV_PREFIX), [variable.removeprefix(ENV_PREFIX) for variable in known])
            remedy = f"did you mean {ENV_PREFIX}{close}?" if close else "unset it"
            gathered.mistakes.append((f"the environment variable {name} matches no setting", remedy))
    source = EnvSettingsSource(Settings)
    source.env_vars = given
    read = source()
    for name, leaf in known.items():
        if name.lower() in given:
            found: Any = read
            for step in leaf:
                found = found[step]
            gathered.put(leaf, found, _Place(SourceKind.ENVIRONMENT, f"the environment variable {name}"))


def _is_readable(gathered: _Gathered, name: str, leaf: tuple[str, ...], value: str) -> bool:
    """Headers are the one setting that a variable holds as JSON."""
    if leaf != ("prometheus", "headers"):
        return True
    try:
        fits = isinstance(json.loads(value), dict)
    except ValueError:
        fits = False
    if not fits:
        gathered.mistakes.append((f"the environment variable {name} is not a JSON object", 'write it like {"X-Scope-OrgID": "team"}'))
    return fits


def _add_flags(gathered: _Gathered, flags: Mapping[str, object]) -> None:
    for key, value in flags.items():
        flag = FLAGS[key]
        if value is not None:
            gathered.put(tuple(key.split(".")), value, _Place(SourceKind.FLAG, f"the flag {flag}"))


def _judged(gathered: _Gathered) -> Settings | None:
    try:
        return Settings(**gathered.values)
    except ValidationError as failure:
        seen: set[KeyPath] = set()
        for detail in failure.errors(include_url=False, include_input=False):
            path = _path_of(detail, gathered)
            if path not in seen:
                seen.add(path)
                gathered.mistakes.append(_told(detail, path, gathered))
    return None


def _path_of(detail: ErrorDetails, gathered: _Gathered) -> KeyPath:
    """The path of the value, without what pydantic appends for the parts of a union."""
    path: KeyPath = detail["loc"]
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, MisplacedValue):
        return (*path, *error.at)
    leaf = _leaf_of(path)
    if leaf[:2] == ("prometheus", "headers") or detail["type"] == "extra_forbidden":
        return path
    return leaf


def _told(detail: ErrorDetails, path: KeyPath, gathered: _Gathered) -> tuple[str, str]:
    where = gathered.where(path)
    if path[:2] in _SECRET and detail["type"] not in ("value_error", "extra_forbidden"):
        return (
            f"{where}: has a value of the wrong type, which is not shown here",
            "write text in quotes; headers are a mapping of names to texts",
        )
    value: Any = gathered.values
    for step in path:
        value = value.get(str(step)) if isinstance(value, dict) else None
    if isinstance(value, Path):
        value = str(value)
    message, remedy = sentence_of(detail, value=value, model=Settings, path=path)
    return f"{where}: {message}", remedy


def _missing_files(settings: Settings | None, gathered: _Gathered) -> Iterator[tuple[str, str]]:
    """Credentials and certificates are looked for at once; a policy or a kubeconfig is told by whoever reads it."""
    for part, name in _FILES if settings is not None else ():
        path: Path | None = getattr(getattr(settings, part), name)
        if path is not None and not path.is_file():
            yield f"{gathered.where((part, name))}: there is no file {path}", "mount it, or correct the path"


def _failure(mistakes: list[tuple[str, str]]) -> SettingsError:
    message, remedy = mistakes[0]
    more = len(mistakes) - 1
    count = f" (and {more} more mistake{'s' if more > 1 else ''})" if more else ""
    return SettingsError(f"{message}{count}", remedy=remedy, mistakes=tuple(f"{told}: {cure}" if cure else told for told, cure in mistakes))
