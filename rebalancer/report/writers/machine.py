"""JSON and YAML of every document: camelCase, unknown numbers as null, nothing in them that a terminal would obey."""

from __future__ import annotations

import re

import msgspec
import yaml

from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The C one where PyYAML was built with it: five times as fast, which a plan of ten thousand nodes needs."""
_UNSAFE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NOT_ASCII = re.compile("[^\x00-\x7e]")


@writer(msgspec.Struct, Format.JSON)
def to_json(document: msgspec.Struct, page: Page, _: Format) -> str:
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    return (_NOT_ASCII if page.ascii else _UNSAFE).sub(_escape, text)


@writer(msgspec.Struct, Format.YAML)
def to_yaml(document: msgspec.Struct, page: Page, _: Format) -> str:
    data = msgspec.json.encode(document)  # by way of JSON, so that NaN is null here too
    readable = not page.ascii and _UNSAFE.search(data.decode()) is None
    text: str = yaml.dump(msgspec.json.decode(data), Dumper=_DUMPER, sort_keys=False, allow_unicode=readable, width=120)
    return text


def _escape(match: re.Match[str]) -> str:
    """As JSON writes it; two surrogates beyond the first plane."""
    units = match.group().encode("utf-16-be")
    return "".join(f"\\u{units[start]:02x}{units[start + 1]:02x}" for start in range(0, len(units), 2))
