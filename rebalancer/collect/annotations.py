"""The annotations of an object by their full names: those that some rule reads, which are all that its wire struct has kept."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rebalancer.kube.wire import AnnotationsWire

NO_ANNOTATIONS: Mapping[str, str] = {}


def annotations_of(wire: AnnotationsWire | None) -> Mapping[str, str]:
    if wire is None:
        return NO_ANNOTATIONS
    found: dict[str, str] = msgspec.to_builtins(wire)
    return found or NO_ANNOTATIONS
