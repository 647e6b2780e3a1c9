"""Commands before a run, and its jobs: write and test a method, check and forecast a run, make questions and cells."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import BenchmarkKey, MethodKey, Overrides, PresetName, app, last_run, run_of
from harness.errors import UserError, check_names

if TYPE_CHECKING:
    from harness.runner.run import Run


@app.command()
def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="method, or recording for a preset on a table.")],
    key: Annotated[str, typer.Argument(metavar="NAME", help="Key and module, such as length_router; or preset.")],
    table: Annotated[Path | None, typer.Argument(metavar="FILE", help="Table of outcomes.", show_default=False)] = None,
    trained: Annotated[bool, typer.Option("--trained", help="A router that learns from training questions.")] = False,
) -> None:
    """Copy a router to my/NAME.py, to be changed, with an entry in my/methods.yaml; or write a preset for a table."""
    from harness.files import ROOT, write_atomically
    from harness.fingerprint import source_of
    from harness.runner import config

    check_names("kind", [kind], ["method", "recording"], "docs/adding.md#a-benchmark has a benchmark to copy")
    if kind == "recording":
        if table is None:
            raise UserError(f"name the table, too: gmr new recording {key} FILE")
        from cli.tables import write_preset

        typer.echo("\n".join(write_preset(key, table)))
        return
    if not key.isidentifier():
        raise UserError(f"{key!r} is not a valid module name; use `gmr new method {key.replace('-', '_')}`")
    entries, module = Path("my/methods.yaml"), Path(f"my/{key}.py")
    text = entries.read_text(encoding="utf-8") if entries.exists() else ""
    known = config.methods(str(entries) if text else None)
    if key in known or module.exists() or source_of(key) is not None:
        raise UserError(f"{key!r} is already a method or module; choose another name")
    template = ROOT / "baselines" / "cheap" / f"{'logistic' if trained else 'random'}_router.py"
    write_atomically(module, template.read_text(encoding="utf-8"))
    flags = f"multi_agent: false, routing: true{', trained: true' if trained else ''}"
    entry = f"{key}: {{module: {key}, title: {key}, rows: pool, {flags}}}\n"
    write_atomically(entries, "\n".join([*text.splitlines(), entry]))
    typer.echo(
        f"wrote {module} and its entry in {entries}; check how it behaves, then compare it with other methods by\n"
        f"  gmr test {entries} --method {key}\n"
        f"  snakemake --cores all reports/recorded/main_table.md --config extra={entries}"
    )


@app.command("test")
def check_behaviour(
    file: Annotated[str, typer.Argument(help="Entries of your methods, such as my/methods.yaml.")],
    method: Annotated[list[str] | None, typer.Option(help="Only these methods; default: all of the file.")] = None,
) -> None:
    """Check how the methods of a file behave, on simulated backbones and four questions: a line a check.

    Status 1: a check failed.
    """
    from cli import behaviour
    from harness.runner import config

    logging.getLogger().setLevel(logging.WARNING)  # without the progress of the cells
    shared, known = config.methods(), config.methods(file)
    own = [key for key in known if key not in shared]
    check_names("method", method or (), own, file)

    failed = False
    for key in method or own:
        for name, problem in behaviour.check(known[key], file):
            typer.echo(f"{key}: {name}: {problem or 'passed'}")
            failed |= bool(problem)
    if failed:
        raise typer.Exit(1)


@app.command()
def check(
    name: PresetName,
    checks: Annotated[
        list[str] | None, typer.Argument(metavar="CHECK...", help="sandbox, servers, gold or recordings; default: all.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Check what a run needs: this machine's sandbox, its servers and their speed, and the gold of its questions.

    Servers get short and long test prompts, but no question. results/PRESET/served.json has what they serve. Of each
    question the gold must be graded right, and a wrong answer wrong. Recordings are named whose token counts are odd.
    Status 1: something is not as a run needs it.
    """
    # As a job of Snakemake, it has the settings of the run.
    run = (last_run if signals.PARENT in os.environ else run_of)(name, overrides)
    known = {"sandbox": _sandbox, "servers": _servers, "gold": _gold, "recordings": _recordings}
    check_names("check", checks or (), known, "gmr check -h")
    outcomes = [known[each](run) for each in checks or known]
    raise typer.Exit(int(not all(outcomes)))


