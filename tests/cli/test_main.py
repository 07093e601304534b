"""The frame: discovery, one sentence on stderr, exit status."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from rebalancer import __version__, errors
from rebalancer.cli.main import build_app, run

Captured = pytest.CaptureFixture[str]


def _app(failure: BaseException | None = None, status: int | None = None) -> typer.Typer:
    """The real application with one more command, which ends as it is told."""
    application = build_app()

    def probe() -> None:
        if failure is not None:
            raise failure
        if status is not None:
            raise typer.Exit(status)

    application.command("probe")(probe)
    return application


def _leaves(kind: type[errors.RebalancerError]) -> list[type[errors.RebalancerError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in _leaves(child))]


@pytest.mark.parametrize("kind", _leaves(errors.RebalancerError))
def test_every_error_ends_with_its_sentence_and_status(kind: type[errors.RebalancerError], capsys: Captured) -> None:
    """Message and remedy on stderr in one line, nothing on stdout, no traceback."""
    assert run(["probe"], application=_app(kind("the thing is broken", remedy="mend it"))) == kind.exit_status
    out, err = capsys.readouterr()
    assert (out, err) == ("", "Error: the thing is broken. Mend it.\n")


def test_an_unexpected_failure_is_one_sentence_with_a_hint(capsys: Captured) -> None:
    """A traceback is not for operators."""
    assert run(["probe"], application=_app(ValueError("odd\nthing"))) == 1
    _, err = capsys.readouterr()
    assert err == "Error: unexpected failure: ValueError: odd thing. Run it again with --debug for the traceback, and report that.\n"


@pytest.mark.parametrize("arguments", [["--debug", "probe"], ["probe", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(arguments: list[str], capsys: Captured) -> None:
    """People append it to the command that failed."""
    assert run(arguments, application=_app(ValueError("odd"))) == 1
    _, err = capsys.readouterr()
    assert "Traceback (most recent call last)" in err
    assert err.endswith("Error: unexpected failure: ValueError: odd.\n")


def test_an_interrupt_is_130(capsys: Captured) -> None:
    """As shells expect."""
    assert run(["probe"], application=_app(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "Error: interrupted.\n"


@pytest.mark.parametrize("status", [0, 1, 6])
def test_a_command_may_choose_its_status(status: int) -> None:
    """`plan --exit-code` ends with 1 and is no failure."""
    assert run(["probe"], application=_app(status=status)) == status


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["version", "--bogus"], "No such option: --bogus"),
        (["policy", "validate"], "Missing argument 'FILE'"),
    ],
)
def test_usage_errors_are_one_sentence_and_2(arguments: list[str], words: str, capsys: Captured) -> None:
    """With the command that helps."""
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Error: {words}")
    assert "--help'." in err
    assert err.count("\n") == 1


def test_an_error_cannot_command_the_terminal(capsys: Captured) -> None:
    """Messages carry foreign text."""
    run(["probe"], application=_app(errors.UsageError("pod \x1b[2J\x07x is odd")))
    assert capsys.readouterr().err == "Error: pod x is odd.\n"


def test_version_is_printed_in_both_ways(capsys: Captured) -> None:
    """As a command, with the libraries, and as a flag."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rebalancer {__version__}\n"
    assert run(["version"]) == 0
    assert "numpy" in capsys.readouterr().out


def test_no_command_shows_the_help(capsys: Captured) -> None:
    """On stdout, with status 0."""
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert "policy" in out
    assert err == ""


def test_a_group_without_a_command_shows_its_help(capsys: Captured) -> None:
    """The help is the answer; no error line besides."""
    run(["policy"])
    out, err = capsys.readouterr()
    assert "validate" in out + err
    assert "Error" not in err


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_python_m_rebalancer_is_the_command() -> None:
    """The package runs without its scripts."""
    done = _python("-m", "rebalancer", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rebalancer {__version__}\n", "")


def test_kubectl_plugin_names_itself_as_kubectl_does() -> None:
    """`kubectl rebalancer plan`, not `kubectl-rebalancer plan`."""
    code = "import sys; sys.argv = ['/usr/bin/kubectl-rebalancer', 'nonsense']; from rebalancer.cli.main import main; main()"
    done = _python("-c", code)
    assert done.returncode == 2
    assert "See 'kubectl rebalancer --help'." in done.stderr


def test_a_closed_pipe_is_quiet() -> None:
    """`rebalancer policy schema | head -0` leaves no traceback."""
    reader = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
    assert reader.stdin is not None
    with reader.stdin as pipe:
        reader.wait(timeout=60)
        done = subprocess.run(
            [sys.executable, "-m", "rebalancer", "policy", "schema"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")
