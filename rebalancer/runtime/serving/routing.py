"""Which handler answers: by method and path, exactly, or by prefix where the path of a route ends with a slash.

HEAD is answered by what answers GET. A path that is known by another method is told which ones it has; one that is unknown, what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from rebalancer.runtime.serving.messages import Answer, Handler, text

Routes = Mapping[tuple[str, str], Handler]
"""(method, path) -> handler."""


@dataclass(frozen=True, slots=True)
class Router:
    routes: Routes

    def handler(self, method: str, path: str) -> Handler | Answer:
        """The handler, or the answer to whoever asks for what is not there."""
        wanted = "GET" if method == "HEAD" else method
        place = self._place(path, wanted)
        if place is not None:
            return self.routes[wanted, place]
        methods = sorted({known for known, at in self.routes if _matches(at, path)})
        if not methods:
            return text(f"nothing is served there, only {self._all()}", status=HTTPStatus.NOT_FOUND)
        if "GET" in methods:
            methods.insert(methods.index("GET") + 1, "HEAD")
        answer = text(f"only {' and '.join(methods)} can be asked there", status=HTTPStatus.METHOD_NOT_ALLOWED)
        return Answer(answer.status, answer.body, answer.content_type, {"Allow": ", ".join(methods)})

    def _place(self, path: str, method: str) -> str | None:
        """The path of the route: the same, else the longest prefix."""
        found = [at for known, at in self.routes if known == method and _matches(at, path)]
        return max(found, key=len, default=None)

    def _all(self) -> str:
        return ", ".join(sorted(f"{method} {path}" for method, path in self.routes))


def _matches(route: str, path: str) -> bool:
    return route == path or (route.endswith("/") and path.startswith(route))
