"""The signals that need no query in the policy, one module each: a new one is a new file here with a ``SIGNAL`` in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from rebalancer.collect.queries import BuiltInSignal


@cache
def built_in_signals() -> Mapping[str, BuiltInSignal]:
    """Name -> signal, of every module in this package."""
    found: dict[str, BuiltInSignal] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        signal: BuiltInSignal = importlib.import_module(f"{__name__}.{module.name}").SIGNAL
        found[signal.signal.name] = signal
    return MappingProxyType(found)
