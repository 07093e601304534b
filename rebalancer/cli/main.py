"""The frame of all commands: finds them, parses, and turns whatever happens into a sentence and an exit status.

Exit status: 0 balanced or done, 1 moves proposed (only `plan --exit-code`) or an unexpected failure, 2 usage, 3 policy or settings,
4 Kubernetes, 5 metrics, 6 partly carried out, 130 interrupted. Raised errors carry theirs; commands give others with ``typer.Exit``.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from rebalancer.cli.errors import INTERRUPTED_STATUS, report
from rebalancer.cli.output import CLOSED_PIPE_STATUS, abandon_stdout, print_text
from rebalancer.cli.version import version_line

_DEBUG = "--debug"


def build_app() -> typer.Typer:
    """A fresh application with every command of this package."""
    application = typer.Typer(
        name="rebalancer",
        help="Moves the few pods whose move makes the cluster measurably better, by what they really use.",
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    application.callback(invoke_without_command=True)(_frame)
    for module in _command_modules():
        module.register(application)
    return application


def _command_modules() -> Iterator[ModuleType]:
    package = importlib.import_module(__package__ or "rebalancer.cli")
    for module_info in pkgutil.iter_modules(package.__path__):
        if f"{package.__name__}.{module_info.name}" == __name__:
            continue
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        if hasattr(module, "register"):
            yield module


def _frame(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Print a traceback when a command fails; may stand anywhere.")] = False,
) -> None:
    if version:
        print_text(version_line())
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_text(context.get_help())
        raise typer.Exit


app = build_app()


def main() -> NoReturn:
    """Entry of the scripts `rebalancer` and `kubectl-rebalancer`."""
    program = Path(sys.argv[0]).name
    sys.exit(run(sys.argv[1:], program="kubectl rebalancer" if program.startswith("kubectl-") else "rebalancer"))


def run(arguments: Sequence[str], *, program: str = "rebalancer", application: typer.Typer | None = None) -> int:
    """Run one command line and return its exit status; nothing escapes but what Python itself cannot survive."""
    arguments, debug = _take_debug(arguments)
    try:
        result = get_command(application or app).main(args=arguments, prog_name=program, standalone_mode=False)
    except SystemExit as exit_:
        return _flushed(exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1)
    except (Exception, KeyboardInterrupt) as error:
        return _flushed(report(error, debug=debug))
    if result == INTERRUPTED_STATUS:  # the library turns Ctrl-C into a bare status, without a word
        return _flushed(report(KeyboardInterrupt(), debug=debug))
    return _flushed(result if isinstance(result, int) else 0)


def _take_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """``--debug`` counts wherever it stands before ``--``, since it is what people append to a command that failed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head = [argument for argument in arguments[:end] if argument != _DEBUG]
    return [*head, *arguments[end:]], len(head) < end


def _flushed(status: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return CLOSED_PIPE_STATUS
    except OSError:
        abandon_stdout()
        return status or 1
    return status
