"""`rebalancer extender` beside a kube-scheduler that asks it: with the rights of `policy rbac --extender` and no others."""

from __future__ import annotations

import contextlib
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.e2e.api import Api, Json, Refused, until
from tests.e2e.ground import Ground
from tests.e2e.plane import Plane, account_kubeconfig
from tests.e2e.test_rights import create, remove
from tests.support.embedded import Process

ACCOUNT = "rebalancer-extender"
READY_S = 60.0


def configured(address: str) -> Json:
    """As docs/steering.md says, with a longer timeout for a machine that does much else."""
    return {
        "urlPrefix": f"http://{address}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "httpTimeout": "1s",
        "nodeCacheCapable": True,
        "ignorable": True,
    }


def sharing(address: str) -> Json:
    """The entry for shared GPUs, as docs/steering.md says."""
    return {
        "urlPrefix": f"http://{address}/gpushare-scheduler",
        "filterVerb": "filter",
        "bindVerb": "bind",
        "httpTimeout": "5s",
        "nodeCacheCapable": True,
        "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}],
        "ignorable": False,
    }


@contextlib.contextmanager
def extender(
    own: Ground, *, policy: Path, namespace: str, reservation_s: float = 60.0, shared: bool = False, address: str = ""
) -> Iterator[Process]:
    """Both run within the block. ``namespace``: of the controller's state, and of the extender's account. ``shared``: with the verbs for
    shared GPUs, and with kube-scheduler asking for these alone. ``address``: where it listens, else anywhere."""
    assert isinstance(own.plane, Plane), "the scheduler of a borrowed cluster is not ours to configure"
    wanted = ["--extender", *(["--gpushare"] if shared else [])]
    roles: list[Json] = list(yaml.safe_load_all(own.run("policy", "rbac", policy, *wanted, "-n", namespace).ended(0).out))
    own.api.create("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}})
    create(own, roles)
    address = address or free_address()
    try:
        kubeconfig = account_kubeconfig(own.plane, namespace, ACCOUNT)
        until(lambda: _may_list_nodes(kubeconfig), "the roles are in force", seconds=READY_S)
        env = {
            "KUBECONFIG": str(kubeconfig),
            "REBALANCER_NAMESPACE": namespace,
            "REBALANCER_EXTENDER__RESERVATION": f"{reservation_s:g}s",
            "REBALANCER_EXTENDER__GPUSHARE__ENABLED": str(shared).lower(),
        }
        with own.process("extender", "--policy", policy, "--listen", address, env=env) as process:
            until(lambda: _answers(f"http://{address}/readyz"), "the extender is ready", seconds=READY_S)
            with own.plane.extended(sharing(address) if shared else configured(address)):
                yield process
            assert process.terminate() == 0, process.err.read_text(encoding="utf-8")[-3000:]
            # A binding that comes too late for its room is refused, and is tried again; that is no trouble.
            assert [line for line in trouble(process) if not (shared and "was not bound" in line)] == []
    finally:
        remove(own, roles)


def trouble(process: Process) -> list[str]:
    """Its warnings and errors; a right that is missing is one."""
    return [str(line) for line in process.logs if line.get("level") in ("warning", "error", "critical")]


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _may_list_nodes(kubeconfig: Path) -> bool:
    account = Api(kubeconfig)
    try:
        account.list("nodes")
    except Refused as error:
        if error.status != 403:
            raise
        return False
    finally:
        account.close()
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
