"""A policy file that is edited while the service runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy.model import built_in_policy
from rebalancer.policy.reload import BuiltInPolicy, PolicyFile, Reload
from tests.policy.writing import policy_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(policy_text("interval: 1m"))
    return path


def test_a_broken_file_at_the_start_is_an_error(tmp_path: Path) -> None:
    """There is no last good policy to fall back on."""
    with pytest.raises(PolicyError):
        PolicyFile(tmp_path / "none.yaml")


def test_an_edit_comes_into_force(path: Path) -> None:
    """The next refresh reads the new file, and says so once."""
    policy = PolicyFile(path)
    path.write_text(policy_text("interval: 3m"))
    first, second = policy.refresh(), policy.refresh()
    assert policy.current().spec.interval == 180
    assert (first.outcome, second.outcome) == (Reload.CHANGED, Reload.UNCHANGED)


def test_an_untouched_file_is_unchanged(path: Path) -> None:
    """Rewriting the same text is no change, whatever the times of the file say."""
    policy = PolicyFile(path)
    os.utime(path, (1, 1))
    assert policy.refresh().outcome is Reload.UNCHANGED


@pytest.mark.parametrize("broken", ["", "spec: [", policy_text("modus: x"), "apiVersion: x\n"])
def test_a_broken_edit_keeps_the_last_good_policy(path: Path, broken: str) -> None:
    """The failure is handed over, and the service goes on as before."""
    policy = PolicyFile(path)
    path.write_text(broken)
    result = policy.refresh()
    assert result.outcome is Reload.FAILED
    assert isinstance(result.error, PolicyError)
    assert policy.current().spec.interval == 60


def test_a_failure_is_news_once(path: Path) -> None:
    """The same broken file fails at every refresh and is told once; another mistake is news again."""
    policy = PolicyFile(path)
    path.write_text("spec: [")
    first, again = policy.refresh(), policy.refresh()
    path.write_text("spec: {")
    other = policy.refresh()
    assert [(result.outcome, result.news) for result in (first, again, other)] == [
        (Reload.FAILED, True),
        (Reload.FAILED, False),
        (Reload.FAILED, True),
    ]


def test_a_deleted_file_keeps_the_last_good_policy_and_its_return_is_news(path: Path) -> None:
    """A ConfigMap that is replaced may be gone for a moment."""
    text = path.read_text()
    policy = PolicyFile(path)
    path.unlink()
    gone, still_gone = policy.refresh(), policy.refresh()
    path.write_text(text)
    back = policy.refresh()
    assert [(result.outcome, result.news) for result in (gone, still_gone, back)] == [
        (Reload.FAILED, True),
        (Reload.FAILED, False),
        (Reload.UNCHANGED, True),
    ]


def test_a_swapped_symbolic_link_is_a_change(tmp_path: Path) -> None:
    """Kubernetes updates a mounted ConfigMap by swapping the link that its files lie behind."""
    for name, interval in (("one", "1m"), ("two", "4m")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(policy_text(f"interval: {interval}"))
    data = tmp_path / "data"
    data.symlink_to(tmp_path / "one")
    policy = PolicyFile(data / "policy.yaml")
    (tmp_path / "next").symlink_to(tmp_path / "two")
    (tmp_path / "next").replace(data)
    assert policy.refresh().outcome is Reload.CHANGED
    assert policy.current().spec.interval == 240


def test_a_fault_in_judging_an_edit_does_not_end_the_service(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first good load, refresh never raises."""
    policy = PolicyFile(path)
    path.write_text(policy_text("interval: 3m"))

    def fail(text: str, *, origin: str) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("rebalancer.policy.reload.parse_policy", fail)
    assert policy.refresh().outcome is Reload.FAILED
    assert policy.current().spec.interval == 60


def test_without_a_file_the_built_in_policy_never_changes() -> None:
    """The safe defaults are in force."""
    source = BuiltInPolicy()
    assert source.refresh().outcome is Reload.UNCHANGED
    assert source.current() == built_in_policy()
