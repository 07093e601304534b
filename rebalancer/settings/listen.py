"""The address that health and metrics are served on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_settings import NoDecode

_ADDRESS = re.compile(r"^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.\-]*)):([0-9]{1,5})$")


@dataclass(frozen=True, slots=True)
class Listen:
    """``port`` 0 takes any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(value: object) -> Listen:
    """``127.0.0.1:8080``, ``[::1]:8080``, ``localhost:8080``, or ``:8080`` for every address. Raises ValueError."""
    if isinstance(value, Listen):
        return value
    match = _ADDRESS.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not an address to listen on; write host:port, such as 127.0.0.1:8080 or [::1]:8080")
    six, plain, digits = match.groups()
    port = int(digits)
    if port > 65535:
        raise ValueError(f"port {port} does not exist; use one up to 65535")
    return Listen(host=six or plain or "0.0.0.0", port=port)  # noqa: S104 - a port alone asks for every address


ListenAddress = Annotated[
    Listen,
    NoDecode,  # a variable holds the address itself, not JSON
    BeforeValidator(parse_listen),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^.*:[0-9]{1,5}$", "examples": ["127.0.0.1:8080", "[::1]:8080", ":8080"]}),
]
