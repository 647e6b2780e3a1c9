"""Programs in the sandbox by hand, and what the sandbox can do on this machine."""

from __future__ import annotations

import ast
import os
import platform
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UserError
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from workflow import signals
from workflow.app import app

_STANDARD_INPUT = "-"
_NOT_PASSED, _SANDBOX_ERROR = 1, 3
_USUAL = Limits()

sandbox = typer.Typer(no_args_is_help=True, help="Execute a program in the sandbox, or see what this machine offers.")
app.add_typer(sandbox, name="sandbox")


@sandbox.command()
def run(
    file: Annotated[Path, typer.Argument(help="The program; - for standard input.", show_default=False)],
    tests: Annotated[
        Path | None, typer.Option(help="Checks, statements with assert; without, does it run?", show_default=False)
    ] = None,
    setup: Annotated[
        Path | None, typer.Option(help="What runs before the program, and before the checks.", show_default=False)
    ] = None,
    entry_point: Annotated[
        str, typer.Option(help="The function that the checks are about; never a built-in of that name.")
    ] = "",
    level: Annotated[str | None, typer.Option(help="The best one without (gmr sandbox doctor).")] = None,
    cpu: Annotated[int, typer.Option(metavar="S", help="Processor time.")] = _USUAL.cpu_s,
    wall: Annotated[float, typer.Option(metavar="S", help="Time by the clock.")] = _USUAL.wall_s,
    memory: Annotated[int, typer.Option(metavar="MIB", help="Address space.")] = _USUAL.memory_mib,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Execute a program and its checks as a benchmark does.

    Status 0: passed. 1: not passed. 2: nothing was executed. 3: the sandbox failed, which says nothing of the program.
    The checks are trusted: they decide what passes.
    """
    if entry_point and tests is None:
        raise UserError("--entry-point names the function that the checks are about; give --tests too")
    from workflow.sandbox_text import outcome, to_json

    program = Program(
        source=_text(file),
        setup=_statements(setup) if setup else "",
        checks=_statements(tests) if tests else "",
        entry_point=entry_point,
    )
    limits = Limits(cpu_s=cpu, wall_s=wall, memory_mib=memory)
    execution, used = signals.run(_executed(program, limits, level))
    typer.echo(to_json(execution, used, limits) if as_json else outcome(execution, used))
    if execution.outcome is not Outcome.PASSED:
        raise typer.Exit(_SANDBOX_ERROR if execution.outcome is Outcome.SANDBOX_ERROR else _NOT_PASSED)


@sandbox.command()
def doctor() -> None:
    """Show which levels of the sandbox work here, what they hold back, and how to get a better one.

    Status 0: programs of real models can be run. 1: those of simulated backbones at most.
    """
    from harness.sandbox import machine
    from harness.sandbox.levels import LEVELS, probe
    from workflow.sandbox_text import Findings, diagnosis

    tried = {level: probe(level) for level in LEVELS}
    best = next((level for level, execution in tried.items() if execution.outcome is Outcome.PASSED), None)
    name = platform.uname()
    findings = Findings(
        system=f"{name.system} {name.release}, {name.machine}",
        machine=machine.read(),
        user=os.geteuid(),
        landlock=machine.landlock_version(),
        bubblewrap=machine.bubblewrap(),
        tried=tried,
        best=best,
        speed=machine.measure(best) if best else None,
    )
    typer.echo(diagnosis(findings))
    if best is None or not machine.is_fit(best):
        raise typer.Exit(_NOT_PASSED)


async def _executed(program: Program, limits: Limits, level: str | None) -> tuple[Execution, str]:
    async with Sandbox(limits, workers=1, level=level) as box:
        return await box.run(program), box.level


def _text(path: Path) -> str:
    """The program.

    Raises:
        UserError: It cannot be read, or is no text.
    """
    if str(path) == _STANDARD_INPUT:
        return _decoded(typer.get_binary_stream("stdin").read(), "standard input")
    try:
        return _decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; expected a file with Python source") from error


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is no text (byte {error.start} is not UTF-8); expected Python source") from error


def _statements(path: Path) -> str:
    """Source that is trusted, so a slip in it is the user's and no outcome.

    Raises:
        UserError: It cannot be read, or is no Python.
    """
    source = _text(path)
    try:
        ast.parse(source, path.name)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path} has to be Python that parses by itself: {error}") from error
    return source
