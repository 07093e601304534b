"""A process that binds: the service over a kubeconfig, and requests for pods from its arguments, as fast as they are answered.

python -m tests.gpushare.contender KUBECONFIG SEED NODE,NODE POD/UID...
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from rebalancer.kube.client import KubeClient
from rebalancer.runtime.gpushare.service import GpuShareService
from tests.gpushare.live import QUICK


def main() -> None:
    kubeconfig, seed, nodes, *pods = sys.argv[1:]
    chance = random.Random(int(seed))
    client = KubeClient.connect(kubeconfig=Path(kubeconfig), context=None)
    ends: dict[str, int] = {}
    with GpuShareService(client, namespace="rebalancer", now=time.time, timing=QUICK) as service:
        assert service.wait_ready(20)
        for pod in chance.sample(pods, len(pods)):
            name, _, uid = pod.partition("/")
            for node in chance.sample(nodes.split(","), len(nodes.split(","))):
                body = {"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": node}
                answer = service.bind(json.dumps(body).encode())
                ends[str(answer.status)] = ends.get(str(answer.status), 0) + 1
                if answer.status == 200:
                    break
    client.close()
    sys.stdout.write(json.dumps(ends))


if __name__ == "__main__":
    main()
