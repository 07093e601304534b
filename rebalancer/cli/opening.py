"""From the common flags to a session, with what may surprise said on stderr.

Logs go to stderr too, since stdout belongs to the data. A command that ends by itself says on stdout what it did, so only warnings are
logged unless somebody asks for more; `run` sets its own level.
"""

from __future__ import annotations

from pathlib import Path

from rebalancer.cli.errors import warn
from rebalancer.policy.model import Mode
from rebalancer.runtime.logs import setup_logging
from rebalancer.runtime.session import Session, open_session


def opened(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    prometheus_url: str | None = None,
    settings: Path | None = None,
    policy: Path | None = None,
    tenants: Path | None = None,
    mode: Mode | None = None,
    listen: str | None = None,
    extender_listen: str | None = None,
    log_format: str | None = None,
    log_level: str | None = None,
) -> Session:
    """Raises SettingsError and PolicyError."""
    flags = {
        "kubeconfig": kubeconfig,
        "context": context,
        "prometheus.url": prometheus_url,
        "policy_file": policy,
        "tenants_file": tenants,
        "mode": mode,
        "listen": listen,
        "extender.listen": extender_listen,
        "log.format": log_format,
        "log.level": log_level,
    }
    session = open_session(settings_file=settings, flags=flags)
    log = session.settings.log
    setup_logging(log.format, log.level if session.settings.is_set("log", "level") else "warning")
    for sentence in session.warnings():
        warn(sentence)
    return session
