"""Writes the generated pages of the documentation: ``python -m rebalancer.runtime.reference_pages docs``.

It stands in this layer because it is the lowest that sees everything that has a page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rebalancer.policy.reference import policy_markdown
from rebalancer.report.gates_page import gates_markdown
from rebalancer.runtime.metrics_page import metrics_markdown
from rebalancer.settings.reference import settings_markdown


def reference_pages() -> Mapping[str, str]:
    """file name -> content, of every page that is generated."""
    return {
        "policy.md": policy_markdown(),
        "settings.md": settings_markdown(),
        "gates.md": gates_markdown(),
        "metrics.md": metrics_markdown(),
    }


def write_pages(directory: Path) -> Iterator[Path]:
    """Write every generated page into ``directory``, which is made if need be, and yield the paths. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in reference_pages().items():
        path = directory / name
        path.write_text(text, encoding="utf-8")
        yield path


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m rebalancer.runtime.reference_pages DIRECTORY\n")
        return 2
    for path in write_pages(Path(arguments[0])):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
