"""Whatever goes wrong between us and the API server, as one error of our own tree with one sentence and a remedy.

The client raises three unrelated families (its own, urllib3's, the operating system's), and their texts may quote headers and credentials;
none of that text is passed on except what names a host, a certificate or a socket.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import email.utils
import ssl
from collections.abc import Mapping

import msgspec
import urllib3.exceptions

from rebalancer.errors import (
    KubernetesConflict,
    KubernetesError,
    KubernetesExpired,
    KubernetesForbidden,
    KubernetesNotFound,
    KubernetesThrottled,
    KubernetesUnreachable,
)
from rebalancer.kube.operations import Operation
from rebalancer.kube.status import read_status, retry_after_s


class NotSent(KubernetesUnreachable):
    """The request certainly never reached the server, so that nothing can have come of it."""


class TlsRefused(NotSent):
    """The two sides do not trust each other: trying again is of no use."""


class TooSlow(KubernetesUnreachable):
    """Nothing, or not all, came in time."""


class NotAnApiServer(KubernetesUnreachable):
    """Something answered that is no Kubernetes API server: trying again is of no use."""


def leaves_open(error: KubernetesError) -> bool:
    """True if a write that failed with ``error`` may have taken place: no answer, or one of a server that lost sight of it itself."""
    if isinstance(error, NotSent):
        return False
    return isinstance(error, KubernetesUnreachable) or (error.status is not None and error.status >= 500)


_WRONG_ADDRESS = "check the server address in the kubeconfig, and proxies on the way to it (HTTPS_PROXY, NO_PROXY)"


def refusal(*, status: int, headers: Mapping[str, str], body: bytes, operation: Operation, server: str, token: str = "") -> KubernetesError:
    """The error for an answer that is no success. ``token`` is read for its end of validity only, and never quoted."""
    said = read_status(body).message
    place = f"{operation.sentence} at {server}"
    if status == 401:
        return _unauthorised(place, headers=headers, token=token)
    if status == 403:
        return KubernetesForbidden(
            f"{server} forbids to {operation.sentence}{_quoted(said)}",
            remedy=f"add the rule {operation.rule} to the role in use, and ask `{operation.question}`",
            status=403,
        )
    if 300 <= status < 400 or (status >= 400 and status < 500 and is_html(headers, body)):
        return not_an_api_server(status=status, operation=operation, server=server)
    if status == 404:
        return KubernetesNotFound(f"{place}: not found{_quoted(said)}", status=404)
    if status == 409:
        return KubernetesConflict(f"{place}: conflict{_quoted(said)}", remedy="read the object again and decide anew", status=409)
    if status == 410:
        return KubernetesExpired(f"{place}: too old{_quoted(said)}", remedy="list afresh", status=410)
    if status == 429:
        return KubernetesThrottled(
            f"{place}: too many requests{_quoted(said)}",
            remedy="lower the request rate, or look at the API server's flow control for this user",
            retry_after_s=retry_after_s(headers),
        )
    remedy = "look at the API server's log" if status >= 500 else ""
    return KubernetesError(f"{place}: answered with status {status}{_quoted(said)}", remedy=remedy, status=status)


def not_an_api_server(*, status: int, operation: Operation, server: str) -> NotAnApiServer:
    return NotAnApiServer(
        f"{server} answered to {operation.sentence} with status {status} and a page that does not come from a Kubernetes API server",
        remedy=_WRONG_ADDRESS,
        status=status,
    )


def cut_short(*, source: str) -> KubernetesUnreachable:
    return KubernetesUnreachable(
        f"the answer to {source} was cut short or is no valid JSON", remedy="try again; look for proxies that limit the size of answers"
    )


def no_time_left(*, operation: Operation, server: str) -> NotSent:
    return NotSent(f"no time was left to {operation.sentence} at {server}", remedy="allow a longer time for the whole run")


def too_slow(*, operation: Operation, server: str, seconds: float) -> TooSlow:
    return TooSlow(
        f"{server} did not finish its answer to {operation.sentence} within {seconds:.3g} s",
        remedy="look at the load of the API server, or allow longer time-outs",
    )


def transport_failure(error: Exception, *, operation: Operation, server: str, ca: str, seconds: float) -> KubernetesUnreachable:
    """The error for a request that got no whole answer. ``ca`` says which certificate authority is trusted, for a TLS failure."""
    place = f"{server} could not be reached to {operation.sentence}"
    if isinstance(error, FileNotFoundError | PermissionError):
        return TlsRefused(
            f"{place}: {error.filename or 'a certificate file'} cannot be read", remedy="check the files that the kubeconfig names"
        )
    if _is_tls(error):
        return TlsRefused(
            f"TLS with {server} failed while trusting {ca}{_tls_reason(error)}",
            remedy="check certificate-authority and server in the kubeconfig, and the clocks",
        )
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return NotSent(f"{place}: its name cannot be resolved", remedy=_WRONG_ADDRESS)
    if isinstance(error, urllib3.exceptions.NewConnectionError | ConnectionRefusedError):
        return NotSent(f"{place}: the connection is refused or there is no route", remedy=_WRONG_ADDRESS)
    if isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        return NotSent(f"{place}: no connection within {seconds:.3g} s", remedy=_WRONG_ADDRESS)
    if isinstance(error, urllib3.exceptions.ProxyError):
        return NotSent(f"{place}: the proxy on the way does not let it through", remedy="check HTTPS_PROXY, NO_PROXY and proxy-url")
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return too_slow(operation=operation, server=server, seconds=seconds)
    return KubernetesUnreachable(
        f"{server} dropped the connection before its answer to {operation.sentence} was complete",
        remedy="try again; look for restarts of the API server and of load balancers before it",
    )


def no_credentials(error: Exception, *, server: str) -> KubernetesForbidden:
    return KubernetesForbidden(
        f"the credentials for {server} could not be read or renewed ({type(error).__name__})",
        remedy="check the token file or the credential plugin that the kubeconfig names",
    )


def _unauthorised(place: str, *, headers: Mapping[str, str], token: str) -> KubernetesForbidden:
    ended = _expiry(token)
    seen = _date(headers)
    if ended is not None and seen is not None and ended <= seen:
        return KubernetesForbidden(
            f"{place}: the token expired at {ended:%Y-%m-%d %H:%M:%S} UTC",
            remedy="log in again, or let the kubelet renew the projected token",
            status=401,
        )
    return KubernetesForbidden(
        f"{place}: the credentials are not accepted; the token or client certificate is expired, revoked or meant for another cluster",
        remedy="log in again, or choose the right --context",
        status=401,
    )


class _Claims(msgspec.Struct):
    exp: float


def _expiry(token: str) -> datetime.datetime | None:
    """When a JWT says it ends; None for every other kind of token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
        return datetime.datetime.fromtimestamp(claims.exp, tz=datetime.UTC)
    except (binascii.Error, ValueError, OverflowError, OSError, msgspec.DecodeError):
        return None


def _date(headers: Mapping[str, str]) -> datetime.datetime | None:
    """The server's own clock: it, not ours, judges a token."""
    try:
        seen = email.utils.parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None
    return seen if seen.tzinfo else seen.replace(tzinfo=datetime.UTC)


def _quoted(said: str) -> str:
    return f" ({said.strip()})" if said.strip() else ""


def is_html(headers: Mapping[str, str], body: bytes) -> bool:
    """True for a page made for people: a login page, a proxy's error."""
    return headers.get("content-type", "").startswith("text/html") or body.lstrip()[:1] == b"<"


def _is_tls(error: Exception) -> bool:
    """A certificate or protocol that is not accepted; a handshake that merely broke off is a dropped connection."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(seen, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return False
        if isinstance(seen, ssl.SSLError | urllib3.exceptions.SSLError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _tls_reason(error: Exception) -> str:
    seen: BaseException | None = error
    for _ in range(8):
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f": {seen.verify_message}"
        if isinstance(seen, ssl.SSLError) and seen.reason:
            return f": {seen.reason.lower().replace('_', ' ')}"
        if seen is None:
            return ""
        seen = seen.__cause__ or seen.__context__
    return ""
