"""What is wrong with a tenants file beyond its form."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalancer.cli.main import run
from rebalancer.detect.tenants.checking import check_tenants
from rebalancer.policy.tenants_loader import load_tenants, parse_tenants
from rebalancer.state.cluster import ClusterState
from rebalancer.state.snapshot import dump_snapshot
from tests.support.builder import cluster, node, pod
from tests.support.gpus import gpu

HEAD = "apiVersion: rebalancer.dev/v1alpha1\nkind: TenantQuotas\nspec:\n  tenants:\n"


def _lab() -> ClusterState:
    """Sixteen cores, one A100, pods of vision and speech."""
    nodes = [node("n1", cpu=8, gpus=[gpu("40Gi", model="A100")]), node("n2", cpu=8)]
    return cluster(nodes=nodes, pods=[pod("v", on="n1", namespace="vision", cpu=1), pod("s", on="n2", namespace="speech", cpu=1)])


def _mistakes(tenants: str, state: ClusterState | None = None) -> list[str]:
    spec = parse_tenants(HEAD + tenants, origin="t").spec
    return [f"{each.message}: {each.remedy}" for each in check_tenants(spec, state).mistakes]


def test_a_file_that_fits_has_no_mistakes() -> None:
    """Guarantees up to all there is are fine."""
    tenants = "  - {name: a, guaranteed: {cpu: 50%, gpu/A100: 1}, members: [{namespaces: [vision]}]}\n"
    assert _mistakes(f"{tenants}  - {{name: b, guaranteed: {{cpu: 8}}, members: [{{namespaces: [speech]}}]}}\n", _lab()) == []


@pytest.mark.parametrize(
    ("tenants", "told"),
    [
        (
            "  - {name: a, guaranteed: {cpu: 17}, members: [{namespaces: [vision]}]}\n",
            "17 cpu are guaranteed in all, and the cluster has 16",
        ),
        ("  - {name: a, guaranteed: {gpu/A10O: 1}, members: [{namespaces: [vision]}]}\n", "of model A10O: did you mean gpu/A100?"),
        ("  - {name: a, limit: {example.com/fpga: 1}, members: [{namespaces: [vision]}]}\n", "no node has the resource example.com/fpga"),
        ("  - {name: a, members: [{namespaces: [vison]}]}\n", "no namespace is called vison: did you mean vision?"),
        ("  - {name: a, members: [{namespaces: [visio*]}]}\n  - {name: b, members: [{namespaces: [vision]}]}\n", "is claimed by a and b"),
    ],
)
def test_what_a_cluster_shows(tenants: str, told: str) -> None:
    """More than there is, names that nothing bears, pods of two tenants."""
    assert any(told in each for each in _mistakes(tenants, _lab()))


def test_what_the_file_shows_by_itself() -> None:
    """Shares over 100 % in all, one namespace twice, more below a tenant than it has, if only at night."""
    night = "windows: [{from: '20:00', to: '06:00', guaranteed: {cpu: 7}}]"
    tenants = (
        f"  - {{name: d, guaranteed: {{cpu: 6, memory: 60%}}, tenants: [{{name: a, {night}, members: [{{namespaces: [x]}}]}}]}}\n"
        "  - {name: b, guaranteed: {memory: 50%}, members: [{namespaces: [x]}]}\n"
    )
    assert _mistakes(tenants) == [
        "namespace x is claimed by a and by b: leave it to one of them",
        "7 cpu are guaranteed to those below d, which is guaranteed 6: raise what d has, or lower what they have",
        "110% of memory are guaranteed in all: share out at most 100%",
    ]


def test_guarantees_that_nobody_holds_and_tenants_without_members_are_warnings() -> None:
    """They may be meant."""
    spec = parse_tenants(f"{HEAD}  - {{name: d, tenants: [{{name: a, guaranteed: {{cpu: 1}}}}]}}\n", origin="t").spec
    told = [each.message for each in check_tenants(spec).warnings]
    assert told == [
        "a is guaranteed cpu, and d above it is not, so the guarantee may not hold",
        "a has no members, so no pod is its own",
    ]


def test_the_example_has_nothing_to_warn_of() -> None:
    """What we hand out is right."""
    found = check_tenants(load_tenants(Path(__file__).parents[2] / "config" / "tenants.yaml").spec)
    assert (found.mistakes, found.warnings) == ((), ())


def test_the_command_tells_line_and_nearest_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 3 with the line; an empty file is said to mean nobody."""
    file, snapshot = tmp_path / "tenants.yaml", tmp_path / "state"
    file.write_text(f"{HEAD}  - name: a\n    members:\n    - namespaces: [vison]\n", encoding="utf-8")
    snapshot.write_bytes(dump_snapshot(_lab()))
    assert run(["tenants", "validate", str(file)]) == 0
    assert run(["tenants", "validate", str(file), "--snapshot", str(snapshot)]) == 3
    assert "line 7, spec.tenants[0].members[0].namespaces[0]: no namespace is called vison" in capsys.readouterr().err
    file.write_text("", encoding="utf-8")
    assert run(["tenants", "validate", str(file)]) == 0
    assert "nobody is evicted for a quota" in capsys.readouterr().out
