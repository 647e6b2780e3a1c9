"""Graders held against gold answers, stored answers, and verdicts that others recorded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.errors import UserError, unknown
from harness.files import write_atomically
from harness.runner import layout
from harness.runner.config import Cell, Preset
from workflow import stopping
from workflow.app import Overrides, PresetName, app, preset_of

if TYPE_CHECKING:
    from harness.benchmarks.items import Verdict
    from harness.regrading import Regraded


KINDS = ("wrong -> right", "right -> wrong", "status", "other")
PARTS = ("correct", "status", "answer", "detail", "math_verify")
COLUMNS = (
    *("method", "benchmark", "backbone", "seed", "item_id", "rules_then", "rules_now", "change"),
    *(f"{part}_{when}" for part in PARTS for when in ("then", "now")),
)


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Prove that every gold answer is graded right and a mutated one wrong.

    Status 1: a verdict is not as it should be.
    """
    from harness.benchmarks import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [stopping.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for report in reports:
        typer.echo(report.to_markdown())
    if any(not report.passed for report in reports):
        raise typer.Exit(1)


@app.command()
def agreement(
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder that holds outputs/*.jsonl.gz; GMR_DATA_DIR without.", show_default=False),
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: mmlu_pro, mmlu_stem, math, gsm8k, answer_pairs, humaneval, mbpp.", show_default=False
        ),
    ] = None,
) -> None:
    """Grade recorded model outputs and compare with the verdicts their publishers gave (reports/grading)."""
    from workflow.agreement import study, tables
    from workflow.agreement.records import FILES, data_directory

    compared = stopping.run(study.study(data_directory(data_dir), benchmark or FILES))
    written = tables.write(compared, layout.REPORTS / "grading")
    agree, decided = tables.shares(comparison for comparison in compared if comparison.difference is None)
    logging.info(
        "%d of %d verdicts under the same rule agree (%.2f %%): %s",
        agree,
        decided,
        100 * agree / max(decided, 1),
        ", ".join(map(str, written)),
    )


@app.command()
def regrade(
    preset: PresetName,
    method: Annotated[list[str] | None, typer.Option(help="Only cells of this method; may be repeated.")] = None,
    benchmark: Annotated[list[str] | None, typer.Option(help="Only cells of this benchmark; may be repeated.")] = None,
    backbone: Annotated[list[str] | None, typer.Option(help="Only cells of this row; may be repeated.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only cells of this seed; may be repeated.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Put the new verdicts into results/.")] = False,
    overrides: Overrides = None,
) -> None:
    """Grade the answers of finished cells again, by the rules of now and without any model.

    Shows by cell what changes, and lists every changed verdict in reports/PRESET/regrade.csv. Without --write nothing
    in results/ is touched.

    With it the cells that change are written again. Then `snakemake --rerun-triggers mtime --cores all TARGET` makes
    the reports that show them and runs no cell. Without that option Snakemake runs every cell whose code has changed,
    as it does with new rules: what its log holds is not asked again, but what learns is trained again.
    """
    chosen = preset_of(preset, overrides)
    cells = _selected(
        _finished(preset), {"method": method, "benchmark": benchmark, "backbone": backbone, "seed": seed}, preset
    )
    rows: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    left_out, is_simulated = 0, False
    for number, cell in enumerate(cells, start=1):
        try:
            found = _regraded(chosen, cell, write)
        except UserError as error:
            logging.warning("%d of %d, %s: left out: %s", number, len(cells), cell, error)
            left_out += 1
            continue
        logging.info("%d of %d, %s: %d verdicts changed", number, len(cells), cell, len(found.changes))
        rows.append(_row(found))
        changes.extend(_changes(found))
        is_simulated |= found.run["simulated"]
    path = layout.report(preset, "regrade.csv")
    write_atomically(path, _listing(changes, is_simulated))
    _tell(rows, f"{len(changes)} changed verdicts: {path}", write)
    if left_out:
        raise UserError(f"{left_out} of {len(cells)} finished cells were left out, for the reasons above")


def _finished(preset: str) -> list[Cell]:
    """The finished cells of a preset, whether or not an artefact shows them.

    Raises:
        UserError: There is none.
    """
    folders = [path.parent for path in (layout.RESULTS / preset / "cells").glob("*/*/*/seed*/run.json")]
    if not folders:
        raise UserError(
            f"no cell of preset {preset} is finished; run `snakemake --cores all` on one of its tables first"
        )
    return sorted(map(_cell_of, folders))


def _cell_of(folder: Path) -> Cell:
    method, benchmark, backbone, seed = folder.parts[-4:]
    return Cell(method, benchmark, backbone, int(seed.removeprefix("seed")))


def _selected(cells: Sequence[Cell], wanted: Mapping[str, Sequence[object] | None], preset: str) -> list[Cell]:
    """The cells that have one of the values wanted of each part.

    Raises:
        UserError: A value that no finished cell has, or no cell that has them all.
    """
    for part, values in wanted.items():
        known = {str(getattr(cell, part)) for cell in cells}
        for value in values or ():
            if str(value) not in known:
                raise unknown(part, str(value), known, f"results/{preset}/cells/, by finished cells")
    found = [
        cell
        for cell in cells
        if all(values is None or getattr(cell, part) in values for part, values in wanted.items())
    ]
    if not found:
        raise UserError(f"no finished cell of preset {preset} is all that; give fewer of the options that select")
    return found


def _regraded(preset: Preset, cell: Cell, write: bool) -> Regraded:
    from harness import regrading
    from harness.runner.plan import plan

    found = stopping.run(regrading.regrade(plan(preset, cell)))
    if write and found.is_due:
        regrading.write(found)
    return found


def _row(found: Regraded) -> dict[str, Any]:
    kinds = Counter(change.kind for change in found.changes)
    return {
        "cell": str(found.plan.cell),
        "rules": " -> ".join(found.rules),
        "answers": len(found.now),
        **{kind: kinds[kind] for kind in KINDS},
        "accuracy, %": " -> ".join(f"{100 * accuracy:.2f}" for accuracy in found.accuracies),
        "due": found.is_due,
    }


def _changes(found: Regraded) -> Iterator[dict[str, Any]]:
    cell, rules = found.plan.cell, found.rules
    for item_id, then, now, kind in ((*change, change.kind) for change in found.changes):
        values = [value for pair in zip(_parts(then), _parts(now), strict=True) for value in pair]
        place = (cell.method, cell.benchmark, cell.backbone, cell.seed, item_id, *rules, kind)
        yield dict(zip(COLUMNS, (*place, *values), strict=True))


def _parts(verdict: Verdict) -> tuple[Any, ...]:
    """The values of :data:`PARTS`."""
    return verdict.correct, verdict.status, verdict.answer, verdict.detail, verdict.also.get("math_verify")


def _listing(changes: Sequence[Mapping[str, Any]], is_simulated: bool) -> str:
    import pandas as pd

    from analysis.tables import warning

    head = f"# {warning(is_simulated)}\n" if is_simulated else ""
    return head + pd.DataFrame(changes, columns=list(COLUMNS)).to_csv(index=False, lineterminator="\n")


def _tell(rows: Sequence[Mapping[str, Any]], changed: str, write: bool) -> None:
    import pandas as pd

    if not rows:
        return
    table = pd.DataFrame(rows)
    due = int(table.pop("due").sum())
    typer.echo(table.to_string(index=False))
    done = "written again" if write else "would be written again by --write"
    typer.echo(f"{changed}. {due} of {len(rows)} cells {done}.")
