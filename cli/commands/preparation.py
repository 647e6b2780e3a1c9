"""Commands before a run: write a method, check servers, questions and sandbox, estimate calls and hours."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from cli import signals
from cli.app import Overrides, PresetName, app, run_of
from harness.errors import UserError, check_names


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
    template = "baselines/cheap/logistic_router.py" if trained else "cli/method_template.py"
    write_atomically(module, (ROOT / template).read_text(encoding="utf-8"))
    flags = f"multi_agent: false, routing: true{', trained: true' if trained else ''}"
    entry = f"{key}: {{module: {key}, title: {key}, rows: pool, {flags}}}\n"
    write_atomically(entries, "\n".join([*text.splitlines(), entry]))
    beside = f"recorded/main_table.md --config extra={entries}"
    if not trained:
        beside = f"smoke/main_table.md --config extra={entries} methods='[single, gmr, {key}]'"
    run = f"snakemake --cores all reports/{beside}"
    typer.echo(f"wrote {module} and its entry in {entries}; compare it with other methods by\n  {run}")


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
