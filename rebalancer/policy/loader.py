"""From a policy file to a `RebalancePolicy`, or to one sentence that says what to correct and where.

Values are validated strictly: a number in quotes is no number, 2.5 is no count, a key in the wrong spelling is no key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rebalancer.errors import ConfigurationError, PolicyError
from rebalancer.policy.document import Document, KeyPath, Mistake, parse_document, read_text
from rebalancer.policy.mistakes import Explain, ModelT, Told, failure_of, mistakes_of, nearest, show
from rebalancer.policy.model import API_VERSION, RebalancePolicy, Threshold
from rebalancer.policy.timing import judge_timing

KINDS = ("RebalancePolicy", "TenantQuotas", "Prices")
_HEADER = ("apiVersion", "kind", "spec")
_MARKS = tuple(name for name, field in Threshold.model_fields.items() if field.is_required())


def load_policy(path: Path) -> RebalancePolicy:
    """Read and validate a policy file. Raises PolicyError, whose ``mistakes`` hold every mistake that was found."""
    return parse_policy(read_text(path, what="policy", error=PolicyError), origin=str(path))


def parse_policy(text: str, *, origin: str) -> RebalancePolicy:
    """Validate the text of a policy; ``origin`` is what the sentences call it. Raises PolicyError as `load_policy` does."""
    document = parse_document(text, origin=origin, what="policy", error=PolicyError)
    check_header(document, kind="RebalancePolicy", error=PolicyError)
    policy = validated(document, RebalancePolicy, error=PolicyError, explain=_explain)
    impossible = [
        Mistake(path=("spec", *fault.at), line=document.line_of(("spec", *fault.at)), message=fault.message, remedy=fault.remedy)
        for fault in judge_timing(policy.spec).errors
    ]
    if impossible:
        raise failure_of(impossible, origin=origin, error=PolicyError)
    return policy


def check_header(document: Document, *, kind: str, error: type[ConfigurationError], versions: Sequence[str] = (API_VERSION,)) -> None:
    """Refuse what is not a file of this kind and of a version that is known, before anything else in it is looked at."""
    value, origin = document.value, document.origin
    if value is None or value == {}:
        raise error(f"{origin}: the file is empty", remedy=f"write a {kind} into it, or leave the file out to use the defaults")
    if not isinstance(value, dict):
        raise error(
            f"{origin}, line {document.line_of(())}: a {kind} is a mapping of keys to values, not {show(value)}",
            remedy=f"begin with apiVersion: {versions[0]}",
        )
    found_kind, version = value.get("kind"), value.get("apiVersion")
    mistakes: list[Mistake] = []
    if found_kind != kind:
        remedy = f"write kind: {kind}"
        if isinstance(found_kind, str) and found_kind in KINDS:
            remedy = f"this is a {found_kind} file; name it with the setting that is meant for it"
        told = "the key is missing" if "kind" not in value else f"must be {kind}, not {show(found_kind)}"
        mistakes.append(_header_mistake(document, "kind", told, remedy))
    if version not in versions:
        told = "the key is missing" if "apiVersion" not in value else f"{show(version)} is not a version that is known"
        remedy = f"known is {versions[0]}" if len(versions) == 1 else f"known are {', '.join(versions)}"
        mistakes.append(_header_mistake(document, "apiVersion", told, remedy))
    if "spec" not in value:
        mistakes.append(_header_mistake(document, "spec", "the key is missing", "write spec: {} to use the defaults"))
    if mistakes:
        for key in value:
            meant = nearest(key, [wanted for wanted in _HEADER if wanted not in value]) if key not in (*_HEADER, "metadata") else None
            if meant is not None:
                mistakes = [mistake for mistake in mistakes if mistake.path != (meant,)]
                mistakes.append(_header_mistake(document, key, "unknown key", f"did you mean {meant}?"))
        raise failure_of(mistakes, origin=origin, error=error)


def _header_mistake(document: Document, key: str, message: str, remedy: str) -> Mistake:
    return Mistake((key,), document.line_of((key,)), message, remedy)


def validated(document: Document, model: type[ModelT], *, error: type[ConfigurationError], explain: Explain | None = None) -> ModelT:
    """The document as the model. Raises ``error`` with all mistakes, those of the YAML itself included."""
    mistakes = list(document.mistakes)
    try:
        made = model.model_validate_json(json.dumps(document.value), strict=True, by_alias=True, by_name=False)
    except ValidationError as failure:
        told = {mistake.path for mistake in mistakes}
        mistakes += [mistake for mistake in mistakes_of(failure, document, model, explain=explain) if mistake.path not in told]
        raise failure_of(mistakes, origin=document.origin, error=error) from None
    if mistakes:
        raise failure_of(mistakes, origin=document.origin, error=error)
    return made


def _explain(detail: ErrorDetails, path: KeyPath, document: Document) -> Told | None:
    """A mark that is missing is told with its signal and its pool: half a pair would make a signal fire never, or always."""
    match path:
        case ("spec", "pools", int(row), "signals", str(signal), str(mark)) if detail["type"] == "missing" and mark in _MARKS:
            pool = document.value_of(("spec", "pools", row, "name"))
            name = f"pool {pool}" if isinstance(pool, str) else f"pool number {row + 1}"
            return f"signal {signal} of {name} has no {mark}", f"give it all of {', '.join(_MARKS)}"
    return None
