"""`rebalancer policy`: is the file right, what would it do, what may be written in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer.cli.errors import warn
from rebalancer.cli.options import ModeChoice
from rebalancer.cli.output import print_text
from rebalancer.policy.model import Mode, Pool, RebalancePolicy, Spec
from rebalancer.units import format_duration

if TYPE_CHECKING:
    from rebalancer.runtime.rights import Role

_MEANS = {
    Mode.DRY_RUN: "mode dry-run (nothing is written)",
    Mode.ANNOTATE: "mode annotate (pods are marked, none is moved)",
    Mode.EVICT: "mode evict (pods are evicted)",
}
OwnNamespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the controller.")]
LeaseName = Annotated[str, typer.Option("--lease", help="Name of its Lease (leader_election.lease_name).")]
StateName = Annotated[str | None, typer.Option("--state", help="Name of its ConfigMap (state_name); else that of the Lease with -state.")]
Account = Annotated[
    str | None,
    typer.Option("--account", help="Its service account, and the prefix of the roles' names; default: rebalancer, or rebalancer-extender."),
]
ForExtender = Annotated[bool, typer.Option("--extender", help="Those of `rebalancer extender` instead.")]
ForSharing = Annotated[bool, typer.Option("--gpushare", help="With --extender: also those of the gpushare verbs, which bind pods.")]
PolicyArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The policy file.", show_default=False)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Check policy files and print their schema.", no_args_is_help=True)
    group.command("validate")(validate)
    group.command("schema")(schema)
    group.command("rbac")(rbac)
    group.command("rules")(rules)
    group.command("hints")(hints)
    app.add_typer(group, name="policy")


def validate(file: PolicyArgument) -> None:
    """Check a policy file, say in one line what it would do, and warn of what may surprise."""
    from rebalancer.errors import PolicyError
    from rebalancer.policy.loader import load_policy
    from rebalancer.policy.timing import judge_timing

    try:
        policy = load_policy(file)
    except PolicyError as error:
        for mistake in error.mistakes[1:]:
            warn(f"also {mistake}")
        raise
    print_text(summary(policy, origin=str(file)))
    for fault in judge_timing(policy.spec).warnings:
        warn(str(fault))


def schema() -> None:
    """Print the JSON Schema of policy files."""
    from rebalancer.policy.schema import policy_schema, schema_text

    print_text(schema_text(policy_schema()).rstrip("\n"))


def summary(policy: RebalancePolicy, *, origin: str) -> str:
    """One line: mode, pools with their signals, the first possible action, the limit."""
    from rebalancer.policy.timing import judge_timing

    spec = policy.spec
    timing = judge_timing(spec)
    first = (
        f"a node that stays hot is acted on after {format_duration(timing.earliest_action_s)} at the earliest "
        f"and {format_duration(timing.latest_action_s)} at the latest"
    )
    return f"OK: {origin}: policy {policy.metadata.name}, {_MEANS[spec.mode]}; {'; '.join(_pools(spec))}; {first}; {_limits(spec)}"


def _pools(spec: Spec) -> Iterator[str]:
    for pool in spec.pools:
        yield f"pool {pool.name} is hot over {_marks(pool)}"


def _marks(pool: Pool) -> str:
    if pool.thresholds == "deviation":
        return " or ".join(f"{name} mean + {marks.high:g} points" for name, marks in pool.signals.items())
    return " or ".join(f"{name} {marks.high:g} %" for name, marks in pool.signals.items())


def _limits(spec: Spec) -> str:
    budgets = spec.budgets
    return f"at most {budgets.total} evictions in {format_duration(budgets.window)}, {budgets.per_node} from one node"


def rbac(
    file: PolicyArgument,
    mode: ModeChoice = None,
    namespace: OwnNamespace = "rebalancer",
    account: Account = None,
    lease: LeaseName = "rebalancer",
    state: StateName = None,
    extender: ForExtender = False,
    gpushare: ForSharing = False,
) -> None:
    """Print the roles and bindings that a policy needs, and nothing more, as YAML for kubectl."""
    from rebalancer.errors import UsageError
    from rebalancer.policy.loader import load_policy
    from rebalancer.runtime.rights import extender_roles, gpushare_roles, roles_for

    if gpushare and not extender:
        raise UsageError("--gpushare is for the rights of the extender", remedy="give --extender too")
    policy, memory = load_policy(file), state or f"{lease}-state"
    if extender:
        roles = extender_roles(namespace=namespace, memory=memory) + (gpushare_roles(namespace=namespace) if gpushare else ())
    else:
        roles = roles_for(policy.spec, mode or policy.spec.mode, namespace=namespace, lease=lease, memory=memory)
    _print_roles(roles, namespace=namespace, account=account or ("rebalancer-extender" if extender else "rebalancer"))


def _print_roles(roles: Sequence[Role], *, namespace: str, account: str) -> None:
    import yaml

    documents: list[dict[str, object]] = []
    for role in roles:
        group, kind = "rbac.authorization.k8s.io", "Role" if role.namespaced else "ClusterRole"
        name = f"{account}-{role.name}"
        metadata = {"name": name, "namespace": role.elsewhere or namespace} if role.namespaced else {"name": name}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        documents += [
            {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "rules": role.rules()},
            {
                "apiVersion": f"{group}/v1",
                "kind": f"{kind}Binding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": group, "kind": kind, "name": name},
                "subjects": [subject],
            },
        ]
    print_text(yaml.safe_dump_all(documents, sort_keys=False).rstrip("\n"))


def hints(namespace: OwnNamespace = "rebalancer", account: Account = "rebalancer", lease: LeaseName = "rebalancer") -> None:
    """Print what is to be installed for placement hints (steering.hints): a kind and an admission policy, as YAML for kubectl."""
    import yaml

    from rebalancer.steer.hint_policy import announcement_kind, hint_policy
    from rebalancer.steer.hinting import owner_label

    label = owner_label(namespace=namespace, lease=lease)
    documents = [announcement_kind(), *hint_policy(name=f"{account}-hints", namespace=namespace, announcement=lease, owner=label)]
    print_text(yaml.safe_dump_all(documents, sort_keys=False, width=1000).rstrip("\n"))


def rules(file: PolicyArgument) -> None:
    """Print the recording rules for Prometheus that turn the built-in queries of a policy into look-ups, as YAML."""
    from rebalancer.collect.recording import rules_text
    from rebalancer.collect.signal_plan import forced_label
    from rebalancer.policy.loader import load_policy

    spec = load_policy(file).spec
    print_text(rules_text(spec, node_label=forced_label(spec)).rstrip("\n"))
