"""How the API server says no: `Status` objects with code, reason, details and causes, as the real one words them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebalancer.simulate.http_server import Answer
from rebalancer.simulate.kinds import Json

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """A refusal; becomes a Status answer."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        causes: Sequence[Json] = (),
        retry_after_s: int | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS.get(code, "Unknown")
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s
        self.continue_token = continue_token

    def status(self) -> Json:
        details: Json = {}
        if self.causes:
            details["causes"] = list(self.causes)
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }

    def answer(self) -> Answer:
        headers = (("Retry-After", str(self.retry_after_s)),) if self.retry_after_s is not None else ()
        return Answer(status=self.code, body=msgspec.json.encode(self.status()), headers=headers)


def success() -> Json:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
