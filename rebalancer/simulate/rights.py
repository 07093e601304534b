"""Who may do what at the embedded API server: everything, minus what a test or a scenario takes away.

The same table answers SelfSubjectAccessReviews and is enforced on requests, so that a preflight check and reality agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Denial:
    """Shell patterns; ``resource`` is the plural, with the subresource behind a slash (``pods/eviction``)."""

    verb: str = "*"
    resource: str = "*"
    namespace: str = "*"


@dataclass(slots=True)
class Rights:
    denials: list[Denial] = field(default_factory=list)
    token: str = ""
    """The bearer token that requests must carry; empty: none is asked for."""

    def deny(self, verb: str, resource: str, namespace: str = "*") -> None:
        self.denials.append(Denial(verb, resource, namespace))

    def allow_all(self) -> None:
        self.denials.clear()

    def allows(self, verb: str, resource: str, namespace: str = "") -> bool:
        return not any(
            fnmatchcase(verb, denial.verb) and fnmatchcase(resource, denial.resource) and fnmatchcase(namespace, denial.namespace)
            for denial in self.denials
        )
