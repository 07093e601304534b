"""Data on stdout: colour, width, files."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from rebalancer.cli.output import page_width, print_document, save, wants_color
from rebalancer.errors import RebalancerError, UsageError
from rebalancer.report.registry import Format
from tests.report import samples


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("stream", "environ", "no_color", "expected"),
    [
        (Terminal(), {}, False, True),
        (io.StringIO(), {}, False, False),
        (Terminal(), {"NO_COLOR": "1"}, False, False),
        (Terminal(), {"NO_COLOR": ""}, False, True),
        (Terminal(), {}, True, False),
        (Terminal(), {"TERM": "dumb"}, False, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, False, True),
        (Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_follows_the_common_rules(stream: io.StringIO, environ: dict[str, str], no_color: bool, expected: bool) -> None:
    """Flag, NO_COLOR, FORCE_COLOR, terminal, in this order."""
    assert wants_color(stream, no_color=no_color, environ=environ) is expected


@pytest.mark.parametrize(("columns", "width"), [("", 100), ("132", 132), ("0", 100), ("wide", 100)])
def test_piped_output_is_a_hundred_wide_or_as_told(columns: str, width: int) -> None:
    """COLUMNS counts where it is a number."""
    assert page_width(io.StringIO(), environ={"COLUMNS": columns}) == width


def test_a_document_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing to stderr."""
    print_document(samples.plan(), Format.JSON)
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "Plan"
    assert err == ""


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost output is a failure with a reason."""
    monkeypatch.setattr(sys, "stdout", FullDisk())
    with pytest.raises(RebalancerError, match="cannot write to standard output: No space left on device"):
        print_document(samples.plan(), Format.JSON)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """The old content or the new, never a part, and no left-overs."""
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    save(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["plan.json"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0o044 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_missing_directory_is_a_usage_error(tmp_path: Path) -> None:
    """The sentence names the file."""
    with pytest.raises(UsageError, match=r"cannot write .*nowhere/plan\.json: No such file or directory"):
        save(tmp_path / "nowhere" / "plan.json", b"")
