"""An address as it may be shown to anybody who reads logs."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def redacted_url(url: str) -> str:
    """The URL without user, password, query string and fragment; ``an unreadable address`` when it cannot be taken apart."""
    try:
        parts = urlsplit(url.strip())
        place = parts.netloc.rpartition("@")[2]
        parts.port  # noqa: B018 - raises for a port that is none, which may be the tail of a password
    except ValueError:
        return "an unreadable address"
    if not place:
        return "an unreadable address"
    return urlunsplit((parts.scheme, place, parts.path, "", ""))
