"""`rebalancer cleanup`: take everything of ours that steers or marks off the cluster."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, PolicyFile, SettingsFile
from rebalancer.cli.output import print_text
from rebalancer.cli.progress import showing


def register(app: typer.Typer) -> None:
    app.command("cleanup")(cleanup)


Everywhere = Annotated[bool, typer.Option("--all", help="Also from nodes that no pool of the policy claims, and their pods.")]


def cleanup(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    everywhere: Everywhere = False,
) -> None:
    """Remove our soft taints and load annotations from the nodes of the policy's pools and our marks from their pods, and open our gates.

    Whoever left them there. Without a policy these are all nodes; with --all the scheduling gates of every controller are opened.
    """
    from rebalancer.act.ungating import remove_hints
    from rebalancer.deadline import Deadline
    from rebalancer.policy.model import Mode
    from rebalancer.runtime.session import actuators, kubernetes_client, node_annotator
    from rebalancer.steer.hinting import owner_label

    session = opened(kubeconfig=kubeconfig, context=context, settings=settings, policy=policy)
    pools = None if everywhere else session.orders.policy.spec.pools
    deadline = Deadline.after(session.settings.cycle_timeout)
    with kubernetes_client(session) as client, node_annotator(session) as annotator, showing(f"cleaning up at {client.server}"):
        acts = actuators(client, events=False, instance=socket.gethostname())
        lease, namespace = session.settings.leader_election.lease_name, session.settings.namespace
        # First what waits: a pod at a gate does not run.
        gates = remove_hints(
            client,
            namespace=namespace,
            announcement=lease,
            owner="" if everywhere else owner_label(namespace=namespace, lease=lease),
            deadline=deadline,
        )
        marks = [note for mode in (Mode.EVICT, Mode.ANNOTATE) for note in acts[mode].clean_up(deadline=deadline, pools=pools)]
        notes = [*gates, *marks, *annotator.clean_up(deadline=deadline, pools=pools)]
    for note in notes:
        print_text(note)
    if not notes:
        print_text("nothing of ours was there")
