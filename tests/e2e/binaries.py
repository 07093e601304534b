"""Where the control plane comes from: a cluster that exists, binaries that exist, or binaries built here once.

The order is that of docs/testing.md. What is built goes into a cache outside the tree, under the release and a digest of what it was built
from, so a change of either builds anew and an old one is never taken for a new one.

    python -m tests.e2e.binaries        builds what is needed and says where it is
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "KUBECONFIG_E2E"
ASSETS = "KUBEBUILDER_ASSETS"
REQUIRED = "REBALANCER_TEST_REQUIRE_E2E"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
SOURCE = Path(__file__).parent / "controlplane"
BUILT = "controlplane"
OTHER_WAYS = f"set {CLUSTER} to the kubeconfig of a disposable cluster, or {ASSETS} to a folder with {', '.join(PROGRAMS)} and etcd"
BUILD_TIMEOUT_S = 5400


class Unavailable(Exception):
    """There is no control plane to be had; one line that says why and what to do."""


@dataclass(frozen=True)
class Binaries:
    """Programs of one control plane; ``version`` is Kubernetes's, or empty where nobody asked."""

    folder: Path
    etcd: Path
    version: str = ""

    def program(self, name: str) -> Path:
        return self.folder / name


def find(environ: Mapping[str, str] = os.environ) -> Binaries:
    """Binaries of the environment's choice, built when it names none. Raises Unavailable."""
    assets = environ.get(ASSETS)
    if assets:
        return _from_assets(Path(assets))
    etcd = _etcd(None)
    return Binaries(folder=_built(environ), etcd=etcd, version=release())


def release() -> str:
    """The release that go.mod pins, such as v1.36.3."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (SOURCE / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise Unavailable(f"{SOURCE / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1]


def _from_assets(folder: Path) -> Binaries:
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise Unavailable(f"{ASSETS}={folder} lacks {', '.join(missing)}; put them there, or unset it to have them built")
    return Binaries(folder=folder, etcd=_etcd(folder))


def _etcd(folder: Path | None) -> Path:
    if folder is not None and os.access(folder / "etcd", os.X_OK):
        return folder / "etcd"
    found = shutil.which("etcd")
    if found is None:
        raise Unavailable(f"no etcd on the PATH: apt-get install etcd-server; or {OTHER_WAYS}")
    return Path(found)


def _built(environ: Mapping[str, str]) -> Path:
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rebalancer-e2e"
    folder = cache / f"{release()}-{_digest()}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second run waits for the first instead of building beside it
        if not (folder / BUILT).exists():
            _build(folder)
        for name in PROGRAMS:
            if not (folder / name).exists():
                (folder / name).symlink_to(BUILT)
    return folder


def _digest() -> str:
    total = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        total.update((SOURCE / name).read_bytes())
    return total.hexdigest()[:12]


def _build(folder: Path) -> None:
    """Link the one binary. Another program's half of the machine is left to it: low priority, two compilers at a time."""
    go = shutil.which("go")
    if go is None:
        raise Unavailable(f"no Go compiler on the PATH to build the control plane with; or {OTHER_WAYS}")
    started, log = time.monotonic(), folder / "build.log"
    _say(f"building {', '.join(PROGRAMS)} {release()} into {folder} (20 to 45 minutes, once; log: {log})")
    target = folder / f"{BUILT}.{os.getpid()}"
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-p=2", f"-ldflags={_ldflags()}", "-o", str(target), "."]
    with log.open("wb") as output:
        status = subprocess.run(
            ["nice", *command], cwd=SOURCE, stdout=output, stderr=output, timeout=BUILD_TIMEOUT_S, check=False
        ).returncode
    if status:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = said[-1] if said else f"go build ended with status {status}"
        raise Unavailable(f"the control plane cannot be built ({why}; all of it: {log}); {OTHER_WAYS}")
    target.rename(folder / BUILT)
    _say(f"built in {time.monotonic() - started:.0f} s")


def _ldflags() -> str:
    version = release()
    major, minor, *_ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z"}
    return " ".join(("-s -w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())))


def _say(words: str) -> None:
    sys.stderr.write(f"e2e: {words}\n")
    sys.stderr.flush()


def main() -> int:
    if os.environ.get(CLUSTER):
        _say(f"the cluster of {CLUSTER}={os.environ[CLUSTER]}")
        return 0
    try:
        binaries = find()
    except Unavailable as error:
        _say(str(error))
        return 1 if os.environ.get(REQUIRED) == "1" else 0
    _say(f"{binaries.folder} {binaries.version} with {binaries.etcd}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
