from __future__ import annotations

from tests.kube.conftest import api, client, connect, deadline, stopped

__all__ = ["api", "client", "connect", "deadline", "stopped"]
