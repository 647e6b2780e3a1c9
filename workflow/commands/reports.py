"""The jobs of the DAG that make reports, and what checks the data."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from harness import config, layout
from workflow import stopping
from workflow.app import Overrides, PresetName, app, preset_of


@app.command()
def report(
    name: Annotated[
        str, typer.Argument(help="A key of config/artefacts.yaml, such as main_table.", show_default=False)
    ],
    preset: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one table or figure from the finished cells of a preset, in every format."""
    from paper import figures, registry, render
    from paper.figures import Figure

    made = registry.artefact(name).build(preset_of(preset, overrides))
    folder = layout.REPORTS / preset
    written = figures.write(made, folder, name) if isinstance(made, Figure) else render.write(made, folder, name)
    kind = "simulated backbones" if made.simulated else "backbones behind servers"
    logging.info("%s of preset %s (%s): %s", name, preset, kind, ", ".join(map(str, written)))


@app.command()
def learning(preset: PresetName, overrides: Overrides = None) -> None:
    """Report what training did, from the finished cells of a preset."""
    from paper.learning.files import write
    from paper.learning.report import build
    from paper.learning.study import path_of

    chosen = preset_of(preset, overrides)
    report = build([layout.cell(preset, one) for one in config.cells(chosen)], path_of(preset))
    written = write(report, layout.REPORTS / preset)
    logging.info(
        "study of learning, %d cells, %d not finished: %s",
        len(report.cells),
        report.unfinished,
        ", ".join(map(str, written)),
    )


@app.command("search-history")
def search_history(preset: PresetName, overrides: Overrides = None) -> None:
    """Report how the searches for a workflow went, from the finished cells of a preset."""
    from paper.search_history import build, write
    from workflow import searches

    chosen = preset_of(preset, overrides)
    history = build(searches.folders(chosen))
    written = write(history, layout.REPORTS / preset)
    logging.info(
        "%d searches, %d not finished: %s", len(history.searches), history.unfinished, ", ".join(map(str, written))
    )


@app.command()
def pdf(tex: Path, out: Path) -> None:
    """Compile one table to a PDF (needs a TeX installation)."""
    from paper.pdf import compile_fragment

    compile_fragment(tex, out)


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Prove that every gold answer is graded right and a mutated one wrong."""
    from harness.benchmarks import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [stopping.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for report in reports:
        typer.echo(report.to_markdown())
    if any(not report.passed for report in reports):
        raise typer.Exit(1)
