"""The command line ``gmr``: every job of the DAG, and what one does around it."""

from __future__ import annotations

import asyncio
import functools
import logging
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import config, layout
from harness.config import Cell, Preset
from harness.errors import UserError
from harness.files import ROOT, write_atomically, writing
from workflow.jobs import die_with_parent, inherited_overrides

app = typer.Typer(
    help="Reproducibility suite for Gated-Memory Routing. Tables are made by `snakemake --cores all reports/NAME`; "
    "the commands below are its jobs, each usable alone, and what helps around a run.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
)

PresetName = Annotated[str, typer.Option("--preset", help="A file of config/presets, without .yaml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=YAML", help="Override a key of the preset: --set 'limit={test: 32}'."),
]
BenchmarkKey = Annotated[str, typer.Option("--benchmark", help="A key of config/benchmarks.yaml.")]


@app.callback()
def common(
    log: Annotated[Path | None, typer.Option(help="Write progress and errors to this file too.")] = None,
) -> None:
    """Set up what all commands share."""
    if not any(Path(name).exists() for name in ("Snakefile", layout.RESULTS)):
        raise UserError(f"no Snakefile and no results here; give the command in {ROOT}")
    if log is not None:
        with writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            logging.getLogger().addHandler(logging.FileHandler(log, mode="w"))


