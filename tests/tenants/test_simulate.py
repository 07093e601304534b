"""What another tenants file would change, before it is in force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebalancer.cli.main import run
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.policy.tenants import NO_TENANTS, TenantQuotas
from rebalancer.policy.tenants_loader import parse_tenants
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.report.tenants_change import TenantsChangeReport
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.other_tenants import under_other_tenants
from rebalancer.state.snapshot import dump_snapshot
from tests.tenants.test_reclaim import SPEC, runs, town, waits

HEAD = "apiVersion: rebalancer.dev/v1alpha1\nkind: TenantQuotas\nmetadata: {name: NAME}\nspec:\n  tenants:\n"
VISION = "  - {name: vision, guaranteed: {cpu: 4}, members: [{namespaces: [vision]}]}\n"
SPEECH = "  - {name: speech, guaranteed: {cpu: 4}, members: [{namespaces: [speech]}]}\n"
STATE = town(*(runs(f"v{number}", "vision") for number in range(4)), waits("w", "speech"))


def quotas(*tenants: str, name: str = "new") -> TenantQuotas:
    return parse_tenants(HEAD.replace("NAME", name) + "".join(tenants), origin="t")


def change(present: TenantQuotas, other: TenantQuotas) -> TenantsChangeReport:
    orders = Orders(policy=RebalancePolicy(spec=SPEC), mode=Mode.DRY_RUN, mode_source="test")
    return under_other_tenants(STATE, Memory(), orders, present=present, other=other)


def test_a_new_tenant_gets_its_guarantee_and_the_others_share_shrinks() -> None:
    """Vision holds all eight cores; speech waits for two of the four that it would be guaranteed."""
    report = change(quotas(VISION, name="old"), quotas(VISION, SPEECH))
    assert (report.before, report.after, report.come, report.gone) == ("old", "new", ("speech",), ())
    of = {(each.tenant, each.resource): each for each in report.changes}
    vision, speech = of["vision", "cpu"], of["speech", "cpu"]
    assert (vision.entitled.before, vision.entitled.after) == (8.0, 6.0)
    assert (speech.guaranteed.before, speech.guaranteed.after, speech.entitled.after) == (None, 4.0, 2.0)
    assert [(move.tenant, move.makes_room_for and move.makes_room_for.name) for move in report.moves] == [("vision", "w")]


def test_the_same_file_changes_nothing() -> None:
    """And the file in force may itself have something to give back."""
    report = change(quotas(VISION, SPEECH, name="old"), quotas(VISION, SPEECH))
    assert (report.changes, report.come, report.gone) == ((), (), ())
    assert len(report.moves) == 1


def test_a_tenant_that_goes_is_told_and_nothing_is_reclaimed_without_tenants() -> None:
    report = change(quotas(VISION, name="old"), NO_TENANTS)
    assert (report.gone, report.moves) == (("vision",), ())
    assert (report.unclaimed_pods.before, report.unclaimed_pods.after) == (0, 4)
    assert any(each.tenant == "vision" and each.guaranteed.after is None for each in report.changes)


SALES = "  - {name: sales, guaranteed: {cpu: 1}, members: [{namespaces: [sales]}]}\n"


def test_nothing_guaranteed_is_another_thing_than_not_to_be_there() -> None:
    """A tenant that comes is told with all resources; the table leaves out what is 0 throughout."""
    report = change(quotas(VISION, name="old"), quotas(VISION, SALES))
    memory = next(each for each in report.changes if (each.tenant, each.resource) == ("sales", "memory"))
    assert (memory.guaranteed.before, memory.guaranteed.after) == (None, 0.0)
    table = render(report, Format.TABLE, Page(width=140))
    assert "sales" in table
    assert "memory" not in table


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    """The present file, the new one, and a snapshot."""
    old, new, snapshot = tmp_path / "old.yaml", tmp_path / "new.yaml", tmp_path / "state"
    old.write_text(HEAD.replace("NAME", "old") + VISION, encoding="utf-8")
    new.write_text(HEAD.replace("NAME", "new") + VISION + SPEECH, encoding="utf-8")
    snapshot.write_bytes(dump_snapshot(STATE))
    return str(old), str(new), str(snapshot)


def test_the_command_shows_shares_before_and_after(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    old, new, snapshot = files
    assert run(["tenants", "simulate", new, "--tenants", old, "--snapshot", snapshot, "--no-color"]) == 0
    shown = capsys.readouterr().out
    assert "new instead of old" in shown
    assert "8.00 → 6.00" in shown
    assert "speech" in shown


@pytest.mark.parametrize("form", ["json", "csv", "html"])
def test_the_command_has_documents(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], form: str) -> None:
    old, new, snapshot = files
    assert run(["tenants", "simulate", new, "--tenants", old, "--snapshot", snapshot, "-o", form]) == 0
    shown = capsys.readouterr().out
    assert "speech" in shown
    if form == "json":
        assert json.loads(shown)["kind"] == "TenantsChangeReport"


def test_a_file_with_a_mistake_is_refused(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    old, new, snapshot = files
    Path(new).write_text("kind: TenantQuotas\n", encoding="utf-8")
    assert run(["tenants", "simulate", new, "--tenants", old, "--snapshot", snapshot]) == 3
    assert new in capsys.readouterr().err
