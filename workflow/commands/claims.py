"""The command that holds the paper's statements against its own numbers and against a run."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from harness import layout
from harness.files import ROOT
from harness.yaml_files import parse
from workflow.app import Overrides, app, preset_of

PRESET = typer.Option("--preset", help="A file of config/presets, without .yaml; else the one that reports/ shows.")


@app.command()
def claims(
    preset: Annotated[str | None, PRESET] = None,
    overrides: Overrides = None,
    published: Annotated[
        bool, typer.Option("--published", help="Judge the published numbers alone and write no file.")
    ] = False,
) -> None:
    """Say of every statement of the paper whether its own numbers bear it out, and whether a run does.

    Reads whatever cells of the preset are finished, and writes reports/PRESET/claims.{html,md,csv}.
    """
    from paper import registry
    from paper.claims import render
    from paper.claims.report import build
    from paper.source import Source

    if published:
        typer.echo(render.terminal(build()))
        return
    name = preset or str(parse(ROOT / "config" / "config.yaml")["preset"])
    chosen = preset_of(name, overrides)
    cells = [layout.cell(name, cell) for cell in registry.cells_of(chosen)]
    timings = [layout.timing(name, cell) for one in registry.artefacts().values() for cell in one.timings_of(chosen)]
    source = Source(
        cells=tuple(folder for folder in cells if (folder / "run.json").is_file()),
        preset=chosen,
        timings=tuple(folder for folder in dict.fromkeys(timings) if (folder / "timing.json").is_file()),
    )
    report = build(source)
    typer.echo(render.terminal(report))
    logging.info("%d claims: %s", len(report.judged), ", ".join(map(str, render.write(report, layout.REPORTS / name))))
