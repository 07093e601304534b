"""`rebalancer tenants import`: a tenants file from the quotas that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli.output import print_text

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="YAML of quota objects, as kubectl get -o yaml prints it.", show_default=False)
]


def import_quotas(files: Files) -> None:
    """Print a tenants file made from ResourceQuota, Kueue, KAI, Volcano and ElasticQuota objects."""
    import yaml

    from rebalancer.errors import PolicyError
    from rebalancer.policy.document import read_text
    from rebalancer.policy.tenants_import import import_tenants
    from rebalancer.policy.tenants_loader import parse_tenants

    objects = []
    for file in files:
        try:
            found = list(yaml.safe_load_all(read_text(file, what="quota", error=PolicyError)))
        except (yaml.YAMLError, RecursionError):
            raise PolicyError(f"{file} cannot be read as YAML", remedy="give what kubectl get -o yaml prints") from None
        objects += [each for each in found if isinstance(each, dict)]
    text = import_tenants(objects)
    parse_tenants(text, origin="the imported file")
    print_text(text.rstrip("\n"))
