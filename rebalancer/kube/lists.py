"""What can be listed, and a whole list of it that survives a bad moment of the API server.

A paged list is always consistent (all its pages share one resourceVersion): what a watch tells afterwards (`watch`) builds on one, and is
held against the next. What an item looks like is declared in `wire`; what is listed, in `resources`; how the bytes travel, in
`client`. Nothing here knows a Kubernetes kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesExpired

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

T = TypeVar("T", bound=msgspec.Struct)

MAX_RESTARTS = 3


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One thing that can be listed. ``name``: its plural, for messages. ``path``: the collection (``/api/v1/pods``). ``item``: its struct.

    With ``metadata_only`` the server is asked for PartialObjectMetadata: for kinds of which only labels and owners are read. A server that
    does not know that form answers whole objects, which decode just as well, since ``item`` then names ``metadata`` alone.
    ``sharing`` makes, for one list, a function that lets equal parts of its items be one.
    """

    name: str
    path: str
    item: type[T]
    metadata_only: bool = False
    sharing: Callable[[], Callable[[T], None]] | None = None
    query: tuple[tuple[str, str], ...] = ()
    """What narrows every list and watch of it: ``(("fieldSelector", "metadata.name=x"),)``."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page. ``odd`` counts, by reason, the objects that did not have the shape of the item and were left out."""

    items: list[T]
    resource_version: str
    odd: Counter[str]
    odd_keys: Mapping[str, str] = field(default_factory=dict)
    """Key -> reason, of those whose name could be read."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A whole list as of ``resource_version``. ``odd``: as in Page, over all pages. ``restarts``: how often it had to start afresh."""

    name: str
    items: list[T]
    resource_version: str
    odd: Counter[str]
    restarts: int = 0
    odd_keys: Mapping[str, str] = field(default_factory=dict)


def list_all(
    client: KubeClient,
    resource: Resource[T],
    *,
    deadline: Deadline,
    query: Sequence[tuple[str, str]] = (),
    each: Callable[[T], None] = lambda item: None,
) -> Listed[T]:
    """All items of ``resource``.

    ``each`` is called with each item while its page is at hand, so that who holds an older list can let go of it piece by piece.
    Each page is retried by the client. A continue token that has expired (410) makes the list start afresh, at most MAX_RESTARTS times:
    pages of two versions are never mixed, since a pod that moved between them would be seen twice or not at all.
    Raises what `KubeClient.pages` raises; KubernetesExpired when the list expired once too often.
    """
    restarts = 0
    while True:
        try:
            return _list_once(client, resource, deadline=deadline, query=query, restarts=restarts, each=each)
        except KubernetesExpired as error:
            if restarts == MAX_RESTARTS:
                raise KubernetesExpired(
                    f"the list of {resource.name} from {client.server} expired {restarts + 1} times before its last page was read",
                    remedy="the API server is too slow for lists of this size; raise kubernetes.page_size, or see why it takes minutes",
                    status=410,
                ) from error
            restarts += 1


def _list_once(
    client: KubeClient,
    resource: Resource[T],
    *,
    deadline: Deadline,
    query: Sequence[tuple[str, str]],
    restarts: int,
    each: Callable[[T], None],
) -> Listed[T]:
    items: list[T] = []
    odd: Counter[str] = Counter()
    odd_keys: dict[str, str] = {}
    version = ""
    share = resource.sharing() if resource.sharing is not None else None
    for page in client.pages(resource, deadline=deadline, query=query):
        for item in page.items:
            if share is not None:
                share(item)
            each(item)
        items.extend(page.items)
        odd.update(page.odd)
        odd_keys.update(page.odd_keys)
        version = page.resource_version
    return Listed(name=resource.name, items=items, resource_version=version, odd=odd, restarts=restarts, odd_keys=odd_keys)
