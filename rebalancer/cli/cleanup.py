"""`rebalancer cleanup`: take everything of ours that steers or marks off the cluster."""

from __future__ import annotations

import socket

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, SettingsFile
from rebalancer.cli.output import print_text
from rebalancer.cli.progress import showing


def register(app: typer.Typer) -> None:
    app.command("cleanup")(cleanup)


def cleanup(kubeconfig: Kubeconfig = None, context: Context = None, settings: SettingsFile = None) -> None:
    """Remove our soft taints from all nodes and our marks from all pods, whoever left them there."""
    from rebalancer.deadline import Deadline
    from rebalancer.policy.model import Mode
    from rebalancer.runtime.session import actuators, kubernetes_client

    session = opened(kubeconfig=kubeconfig, context=context, settings=settings)
    deadline = Deadline.after(session.settings.cycle_timeout)
    with kubernetes_client(session) as client, showing(f"cleaning up at {client.server}"):
        acts = actuators(client, events=False, instance=socket.gethostname())
        notes = [note for mode in (Mode.EVICT, Mode.ANNOTATE) for note in acts[mode].clean_up(deadline=deadline)]
    for note in notes:
        print_text(note)
    if not notes:
        print_text("nothing of ours was there")
