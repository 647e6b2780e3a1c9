"""Commands on the results of a run: trajectories, reports, bundles, replays, audits."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import Overrides, PresetName, app, last_run
from harness.errors import UserError, check_names, printable

if TYPE_CHECKING:
    from analysis.finished_cells import FinishedCell
    from cli.replay import Replay
    from harness.runner.run import Run

OtherMethod = Annotated[
    str | None, typer.Option(metavar="METHOD", help="List only what its best row alone got right (or wrong).")
]


@app.command()
def show(
    name: PresetName,
    method: Annotated[str, typer.Argument(help="A key of config/methods.yaml.")],
    benchmark: Annotated[str, typer.Argument(help="A key of config/benchmarks.yaml.")],
    item: Annotated[str | None, typer.Argument(help="Id of a question; default: a list.", show_default=False)] = None,
    backbone: Annotated[str | None, typer.Option(help="Row; default: each of the method.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; default: the first of the preset.")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="List only answers that are not right.")] = False,
    lost_to: OtherMethod = None,
    won_against: OtherMethod = None,
    full: Annotated[bool, typer.Option("--full", help="Show untruncated texts and prompts.")] = False,
) -> None:
    """Show a trajectory step by step; without a question's id, list all questions with their verdicts."""
    if item is not None and (wrong or lost_to or won_against):
        raise UserError("--wrong, --lost-to and --won-against filter the list; omit them or the question")
    from analysis.beyond.trajectories import question_lines, record_lines, records
    from harness.runner.results import SIMULATED_WARNING

    run = last_run(name)
    others = [(_finished(run, key, benchmark), won) for key, won in ((lost_to, False), (won_against, True)) if key]
    for cell in _finished(run, method, benchmark, backbone, seed):
        info, ids = cell.run, list(cell.items["item_id"])
        lines = [f"{SIMULATED_WARNING}."] if info.simulated else []
        lines.append(f"{info.method_title} on {info.benchmark_title}, {info.cell}, preset {run.name}")
        if item is None:
            lines += question_lines(cell, wrong, others)
        else:
            check_names("question", [item], ids, f"the {len(ids)} of {info.cell}")
            record = next(record for record in records(cell, run.recorded) if record.item.id == item)
            lines += ["", *record_lines(record, full=full)]
        typer.echo("\n".join(lines))


def _finished(
    run: Run, method: str, benchmark: str, backbone: str | None = None, seed: int | None = None
) -> list[FinishedCell]:
    """Load the selected cells that are finished: one for each row. Raises UserError if there is none."""
    from analysis.finished_cells import read
    from harness.runner import layout
    from harness.runner.preset import making_with

    entry = run.entries.get(method)
    rows = [backbone] if backbone else run.rows(entry) if entry else [""]
    seed = run.seeds_of(entry)[0] if entry and seed is None else seed or 0
    cells = [layout.Cell(method, benchmark, row, seed) for row in rows]
    paths = [layout.cell(run.name, cell) / "run.json" for cell in cells if run.cell(cell)]
    if not any(path.exists() for path in paths):
        found = {path.parts[1] for path in layout.RESULTS.glob(f"*/cells/{method}/{benchmark}/*/seed*/run.json")}
        cure = making_with(run, paths[0])
        if others := sorted(found - {run.name}):
            cure = f"add `--preset {others[0]}`, which has it, or {cure}"
        raise UserError(f"{cells[0]} of preset {run.name} is not finished", cure)
    return [read(path.parent) for path in paths if path.exists()]


