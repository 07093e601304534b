"""Pages of lists from bytes to small structs, so that one odd object never blinds a whole cycle.

A page is decoded in one go, which costs a hundredth of the client's own models. Only if it fails are its objects taken one by one, and
those that do not have the expected shape are left out and counted by reason: the reason comes from the decoder and names the field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
I = TypeVar("I")  # noqa: E741 - the item of a page: T, or raw bytes

_INDEX = re.compile(r"\[\d+\]")
"""Which element of an array was odd is left out of a reason, so that reasons stay few."""


class _ListMeta(msgspec.Struct, rename={"next_token": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the name on the wire
    next_token: str | None = ""


class _PageWire(msgspec.Struct, Generic[I]):
    metadata: _ListMeta
    items: list[I] | None


@dataclass(frozen=True, slots=True)
class DecodedPage(Generic[T]):
    items: list[T]
    resource_version: str
    next_token: str
    odd: Counter[str]
    odd_keys: Mapping[str, str]
    """Key (see `key_of`) -> reason, of the odd objects whose name could be read."""


class NotAPage(ValueError):
    """The bytes are no list of anything: cut short, or another kind of answer."""


class PageDecoder(Generic[T]):
    """Decodes pages whose items are ``item``. Built once for each list."""

    def __init__(self, item: type[T]) -> None:
        self._whole = msgspec.json.Decoder(_PageWire[item])  # type: ignore[valid-type]
        self._raw = msgspec.json.Decoder(_PageWire[msgspec.Raw])
        self._single = msgspec.json.Decoder(item)

    def decode(self, body: bytes) -> DecodedPage[T]:
        """Raises NotAPage."""
        try:
            page = self._whole.decode(body)
        except msgspec.ValidationError:
            return self._one_by_one(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotAPage(str(error)) from error
        return DecodedPage(
            items=page.items or [],
            resource_version=page.metadata.resourceVersion,
            next_token=page.metadata.next_token or "",
            odd=Counter(),
            odd_keys={},
        )

    def _one_by_one(self, body: bytes) -> DecodedPage[T]:
        try:
            page = self._raw.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotAPage(str(error)) from error
        items: list[T] = []
        odd: Counter[str] = Counter()
        odd_keys: dict[str, str] = {}
        for raw in page.items or []:
            try:
                items.append(self._single.decode(raw))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                reason = odd_reason(error)
                odd[reason] += 1
                if (head := read_head(raw)) is not None:
                    odd_keys[head.key] = reason
        return DecodedPage(
            items=items,
            resource_version=page.metadata.resourceVersion,
            next_token=page.metadata.next_token or "",
            odd=odd,
            odd_keys=odd_keys,
        )


class _HeadMeta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class Head(msgspec.Struct):
    """The least that every object says of itself: which it is, and which version of it."""

    metadata: _HeadMeta

    @property
    def key(self) -> str:
        return key_of(namespace=self.metadata.namespace, name=self.metadata.name)

    @property
    def version(self) -> str:
        return self.metadata.resource_version


_decode_head: Final = msgspec.json.Decoder(Head).decode


def key_of(*, namespace: str, name: str) -> str:
    """The name of an object among all of its kind; sorts as the API server sorts its lists."""
    return f"{namespace}/{name}" if namespace else name


def read_head(raw: msgspec.Raw) -> Head | None:
    """None for an object without a name."""
    try:
        return _decode_head(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def odd_reason(error: Exception) -> str:
    return _INDEX.sub("[]", str(error))
