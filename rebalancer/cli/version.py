"""`rebalancer version`: what is installed, for reports and for support."""

from __future__ import annotations

import platform
from importlib import metadata

import typer

from rebalancer import __version__
from rebalancer.cli.output import print_text

_LIBRARIES = ("kubernetes", "prometheus-api-client", "apscheduler", "numpy", "pydantic")


def register(app: typer.Typer) -> None:
    app.command("version")(version)


def version() -> None:
    """Print the version of rebalancer and of what it stands on."""
    print_text(version_line())
    print_text(f"Python {platform.python_version()}, {', '.join(f'{name} {_installed(name)}' for name in _LIBRARIES)}")


def version_line() -> str:
    return f"rebalancer {__version__}"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
