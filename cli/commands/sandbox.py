"""Command that executes a program in the sandbox, or says what the sandbox can do on this machine."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import app
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.sandbox import Execution, Program

_NOT_PASSED, _SANDBOX_ERROR = 1, 3


@app.command()
def sandbox(
    file: Annotated[
        Path | None, typer.Argument(help="The program; - for standard input. Without: the levels that work here.")
    ] = None,
    tests: Annotated[Path | None, typer.Option(help="Checks, statements with assert; without, does it run?")] = None,
    level: Annotated[str | None, typer.Option(help="full or rlimit; the best one without.")] = None,
) -> None:
    """Execute a program and its checks as a benchmark does, or see what this machine offers.

    Status 0: passed, or programs of real models can be run here. 1: not. 2: nothing was executed. 3: the sandbox
    failed, which says nothing of the program. The checks are trusted: they decide what passes.
    """
    from cli.trajectory_printer import visible
    from harness.sandbox import Outcome, Program
    from harness.sandbox.pool import LEVELS, refusal

    if file is None:
        for name in LEVELS:
            reason = refusal(name)
            typer.echo(f"{name:<10}{'does not work: ' + visible(reason) if reason else 'works'}")
        raise typer.Exit(_NOT_PASSED if refusal(LEVELS[0]) else 0)
    program = Program(source=_source(file), checks=_checks(tests) if tests else "")
    execution, used = signals.run(_execute(program, level))
    lines = {"outcome": execution.outcome, "detail": execution.detail, "level": used}
    typer.echo("\n".join(f"{name:<10}{visible(text)}" for name, text in lines.items() if text))
    if execution.outcome is not Outcome.PASSED:
        raise typer.Exit(_SANDBOX_ERROR if execution.outcome is Outcome.SANDBOX_ERROR else _NOT_PASSED)


async def _execute(program: Program, level: str | None) -> tuple[Execution, str]:
    from harness.sandbox import Sandbox

    async with Sandbox(workers=1, level=level) as box:
        return await box.run(program), box.level


def _source(path: Path) -> str:
    try:
        content = typer.get_binary_stream("stdin").read() if str(path) == "-" else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; expected a file with Python source") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text (byte {error.start} is not UTF-8); expected Python source") from error


def _checks(path: Path) -> str:
    """Return the trusted checks; UserError for a syntax error in them, which is no outcome of the program."""
    source = _source(path)
    try:
        ast.parse(source, path.name)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path} has to be Python that parses by itself: {error}") from error
    return source
