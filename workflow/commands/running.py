"""The command that makes a run, in front of Snakemake."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Annotated

import typer

from harness import layout
from harness.config import Preset
from workflow.app import Overrides, PresetName, Targets, app, overrides_of, preset_of

_MISTAKE, _STOPPED = 2, 3
_INTERVAL_S = 1.0


@app.command()
def run(
    targets: Targets = None,
    preset: PresetName = "embedded",
    cores: Annotated[str, typer.Option(help="Jobs at a time, or all.")] = "all",
    profile: Annotated[
        str | None, typer.Option(help="A profile of Snakemake such as profiles/slurm.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only say what would run, and why.")] = False,
    overrides: Overrides = None,
) -> None:
    """Make artefacts of a preset, with all they are made from; goes on where an earlier run stopped.

    This is Snakemake with the profile of the suite, and one line that says how far all cells are together: those done,
    calls a second, tokens, cost so far, time left. What Snakemake and its jobs say is in results/PRESET/logs/run.log.
    Ctrl-C stops within seconds and keeps every finished call.
    """
    from workflow import engine

    engine.check_folder()
    chosen, names = preset_of(preset, overrides), targets or ["main_table"]
    words = [*(["--profile", profile] if profile else []), "--cores", cores, *(["-n"] if dry_run else [])]
    files = engine.files_of(chosen, names)
    command = engine.command(chosen, files, overrides_of(overrides), words)
    if dry_run:
        raise typer.Exit(_MISTAKE if subprocess.call(command) else 0)  # noqa: S603  our own interpreter
    status = _watched(chosen, names, command)
    if status == 0:
        typer.echo("\n".join(files))
    raise typer.Exit(status)


def _watched(preset: Preset, targets: list[str], command: list[str]) -> int:
    """Run Snakemake to its end, and say meanwhile how far it is; returns the status of this command."""
    from workflow.engine import Engine, interrupting
    from workflow.targets import wanted
    from workflow.watching.line import ProgressLine, one_line
    from workflow.watching.standing import Watch
    from workflow.watching.text import ending

    watch = Watch(preset, wanted(targets, preset).cells)
    line = ProgressLine(shutil.get_terminal_size((100, 24)).columns if sys.stderr.isatty() else 0)
    engine = Engine(command, layout.RESULTS / preset.name / "logs" / "run.log")
    status = None
    with interrupting(engine) as told:
        while status is None:
            status = engine.wait(_INTERVAL_S)
            for news in engine.news():
                line.clear()
                typer.echo(news, err=True)
            standing = watch.look(time.monotonic())
            line.show(one_line(standing, engine.steps))
    line.clear()
    typer.echo(one_line(standing, engine.steps), err=True)
    if status == 0:
        return 0
    if told.number is not None:
        typer.echo("stopped; give the same command again", err=True)
        return 128 + told.number
    typer.echo(ending(standing, engine.output), err=True)
    return _STOPPED if engine.has_begun else _MISTAKE
