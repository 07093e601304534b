"""Where things are: addresses, credentials, ports, files. What the operator wants is in `policy`, and the two are never mixed."""

from rebalancer.settings.listen import Listen, parse_listen
from rebalancer.settings.loading import load_settings
from rebalancer.settings.model import Settings, effective_mode
from rebalancer.settings.redaction import redacted_url

__all__ = ["Listen", "Settings", "effective_mode", "load_settings", "parse_listen", "redacted_url"]
