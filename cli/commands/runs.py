"""Commands that are jobs of the DAG, and commands before and after a run."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, last_run, run_of
from harness.errors import UserError, check_names

if TYPE_CHECKING:
    from harness.runner.run import Run


@app.command(hidden=True)
def cell(
    name: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Resumes where it stopped."""
    from harness.runner import cell as cells
    from harness.runner.layout import Cell
    from harness.runner.plan import plan

    signals.run(cells.run(plan(run_of(name, overrides), Cell(method, benchmark, backbone, seed))))


@app.command()
def enumerate(  # noqa: A001 - named as what it does
    name: PresetName,
    benchmark: BenchmarkKey,
    method: MethodKey = "gmr_one_step",
    only: Annotated[
        str | None, typer.Option(help="failed: second steps where step 1 failed its examples, and no final calls.")
    ] = None,
    second: Annotated[str | None, typer.Option(metavar="BACKBONE", help="Backbone of second steps; else each.")] = None,
    draws: Annotated[int, typer.Option(min=0, help="Samples of a failed first call, at temperature 0.7.")] = 0,
    passed: Annotated[int, typer.Option(min=0, help="Test questions whose step 1 passed, with a second step.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Run every first step of GMR, or every first and second step: each role and backbone on each question.

    Routers of one or two steps can then train without a server. The results are in results/PRESET/tree/BENCHMARK.
    """
    from gmr.enumeration import Selection, enumerate_steps
    from harness.runner.layout import POOL, Cell
    from harness.runner.plan import plan

    if only is not None:
        check_names("part", [only], ["failed"], "gmr enumerate --help")
    run = run_of(name, overrides)
    planned = plan(run, Cell(method, benchmark, POOL, 0))
    if second is not None:
        check_names("backbone", [second], planned.cell.backbones, "preset")
    run.write_settings()  # Bundles and recordings read the settings.
    signals.run(enumerate_steps(planned, Selection(only, second, draws, passed)))


@app.command()
def new(
    kind: Annotated[str, typer.Argument(metavar="method", help="Kind of template.")],
    key: Annotated[str, typer.Argument(metavar="NAME", help="Key and module, such as length_router.")],
    trained: Annotated[bool, typer.Option("--trained", help="A router that learns from training questions.")] = False,
) -> None:
    """Write a working template of a method, my/NAME.py, and its entry in my/methods.yaml."""
    from harness.files import ROOT, write_atomically
    from harness.fingerprint import source_of
    from harness.runner import config

    check_names("kind", [kind], ["method"], "docs/adding.md#a-benchmark has a benchmark to copy")
    if not key.isidentifier():
        raise UserError(f"{key!r} is not a valid module name; use `gmr new method {key.replace('-', '_')}`")
    entries, module = Path("my/methods.yaml"), Path(f"my/{key}.py")
    text = entries.read_text(encoding="utf-8") if entries.exists() else ""
    known = config.methods(str(entries) if text else None)
    if key in known or module.exists() or source_of(key) is not None:
        raise UserError(f"{key!r} is already a method or module; choose another name")
    template = "trained_method_template.py" if trained else "method_template.py"
    write_atomically(module, (ROOT / "cli" / template).read_text(encoding="utf-8"))
    flags = f"multi_agent: false, routing: true{', trained: true' if trained else ''}"
    entry = f"{key}: {{module: {key}, title: {key}, rows: pool, {flags}}}\n"
    write_atomically(entries, "\n".join([*text.splitlines(), entry]))
    beside = f"recorded/main_table.md --config extra={entries}"
    if not trained:
        beside = f"smoke/main_table.md --config extra={entries} methods='[single, gmr, {key}]'"
    run = f"snakemake --cores all reports/{beside}"
    typer.echo(f"wrote {module} and its entry in {entries}; compare it with other methods by\n  {run}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def retry(context: typer.Context, name: PresetName) -> None:
    """Repeat the failed calls of all cells of a preset, with the settings of its last run. Trainings start over.

    Further arguments are passed to Snakemake, such as a report to make, or --workflow-profile profiles/slurm.
    """
    import json

    from harness.runner import layout
    from harness.runner.preset import resolve

    run = last_run(name)
    found = [_forget_failed_calls(run, log) for log in sorted(layout.logs(name))]
    if not any(target is not None for target in found):
        logging.info("no call of preset %s has failed", name)
    if not (targets := [*filter(None, found)]):
        return
    usual, settings = resolve(name).settings, run.settings
    changed = [f"{key}={json.dumps(value)}" for key, value in settings.items() if value != usual[key]]
    words = ["--cores", "all", *targets, *context.args, "--config", f"preset={name}", *changed]
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *words])  # noqa: S606  our own interpreter


def _forget_failed_calls(run: Run, path: Path) -> str | None:
    """Delete a cell's result and failed calls, and return its target. None if it is not in the run or none failed.

    Snakemake does not make enumerations, so their target is empty.
    """
    from harness.llm.call_log import CallLog, CallLogReader
    from harness.runner import layout

    cell = layout.cell_of(path.parent)
    with CallLogReader(path) as log:
        if not log.failed():
            return None
    if cell is None:
        with CallLog(path) as log:
            (path.parent / "run.json").unlink(missing_ok=True)
            logging.info("%s: `gmr enumerate` will repeat %d failed calls", path.parent, log.forget_failed())
        return ""
    try:
        run.cell(cell)
    except UserError as error:
        logging.warning("%s is not part of the last run and stays unchanged (%s)", cell, error)
        return None
    with CallLog(path) as log:
        # run.json first, so that an interruption cannot leave the cell finished.
        (path.parent / "run.json").unlink(missing_ok=True)
        logging.info("%s: %d failed calls will be repeated", cell, log.forget_failed())
    return str(path.parent / "run.json")


@app.command()
def report(
    artefact: Annotated[str, typer.Argument(help="An artefact of `gmr --list`, or page.")],
    name: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one report of a preset from its finished cells: a table, a figure, the claims, the page of the run."""
    from cli import reports

    run = run_of(name, overrides)
    reports.check_cells(artefact, run)
    files = reports.write(artefact, run)
    kind = "simulated backbones" if run.simulated else "recorded replies" if run.recorded else "served backbones"
    text = ", ".join(map(str, files)) if len(files) < 10 else f"{len(files)} files below {files[0].parent}"
    logging.info("%s of preset %s (%s): %s", artefact, name, kind, text)


@app.command()
def health(
    name: PresetName,
    benchmark: Annotated[
        str | None, typer.Option(help="Check for this benchmark only; default: all of the preset.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Check what the endpoints of a preset serve and how fast, and write results/PRESET/served/BENCHMARK.json.

    Sends short and long test prompts, but no question. Lists all problems of all servers.
    """
    from cli import health as checks

    run = run_of(name, overrides)
    if benchmark is not None:
        run.check_benchmark(benchmark)
    files = signals.run(checks.check(run, [benchmark] if benchmark else run.benchmarks))
    logging.info("all endpoints serve the backbones of preset %s: %s", name, ", ".join(map(str, files)))


@app.command()
def forecast(
    name: PresetName,
    artefacts: Annotated[
        list[str] | None,
        typer.Argument(help="Artefacts; default: all, or all cells of the methods given by --set."),
    ] = None,
    speed: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="READ WRITE", help="Tokens per second of each server; default: as measured by `gmr health`."
        ),
    ] = None,
    of_steps: Annotated[bool, typer.Option("--enumerate", help="Forecast `gmr enumerate` on all benchmarks.")] = False,
    overrides: Overrides = None,
) -> None:
    """Estimate calls, tokens, hours and cost of a run. Works before any preparation."""
    from analysis import registry
    from cli.forecast import lines
    from harness.runner.preset import resolve

    run = run_of(name, overrides)
    entries = [registry.artefact(key) for key in artefacts or ()]
    for entry in entries:
        entry.check(run)
    cells = list(dict.fromkeys(cell for entry in entries for cell in entry.cells_of(run)))
    cells = cells or registry.all_cells(run)
    if not artefacts and run.methods != resolve(name).methods:
        cells = [cell for cell in cells if cell.method in run.methods]
    for line in lines(run, None if of_steps else cells, speed):
        typer.echo(line)


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Check that every gold answer is graded right, and a wrong answer to each question wrong.

    Status 1: a verdict is incorrect.
    """
    from harness.benchmarks.catalogue import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [signals.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for report in reports:
        typer.echo(report.to_markdown())
    if not all(report.passed for report in reports):
        raise typer.Exit(1)


@app.command()
def sandbox() -> None:
    """Show which sandbox levels work on this machine, and why others do not.

    Status 0: programs of real models can be run here. 1: they would be refused.
    """
    from harness.sandbox.pool import LEVELS, refusal

    for level in LEVELS:
        reason = refusal(level)
        typer.echo(f"{level:<10}{f'does not work: {reason}' if reason else 'works'}")
    raise typer.Exit(int(bool(refusal(LEVELS[0]))))


@app.command(hidden=True)
def data(name: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark."""
    from harness.runner import questions

    run = run_of(name, overrides)
    run.check_benchmark(benchmark)
    questions.write(run, benchmark)
