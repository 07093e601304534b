"""Several processes bind the same pods to the same nodes at the same time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from tests.gpushare.kit import EACH
from tests.gpushare.live import held_on, scene

PROCESSES = 3


def test_processes_that_contend_fill_devices_and_never_over_fill_them(tmp_path: Path) -> None:
    """Each tries every pod on every node; what is left fits nowhere. The sums are taken at every change of a pod."""
    with scene(tmp_path) as stage:
        chance = random.Random(11)
        pods = [stage.pod(f"p{i}", chance.choice([1000, 2500, 4069, 8138, EACH])) for i in range(30)]
        names = [f"{pod['metadata']['name']}/{pod['metadata']['uid']}" for pod in pods]
        command = [sys.executable, "-m", "tests.gpushare.contender", str(stage.kubeconfig)]
        running = [subprocess.Popen([*command, str(seed), "n1,n2", *names], stdout=subprocess.PIPE) for seed in range(PROCESSES)]
        ends = [json.loads(process.communicate(timeout=120)[0].splitlines()[-1]) for process in running]
        assert [process.returncode for process in running] == [0] * PROCESSES
        assert stage.auditor.over == []
        assert stage.auditor.changes > len(pods)
        held = held_on(stage.world)
        room = max(EACH - held.get((node, device), 0) for node in ("n1", "n2") for device in "01")
        waiting = [pod for pod in pods if not stage.get(pod["metadata"]["name"])["spec"].get("nodeName")]
        asks = [int(pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"]) for pod in waiting]
        assert all(ask > room for ask in asks), (asks, room)
        assert all(end.get("200", 0) > 0 for end in ends)