@app.command()
def data(preset: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark."""
    from harness.benchmarks.prepare import prepare

    chosen = _preset(preset, overrides)
    config.check_benchmark(chosen, benchmark)
    prepare(
        benchmark,
        chosen.data,
        chosen.splits,
        layout.items(preset, benchmark),
        layout.manifest(preset, benchmark),
    )


@app.command()
def world(preset: PresetName, overrides: Overrides = None) -> None:
    """Calibrate the simulated backbones to a preset's questions."""
    from harness.simulator.build import build_world_file

    chosen = _preset(preset, overrides)
    asyncio.run(build_world_file(chosen))


@app.command()
def cell(
    preset: PresetName,
    method: Annotated[str, typer.Option(help="A key of config/methods.yaml.")],
    benchmark: BenchmarkKey,
    backbone: Annotated[str, typer.Option(help="A key of config/backbones.yaml, or pool.")],
    seed: Annotated[int, typer.Option(help="Training seed.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Goes on where it stopped."""
    from harness import cell as cells
    from harness.plan import plan

    asyncio.run(cells.run(plan(_preset(preset, overrides), Cell(method, benchmark, backbone, seed))))


@app.command("main-table")
def main_table(preset: PresetName, overrides: Overrides = None) -> None:
    """Render the main table from the finished cells of a preset, in four formats."""
    from paper import main_table, render

    chosen = _preset(preset, overrides)
    folders = [layout.cell(preset, one) for one in config.cells(chosen)]
    table = main_table.build(folders)
    written = render.write(table, layout.REPORTS / preset, "main_table")
    kind = "simulated backbones" if table.simulated else "real models"
    logging.info("main table of preset %s (%s): %s", preset, kind, ", ".join(map(str, written)))


@app.command()
def costs(preset: PresetName, overrides: Overrides = None) -> None:
    """Render calls, tokens and cost of a question beside the published costs, in four formats."""
    from paper import cost_table, render

    chosen = _preset(preset, overrides)
    table = cost_table.build([layout.cell(preset, one) for one in config.cells(chosen)])
    written = render.write(table, layout.REPORTS / preset, "costs")
    logging.info("costs of preset %s: %s", preset, ", ".join(map(str, written)))


@app.command()
def learning(preset: PresetName, overrides: Overrides = None) -> None:
    """Report what training did, from the finished cells of a preset."""
    from paper.learning.files import write
    from paper.learning.report import build
    from paper.learning.study import path_of

    chosen = _preset(preset, overrides)
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

    chosen = _preset(preset, overrides)
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
def leaks(preset: PresetName, overrides: Overrides = None) -> None:
    """Report duplicates, exact and near, between training and test questions of a preset."""
    from harness.benchmarks.leaks import leak_report, to_csv, to_markdown
    from harness.benchmarks.prepare import read

    chosen = _preset(preset, overrides)
    keys = chosen.benchmarks
    reports = [leak_report(read(layout.manifest(preset, key), layout.items(preset, key))) for key in keys]
    write_atomically(layout.report(preset, "leak_report.csv"), to_csv(reports))
    write_atomically(layout.report(preset, "leak_report.md"), to_markdown(reports))
    logging.info(to_markdown(reports))


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Prove that every gold answer is graded right and a mutated one wrong."""
    from harness.benchmarks import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [asyncio.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for report in reports:
        typer.echo(report.to_markdown())
    if any(not report.passed for report in reports):
        raise typer.Exit(1)


@app.command()
def simulate(
    preset: PresetName,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    engine: Annotated[bool, typer.Option(help="Take the time a real server would (config/simulator.yaml).")] = False,
    overrides: Overrides = None,
) -> None:
    """Serve the simulated backbones of a preset as an OpenAI-compatible HTTP server."""
    from harness.opening import simulated_endpoint
    from harness.simulator.server import serve

    chosen = _preset(preset, overrides)
    if not chosen.simulated:
        raise UserError(f"preset {preset} asks real servers; name one with simulated backbones")
    endpoint = simulated_endpoint(chosen)
    logging.info(
        "serving %d simulated models at http://%s:%d/v1, Ctrl-C stops", len(endpoint.models()["data"]), host, port
    )
    try:
        serve(endpoint, host, port, endpoint.world.settings.engine if engine else None)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error


@app.command("ledger")
def print_ledger(preset: PresetName, overrides: Overrides = None) -> None:
    """Print calls, tokens and cost of a preset's finished cells, by method."""
    from harness.ledger import ledger, simulated

    chosen = _preset(preset, overrides)
    folders = [layout.cell(preset, one) for one in config.cells(chosen)]
    finished = sum((folder / "run.json").exists() for folder in folders)
    warning = "SIMULATED BACKBONES. " if simulated(folders) else ""
    typer.echo(f"{warning}Preset {preset}, {finished} of {len(folders)} cells finished.")
    typer.echo(ledger(folders).to_string(float_format="{:.4f}".format))
    others = [path.parent for path in layout.RESULTS.glob(f"{preset}/cells/*/*/*/*/run.json")]
    left = sorted({folder.parents[2].name for folder in others if folder not in folders})
    if left:
        typer.echo(
            f"Finished cells that this preset does not have as it stands: {', '.join(left)} (name them by --set)."
        )
    typer.echo(
        "uses: calls as charged. calls: distinct within a cell. alike: of these, asked by another cell too. "
        "cost: in the paper's unit, over uses."
    )


@app.command()
def route(
    question: Annotated[str | None, typer.Argument(help="The question, in quotes.", show_default=False)] = None,
    item: Annotated[str | None, typer.Option(help="A prepared question by its id, instead of a text.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="The benchmark it was trained on; may be left out where there is only one.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="GMR or a variant of it; gmr unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; 0 unless given.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The router's file, instead of benchmark, method and seed.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Whose router, data and backbones: embedded, or with --checkpoint the one it names."),
    ] = None,
    walk: Annotated[bool, typer.Option("--run", help="Ask the backbones, step by step to the answer.")] = False,
    greedy: Annotated[bool, typer.Option("--greedy", help="With --run: always the most probable choice.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    overrides: Overrides = None,
) -> None:
    """Show what a trained router of GMR does with a question: its next decision, or with --run the whole trajectory."""
    if (question is None) == (item is None):
        raise UserError("give either a question in quotes or --item with the id of a prepared one")
    if greedy and not walk:
        raise UserError("--greedy says how --run decides; give both, or neither")
    if checkpoint is not None and (benchmark, method, seed) != (None, None, None):
        raise UserError("--checkpoint names the router already; leave --benchmark, --method and --seed out")
    from workflow import restored as routers
    from workflow import route as routing
    from workflow.route_text import Page, to_json

    path = checkpoint or routers.find(_preset(preset or "embedded", overrides), method or "gmr", benchmark, seed or 0)
    restored = routers.restore(path, greedy=greedy)
    chosen = _preset(preset or restored.facts["preset"], overrides)
    if item is not None:
        asked = routing.prepared_question(restored, chosen, item)
    else:
        asked = routing.own_question(restored, question or "")
    found = asyncio.run(routing.run(restored, chosen, asked)) if walk else routing.next_decision(restored, asked)
    about = routing.about(restored, asked)
    width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)
    typer.echo(to_json(about, found) if as_json else Page(width, full=full).show(about, found))


def _unmake(cell: Path) -> None:
    """First the result, then the calls: interrupted in between, the cell is run again all the same."""
    from harness.training import forget

    (cell / "run.json").unlink(missing_ok=True)
    forget(cell)


@app.command("retry-errors")
def retry_errors(preset: PresetName) -> None:
    """Forget the failed calls of a preset, so that the next run asks them again; a training beside them starts over."""
    from harness.llm.call_log import drop_errors, failed_calls

    config.check_presets([preset])
    total = 0
    for log in sorted((layout.RESULTS / preset / "cells").rglob(layout.CALL_LOG)):
        if failed_calls(log):
            total += drop_errors(log, before=functools.partial(_unmake, log.parent))
    typer.echo(f"{total} failed calls forgotten; the next run of the preset asks them again")


def main() -> None:
    """Entry point: one line for a user's mistake, status 2; a traceback only for ours."""
    # On a full disk the log file fails too; its traceback must not bury the line that says so.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "openai", "datasets", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its retries would be a hundred lines; the one line that counts is ours.
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    die_with_parent()
    try:
        app()
    except UserError as error:
        logging.error("error: %s", error)
        sys.exit(2)


def _preset(name: str, overrides: list[str] | None) -> Preset:
    given = dict(_override(text) for text in overrides) if overrides else inherited_overrides()
    return config.preset(name, given)


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text!r} is not KEY=YAML, such as --set 'limit={{test: 32}}'")
    return key, config.from_text(value)