@app.command()
def report(
    artefact: Annotated[str, typer.Argument(help="An artefact of `gmr --list`, page, or inspect.")],
    name: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one report of a preset from its finished cells: a table, a figure, the page, logs for `inspect view`."""
    from cli import reports
    from harness.runner import layout

    run = last_run(name, overrides)
    reports.check_cells(artefact, run)
    files = reports.write(artefact, run)
    kind = "simulated backbones" if run.simulated else "recorded replies" if run.recorded else "served backbones"
    where = f"{len(files)} files below {layout.report(name, artefact)}" if files[9:] else ", ".join(map(str, files))
    logging.info("%s of preset %s (%s): %s", artefact, name, kind, where)


@app.command()
def bundle(
    name: PresetName,
    file: Annotated[
        Path, typer.Argument(help="The bundle, such as PRESET/PRESET.zip, in a folder of its own.", show_default=False)
    ],
) -> None:
    """Pack the results of a preset into one zip file, from which others make its reports without a server.

    Also writes, beside it, all graded answers (outcomes.parquet), the paths of an enumeration (nodes.parquet), and
    their description (croissant.json). Questions that are not redistributable (config/licences.yaml) are left out.
    """
    from cli.bundle import describe, pack

    crate, unfinished = pack(name, file)
    for line in unfinished:
        logging.warning("left out: %s", line)
    typer.echo(f"{file} ({file.stat().st_size / 1e6:.1f} MB): {crate['./']['description']}")
    typer.echo(f"Beside it: {', '.join(path.name for path in describe(file))}")


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(help="A bundle, such as evidence/open_single/open_single.zip.", show_default=False)
    ],
    code: Annotated[
        str | None,
        typer.Option(help="Also run the maker's own methods, declared in this file of the bundle.", show_default=False),
    ] = None,
) -> None:
    """Run a bundle's settings on its replies, without a server, and compare the results with the recorded ones.

    Of a table of outcomes, compare the verdicts with those of the benchmark that it names.

    Reports of the recomputed results are in reports/replayed/PRESET.
    """
    from cli import replay as replaying
    from harness.llm.recordings import TableRecording, opened

    if file.is_dir():
        raise UserError(f"{file} is a folder of results; `gmr audit` replays it, `gmr bundle` packs it")
    if file.is_file() and isinstance(opened(file.absolute()), TableRecording):
        from cli.tables import compare_verdicts

        typer.echo("\n".join(signals.run(compare_verdicts(file))))
        return
    replayed = replaying.replay(file, code=code)
    whole = replayed.recording.crate["./"]
    typer.echo(f"{file}: preset {replayed.recording.preset}, {len(replayed.recording.cells)} cells")
    typer.echo(f"  its manifest says: {printable(whole['description'])}")
    typer.echo(f"Complete: {len(whole['hasPart'])} files match the manifest")
    if replayed.answers:
        typer.echo(f"Reports: {replaying.REPLAYED}")
    _show(replayed)


@app.command()
def audit(name: PresetName) -> None:
    """Check that no training of a finished run used a test question, and that its results follow from its logs."""
    from cli.replay import replay
    from harness.runner import layout
    from harness.runner.preset import making_with

    run = last_run(name)
    further = [recording.path for recording in run.recorded]
    replayed = replay(layout.RESULTS / name, further=further, code=run.extra, make_reports=False)
    if not replayed.differences:
        raise UserError(f"preset {name} has no finished cell here", making_with(run, layout.report(name, "index.html")))
    _show(replayed)


def _show(replayed: Replay) -> None:
    """Print the result of a replay. Exit with status 1 if results differ, or a training used a test question."""
    wrong = {job: difference for job, difference in replayed.differences.items() if difference}
    n, asked = len(replayed.differences), replayed.asked
    if n:
        typer.echo(f"Reproduced: {n - len(wrong)} of {n} cells and enumerations have the same tables")
    for subject, remark in [*wrong.items(), *replayed.remarks.items()]:
        typer.echo(f"  {printable(subject)}: {printable(remark)}")
    if replayed.vectors.used:
        typer.echo(f"Vectors: {replayed.vectors}")
    if replayed.answers:
        typer.echo(f"Answers: {replayed.answers} (digest of question, answer and verdict)")
    if asked is not None:
        typer.echo(f"Test questions that a training used: {', '.join(map(printable, asked)) or 'none'}")
    raise typer.Exit(int(bool(wrong or asked)))


@app.command()
def retry(name: PresetName) -> None:
    """Forget the failed calls of a preset, so that its next run makes them, and what follows from them, again."""
    from harness.llm.call_log import CallLog, CallLogReader
    from harness.runner import layout

    total = 0
    for path in sorted(layout.logs(name)):
        with CallLogReader(path) as reader:
            failed = reader.failed()
        if failed:
            with CallLog(path) as log:
                # run.json first, so that an interruption cannot leave the cell finished.
                (path.parent / "run.json").unlink(missing_ok=True)
                total += log.forget_failed()
            logging.info("%s: %d failed calls", path.parent, failed)
    again = "; give the command of the run again to repeat them" if total else ""
    logging.info("%d failed calls of preset %s are forgotten%s", total, name, again)