def _sandbox(run: Run) -> bool:
    """Print which sandbox levels work here, and why others do not. Only simulated models may do without the best."""
    from harness.sandbox.pool import LEVELS, refusal

    reasons = {level: refusal(level) for level in LEVELS}
    for level, reason in reasons.items():
        typer.echo(f"sandbox {level}: {f'does not work: {reason}' if reason else 'works'}")
    return run.endpoints == "simulated" or not reasons[LEVELS[0]]


def _servers(run: Run) -> bool:
    """Check and measure the servers, and prepare questions that are not prepared yet. Raises UserError."""
    if not run.served:
        typer.echo(f"servers: none, the backbones of preset {run.name} are {run.endpoints}")
        return True
    from cli import servers
    from harness.runner import layout

    for key in run.benchmarks:
        if not run.identity_of_data(key).is_current():
            prepare(run, key)
    signals.run(servers.check(run))
    logging.info("servers: all serve the backbones of preset %s; %s", run.name, layout.served(run.name))
    return True


def _gold(run: Run) -> bool:
    from harness.benchmarks import catalogue
    from harness.benchmarks.validate import check_gold, validate

    for key in filter(catalogue.is_further, run.benchmarks):
        signals.run(check_gold(key, run.data))
    graded = [key for key in run.benchmarks if not catalogue.benchmark(key).names_models]
    reports = [signals.run(validate(key, run.data)) for key in graded]
    for summary, _ in reports:
        typer.echo(f"gold of {summary}\n")
    return all(is_valid for _, is_valid in reports)


def _recordings(run: Run) -> bool:
    from harness.llm.archive import odd_counts

    odd = [f"{each.path.name}: {line}" for each in run.recorded for line in odd_counts(each.logs())]
    typer.echo("\n".join(odd) or f"recordings: {len(run.recorded)}, nothing odd")
    return not odd


@app.command()
def forecast(
    name: PresetName,
    artefacts: Annotated[list[str] | None, typer.Argument(help="Artefacts; default: all.")] = None,
    speed: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="READ WRITE", help="Tokens per second of each server; default: as measured by `gmr check servers`."
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Estimate calls, tokens, hours and cost of a run. Works before any preparation."""
    from analysis import registry
    from cli.forecast import lines

    run = run_of(name, overrides)
    entries = [registry.artefact(key) for key in artefacts or ()]
    for entry in entries:
        entry.check(run)
    cells = [*dict.fromkeys(cell for entry in entries for cell in entry.cells_of(run))]
    typer.echo("\n".join(lines(run, cells or registry.all_cells(run), speed)))


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
    from harness.files import check
    from harness.runner.layout import POOL, Cell
    from harness.runner.plan import plan

    part = {"only": only, "second": second, "draws": draws, "passed": passed}
    selection = check(part, Selection, "gmr enumerate")
    run = run_of(name, overrides)
    planned = plan(run, Cell(method, benchmark, POOL, 0))
    run.write_settings()  # Bundles and recordings read the settings.
    signals.run(enumerate_steps(planned, selection))


@app.command(hidden=True)
def cell(
    name: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: Annotated[str, typer.Option(help="A key of config/backbones.yaml, or pool.")],
    seed: Annotated[int, typer.Option(help="Training seed.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Resumes where it stopped."""
    from harness.runner import cell as cells
    from harness.runner.layout import Cell
    from harness.runner.plan import plan

    signals.run(cells.run(plan(last_run(name, overrides), Cell(method, benchmark, backbone, seed))))


@app.command(hidden=True)
def data(name: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark. Grades the gold answers of a user's own."""
    run = last_run(name, overrides)
    run.check_benchmark(benchmark)
    prepare(run, benchmark)


def prepare(run: Run, benchmark: str) -> None:
    """Write the questions of a benchmark. Raises UserError if the gold of a user's own is not graded right."""
    from harness.benchmarks import catalogue
    from harness.benchmarks.validate import check_gold
    from harness.runner import questions

    if catalogue.is_further(benchmark):
        signals.run(check_gold(benchmark, run.data))
    questions.write(run, benchmark)
