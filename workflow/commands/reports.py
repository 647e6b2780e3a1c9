"""The jobs of the DAG that make reports, and sums of what was asked."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UserError
from harness.files import ROOT
from harness.runner import config, layout
from harness.yaml_files import parse
from workflow.app import JOB, Overrides, PresetName, app, preset_of

PRESET = typer.Option("--preset", help="A file of config/presets, without .yaml; else the one that reports/ shows.")


@app.command(rich_help_panel=JOB)
def report(
    name: Annotated[
        str, typer.Argument(help="A key of config/artefacts.yaml, such as main_table.", show_default=False)
    ],
    preset: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one table or figure from the finished cells of a preset, in every format."""
    from analysis import figures, registry, render
    from analysis.figures import Figure

    made = registry.artefact(name).build(preset_of(preset, overrides))
    folder = layout.REPORTS / preset
    written = figures.write(made, folder, name) if isinstance(made, Figure) else render.write(made, folder, name)
    kind = "simulated backbones" if made.simulated else "backbones behind servers"
    logging.info("%s of preset %s (%s): %s", name, preset, kind, ", ".join(map(str, written)))


@app.command(rich_help_panel=JOB)
def learning(preset: PresetName, overrides: Overrides = None) -> None:
    """Report what training did, from the finished cells of a preset."""
    from analysis.learning.files import write
    from analysis.learning.report import build
    from analysis.learning.study import path_of

    chosen = preset_of(preset, overrides)
    report = build([layout.cell(preset, one) for one in config.cells(chosen)], path_of(preset))
    written = write(report, layout.REPORTS / preset)
    logging.info(
        "study of learning, %d cells, %d not finished: %s",
        len(report.cells),
        report.unfinished,
        ", ".join(map(str, written)),
    )


@app.command("search-history", rich_help_panel=JOB)
def search_history(preset: PresetName, overrides: Overrides = None) -> None:
    """Report how the searches for a workflow went, from the finished cells of a preset."""
    from analysis.search_history import build, write
    from workflow import searches

    chosen = preset_of(preset, overrides)
    history = build(searches.folders(chosen))
    written = write(history, layout.REPORTS / preset)
    logging.info(
        "%d searches, %d not finished: %s", len(history.searches), history.unfinished, ", ".join(map(str, written))
    )


@app.command(rich_help_panel=JOB)
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
    from analysis import registry
    from analysis.claims import render
    from analysis.claims.report import build
    from analysis.source import Source

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


@app.command(rich_help_panel=JOB)
def page(preset: PresetName, overrides: Overrides = None) -> None:
    """Make the page of a preset from whatever is finished of it: reports/PRESET/index.html, to be opened from the disk.

    It shows the tables and figures that are made, and names those that are not.
    """
    from analysis.page import write
    from workflow.shown import shown

    chosen = preset_of(preset, overrides)
    artefacts, cells = write(chosen, shown(chosen))
    if cells:
        logging.info("%d cells are not finished", len(cells))
    if artefacts:
        logging.info("not made yet: %s", ", ".join(artefacts))
    logging.info("%s", layout.report(preset, "index.html"))


@app.command("inspect", rich_help_panel=JOB)
def inspect_logs(
    preset: PresetName,
    method: Annotated[
        list[str] | None, typer.Option(help="Only cells of this method; may be repeated.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write the trajectories of every finished cell as a log of Inspect, for `inspect view`: reports/PRESET/inspect.

    Needs the extra `inspect` (pip install -e '.[inspect]').
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise UserError("inspect_ai is not installed; pip install -e '.[inspect]' adds it")
    from analysis.inspect_logs import write_cell
    from analysis.trajectories import questions

    chosen = preset_of(preset, overrides)
    runs = sorted((layout.RESULTS / chosen.name / "cells").glob("*/*/*/seed*/run.json"))
    cells = [cell for run in runs if (cell := layout.cell_of(run.parent)) is not None]
    lacking = [key for key in method or ["its cells"] if key not in {cell.method for cell in cells}]
    if lacking and (method or not cells):
        raise UserError(
            f"nothing of {lacking[0]} is finished in preset {chosen.name}; run it with "
            f"`snakemake --cores all {layout.report(chosen.name, 'main_table.md')}`"
        )
    folder = layout.REPORTS / preset / "inspect"
    asked = {key: questions(preset, key) for key in dict.fromkeys(cell.benchmark for cell in cells)}
    for cell in cells:
        if method is None or cell.method in method:
            logging.info("%s: %s", cell, write_cell(preset, cell, folder, asked[cell.benchmark]))
    logging.info("inspect view --log-dir %s", folder)


@app.command(rich_help_panel=JOB)
def pdf(tex: Path, out: Path) -> None:
    """Compile one table to a PDF (needs a TeX installation)."""
    from analysis.pdf import compile_fragment

    compile_fragment(tex, out)


@app.command("ledger")
def print_ledger(preset: PresetName, overrides: Overrides = None) -> None:
    """Print calls, tokens and cost of a preset's finished cells, by method."""
    from analysis import registry
    from harness.runner.ledger import ledger, simulated

    chosen = preset_of(preset, overrides)
    folders = [layout.cell(preset, one) for one in registry.cells_of(chosen)]
    finished = sum((folder / "run.json").exists() for folder in folders)
    warning = "SIMULATED BACKBONES. " if simulated(folders) else ""
    typer.echo(f"{warning}Preset {preset}, {finished} of {len(folders)} cells finished.")
    typer.echo(ledger(folders).to_string(float_format="{:.4f}".format))
    others = [path.parent for path in layout.RESULTS.glob(f"{preset}/cells/*/*/*/*/run.json")]
    left = sorted({folder.parents[2].name for folder in others if folder not in folders})
    if left:
        typer.echo(
            f"Finished cells that no artefact of this preset is made of as it stands: {', '.join(left)} "
            "(name them by --set)."
        )
    typer.echo(
        "uses: calls as charged. calls: distinct within a cell. alike: of these, asked by another cell too. "
        "cost: in the paper's unit, over uses."
    )
